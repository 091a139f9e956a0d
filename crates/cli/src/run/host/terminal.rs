//! Questions to the person at the terminal, whatever the format of the output: what a call would do is shown whole, and y,
//! always or n is read. One question at a time; what was typed before a question was shown does not answer it.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use qoder_protocol::{Answer, Question};
use qoder_runtime::events::{Answering, Event, Sink, Wants};
use qoder_types::{Actor, AskKind, PermissionUpdate, Place, RuleValue};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc};

use super::text::Spinner;
use crate::screen::{self, Keyboard};

/// The person at the terminal.
pub struct Person {
    name: Actor,
    keyboard: Keyboard,
    /// True when answers that are to last are written into the settings of the folder.
    keeps: bool,
    /// The lines that the user types, read from the first question on.
    lines: OnceLock<Mutex<mpsc::UnboundedReceiver<String>>>,
    spinner: Option<Arc<Spinner>>,
}

/// A sink whose questions go to the person.
pub struct Attended {
    inner: Box<dyn Sink>,
    person: Arc<Person>,
    answering: Answering,
}

impl Attended {
    /// Adds the person to a sink.
    pub fn new(inner: Box<dyn Sink>, person: Arc<Person>) -> Self {
        Self { inner, person, answering: Answering::default() }
    }
}

impl Sink for Attended {
    fn wants(&self) -> Wants {
        self.inner.wants()
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match &event {
            // The result of a call that runs outside is not the person's to give.
            Event::Asked(asking) if asking.question.kind == AskKind::Permission => {
                let answer = Arc::clone(&self.person).ask(Arc::clone(&asking.question));
                self.answering.begin(asking, Box::pin(answer));
            }
            Event::Resolved { action, .. } => self.answering.resolved(action),
            Event::Asked(_)
            | Event::Message(_)
            | Event::Partial { .. }
            | Event::ToolOutput { .. }
            | Event::Warning(_) => {}
        }
        self.inner.take(event)
    }

    fn answers(&self) -> bool {
        true
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.inner.ready()
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn end(&self) -> std::io::Result<()> {
        self.inner.end()
    }
}

/// What a line says about a call.
enum Word {
    Yes,
    Always,
    No,
}

impl Person {
    /// The person who can be asked here; `None` unless both what is asked and what is answered pass a terminal. `keeps`
    /// says whether answers that are to last are written into the settings of the folder.
    pub fn at_terminal(spinner: Option<Arc<Spinner>>, keeps: bool) -> Option<Arc<Self>> {
        let keyboard = screen::stderr_is_terminal().then(Keyboard::open).flatten()?;
        let environment = crate::command_line::environment::environment();
        let name = environment.get("USER").or_else(|| environment.get("LOGNAME"));
        let name = name.map_or("the user", String::as_str).to_owned();
        let name = Actor::Person { name, place: Place::Terminal };
        Some(Arc::new(Self { name, keyboard, keeps, lines: OnceLock::new(), spinner }))
    }

    /// Puts a question; `None` when the terminal is gone.
    pub async fn ask(self: Arc<Self>, question: Arc<Question>) -> Option<Answer> {
        let mut lines = self.lines.get_or_init(|| Mutex::new(self.keyboard.lines())).lock().await;
        let _quiet = self.spinner.as_ref().map(Spinner::hush);
        self.keyboard.forget();
        while lines.try_recv().is_ok() {}
        screen::print_note("");
        if question.tool_name == "AskUserQuestion" {
            return self.ask_choices(&question.input, &mut lines).await;
        }
        print_call(&question);
        let always = always(&question.suggestions);
        let choices = match &always {
            Some(kept) if self.keeps => format!("[y] yes  [always] yes, and keep: {kept}  [n] no"),
            Some(kept) => format!("[y] yes  [always] yes, and in this session: {kept}  [n] no"),
            None => "[y] yes  [n] no".to_owned(),
        };
        loop {
            screen::prompt(&format!("{choices} > "));
            let line = lines.recv().await?;
            let answer = Answer { allow: true, by: self.name.clone(), ..Answer::default() };
            match word(&line) {
                Some(Word::Yes) => return Some(answer),
                Some(Word::Always) if always.is_some() => {
                    return Some(Answer { updated_permissions: question.suggestions.clone(), ..answer });
                }
                Some(Word::No) => return Some(Answer { allow: false, ..answer }),
                Some(Word::Always) => {
                    screen::print_note("There is nothing to keep for this call; answer y or n.")
                }
                None => screen::print_note("Answer y, always or n."),
            }
        }
    }

    /// Lets the person choose among the answers that the model offers.
    async fn ask_choices(
        &self,
        input: &Value,
        lines: &mut mpsc::UnboundedReceiver<String>,
    ) -> Option<Answer> {
        let mut answers = Map::new();
        for asked in questions(input) {
            screen::print_note(&asked.text);
            for (index, (label, description)) in asked.options.iter().enumerate() {
                let about = if description.is_empty() { String::new() } else { format!(" - {description}") };
                screen::print_note(&format!("  {}. {label}{about}", index + 1));
            }
            let several = if asked.several { ", several with commas" } else { "" };
            loop {
                screen::prompt(&format!("Number{several}, or your own words > "));
                let line = lines.recv().await?;
                if !line.trim().is_empty() {
                    answers.insert(asked.text.clone(), Value::String(asked.chosen(line.trim())));
                    break;
                }
            }
        }
        let mut updated = input.clone();
        updated["answers"] = Value::Object(answers);
        Some(Answer { allow: true, updated_input: Some(updated), by: self.name.clone(), ..Answer::default() })
    }
}

fn word(line: &str) -> Option<Word> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Word::Yes),
        "a" | "always" => Some(Word::Always),
        "n" | "no" => Some(Word::No),
        _ => None,
    }
}

/// What a call would do, whole: what is not shown must not run.
fn print_call(question: &Question) {
    let Question { tool_name: tool, input, decision, .. } = question;
    let by = question.agent_id.as_ref().map(|id| format!(" (agent {id})")).unwrap_or_default();
    screen::print_note(&format!("{tool}{by} needs permission: {}", decision.reason));
    let Some(fields) = input.as_object() else { return screen::print_note(&format!("  {input}")) };
    for (field, value) in fields {
        match value {
            Value::String(text) if !text.contains('\n') => screen::print_note(&format!("  {field}: {text}")),
            Value::String(text) => {
                screen::print_note(&format!("  {field}:"));
                text.lines().for_each(|line| screen::print_note(&format!("    {line}")));
            }
            other => screen::print_note(&format!("  {field}: {other}")),
        }
    }
}

/// What `always` would keep, in words; `None` when there is nothing.
fn always(suggestions: &[PermissionUpdate]) -> Option<String> {
    let told: Vec<String> = suggestions
        .iter()
        .map(|update| match update {
            PermissionUpdate::AddRules { rules, .. }
            | PermissionUpdate::ReplaceRules { rules, .. }
            | PermissionUpdate::RemoveRules { rules, .. } => {
                rules.iter().map(RuleValue::text).collect::<Vec<_>>().join(", ")
            }
            PermissionUpdate::SetMode { mode, .. } => format!("mode {} for this session", mode.as_str()),
            PermissionUpdate::AddDirectories { directories, .. }
            | PermissionUpdate::RemoveDirectories { directories, .. } => {
                format!("directory {} for this session", directories.join(", "))
            }
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// A question with ready answers.
struct Choice {
    text: String,
    options: Vec<(String, String)>,
    several: bool,
}

impl Choice {
    /// The labels that numbers stand for; anything else is the person's own words.
    fn chosen(&self, line: &str) -> String {
        let parts: Vec<&str> = if self.several { line.split(',').collect() } else { vec![line] };
        let label = |part: &&str| {
            let number: usize = part.trim().parse().ok()?;
            self.options.get(number.checked_sub(1)?).map(|(label, _)| label.clone())
        };
        let labels: Option<Vec<String>> = parts.iter().map(label).collect();
        labels.map_or_else(|| line.to_owned(), |labels| labels.join(", "))
    }
}

fn questions(input: &Value) -> Vec<Choice> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let option = |option: &Value| match option {
        Value::String(label) => (label.clone(), String::new()),
        other => (text(other, "label"), text(other, "description")),
    };
    let choice = |question: &Value| Choice {
        text: text(question, "question"),
        options: question["options"].as_array().into_iter().flatten().map(option).collect(),
        several: question["multiSelect"].as_bool().unwrap_or(false),
    };
    match input["questions"].as_array() {
        Some(questions) => questions.iter().map(choice).collect(),
        None => vec![choice(input)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_for_labels_and_other_words_for_themselves() {
        let input = json!({ "questions": [
            { "question": "Which?", "options": [{ "label": "one" }, { "label": "two", "description": "d" }] },
            { "question": "Those?", "multiSelect": true, "options": [{ "label": "a" }, { "label": "b" }] },
        ] });
        let asked = questions(&input);
        assert_eq!(asked[0].chosen("2"), "two");
        assert_eq!(asked[0].chosen("3"), "3");
        assert_eq!(asked[0].chosen("neither, thanks"), "neither, thanks");
        assert_eq!(asked[1].chosen("1, 2"), "a, b");
        assert_eq!(asked[1].chosen("0"), "0");
        let single = questions(&json!({ "question": "Go?", "options": ["yes", "no"] }));
        assert_eq!((single[0].text.as_str(), single[0].chosen("1")), ("Go?", "yes".to_owned()));
    }
}
