//! A question in lines: everything that would run is printed, choices have numbers, and the answer is a typed number. A line
//! that was complete before the question was printed is never an answer.

use std::time::{Duration, Instant};

use qoder_protocol::{ActionId, Answer, ElicitationAnswer};
use qoder_types::Actor;

use super::print::Printer;
use crate::markdown::plain;
use crate::questions::{
    Asked, BodyLine, FieldKind, Form, OneChoice, Permission, PermissionChoice, PlanChoice, SettingsFiles,
};
use crate::state::Conversation;
use crate::text::{one_line, plain_lines};

/// A line that is complete so soon after the question was printed was not meant for it.
pub(super) const TOO_SOON: Duration = Duration::from_millis(300);

/// A question that was printed.
pub(super) struct Dialog {
    asked: Asked,
    since: Instant,
    step: Step,
}

/// What the next line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The number of a choice, or of an option of this question of several.
    Choose(usize),
    /// Words for a choice about a call.
    Words(PermissionChoice),
    /// Words for the plan.
    PlanWords,
    /// The value of this field.
    Field(usize),
}

/// What a line came to.
pub(super) enum Reply {
    /// An answer to a question of the gate.
    Answer(ActionId, Box<Answer>),
    /// An answer to a server.
    Elicitation(String, ElicitationAnswer),
    /// More is needed.
    More,
    /// It cannot be taken, for this reason; the question stays.
    Refused(String),
    /// It is not an answer.
    NotAnAnswer,
}

impl Dialog {
    /// The oldest question that is open.
    pub(super) fn next(conversation: &Conversation, files: &SettingsFiles, has_judge: bool) -> Option<Self> {
        let asked = match (conversation.questions.first(), conversation.elicitations.first()) {
            (Some(question), _) => Asked::of_question(question, files, has_judge, &conversation.tasks),
            (None, Some(elicitation)) => Asked::of_elicitation(elicitation),
            (None, None) => return None,
        };
        let step = match &asked {
            Asked::Form(form) if !form.fields.is_empty() => Step::Field(0),
            Asked::Form(_) | Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_) | Asked::Trust(_) => {
                Step::Choose(0)
            }
        };
        Some(Self { asked, since: Instant::now(), step })
    }

    /// True while the session waits for it.
    pub(super) fn is_open(&self, conversation: &Conversation) -> bool {
        match (self.action(), &self.asked) {
            (Some(action), _) => conversation.questions.iter().any(|open| open.action() == action),
            (None, Asked::Form(form)) => {
                conversation.elicitations.iter().any(|open| open.elicitation_id == form.id())
            }
            (None, Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_) | Asked::Trust(_)) => false,
        }
    }

    /// It was answered: it is not asked again while that is being confirmed.
    pub(super) fn forget(&self, conversation: &mut Conversation) {
        match (self.action(), &self.asked) {
            (Some(action), _) => conversation.questions.retain(|open| open.action() != action),
            (None, Asked::Form(form)) => {
                conversation.elicitations.retain(|open| open.elicitation_id != form.id());
            }
            (None, Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_) | Asked::Trust(_)) => {}
        }
    }

    fn action(&self) -> Option<ActionId> {
        match &self.asked {
            Asked::Permission(permission) => Some(permission.action()),
            Asked::Plan(plan) => Some(plan.action()),
            Asked::Choices(choices) => Some(choices.action()),
            Asked::Form(_) | Asked::Trust(_) => None,
        }
    }

    /// Prints all of it.
    pub(super) fn print(&self, printer: &mut Printer) {
        match &self.asked {
            Asked::Permission(permission) => print_permission(permission, printer),
            Asked::Plan(plan) => {
                printer.line("approval required: the plan");
                for line in plain_lines(&plain_text(plan.text())) {
                    printer.line(&format!("  {line}"));
                }
                for (at, choice) in plan.choices().iter().enumerate() {
                    printer.line(&format!("{}. {}", at + 1, choice.label()));
                }
            }
            Asked::Choices(_) => self.print_step(printer),
            Asked::Form(form) => {
                printer.line(&format!("question of MCP server {}:", form.server()));
                plain_lines(form.message()).iter().for_each(|line| printer.line(&format!("  {line}")));
                printer.line("Type /decline to say no, /cancel to leave it unanswered.");
                self.print_step(printer);
            }
            Asked::Trust(_) => {}
        }
    }

    /// Prints what is asked next.
    pub(super) fn print_step(&self, printer: &mut Printer) {
        match (&self.asked, self.step) {
            (Asked::Choices(choices), Step::Choose(place)) => {
                if let Some(choice) = choices.all.get(place) {
                    print_choice(choice, printer);
                }
            }
            (Asked::Form(form), Step::Field(place)) => print_field(form, place, printer),
            (Asked::Form(_), _) => printer.line("1. Accept"),
            (_, Step::Words(_) | Step::PlanWords) => printer.line("Type what to do instead:"),
            (Asked::Permission(_) | Asked::Plan(_) | Asked::Choices(_) | Asked::Trust(_), _) => {}
        }
    }

    /// Takes a typed line that was complete at this time.
    pub(super) fn take_line(&mut self, line: &str, at: Instant, by: &Actor) -> Reply {
        if at < self.since + TOO_SOON {
            return Reply::NotAnAnswer;
        }
        let line = line.trim();
        let step = self.step;
        match &mut self.asked {
            Asked::Permission(permission) => match step {
                Step::Words(choice) => answered(permission, choice, Some(line), by),
                Step::Choose(_) | Step::PlanWords | Step::Field(_) => {
                    if let Some(text) = line.strip_prefix("edit ") {
                        return edited(permission, text.trim(), by);
                    }
                    match permission_choice(permission, line) {
                        Some(PermissionChoice::NoWithWords) => {
                            self.step = Step::Words(PermissionChoice::NoWithWords);
                            Reply::More
                        }
                        Some(choice) => answered(permission, choice, None, by),
                        None => Reply::NotAnAnswer,
                    }
                }
            },
            Asked::Plan(plan) => {
                let choice = match step {
                    Step::PlanWords => Some(PlanChoice::KeepPlanning),
                    Step::Choose(_) | Step::Words(_) | Step::Field(_) => {
                        number(line).and_then(|number| plan.choices().get(number).copied())
                    }
                };
                match choice {
                    Some(PlanChoice::KeepPlanning) if step != Step::PlanWords => {
                        self.step = Step::PlanWords;
                        Reply::More
                    }
                    Some(choice) => {
                        Reply::Answer(plan.action(), Box::new(plan.answer(choice, Some(line), by)))
                    }
                    None => Reply::NotAnAnswer,
                }
            }
            Asked::Choices(choices) => {
                let Step::Choose(place) = step else { return Reply::NotAnAnswer };
                if line.is_empty() {
                    return Reply::More;
                }
                if let Some(choice) = choices.all.get_mut(place) {
                    choice.take_line(line);
                }
                if place + 1 < choices.all.len() {
                    self.step = Step::Choose(place + 1);
                    return Reply::More;
                }
                Reply::Answer(choices.action(), Box::new(choices.answer(by)))
            }
            Asked::Form(form) => {
                let (reply, next) = take_form_line(form, step, line);
                self.step = next;
                reply
            }
            // Trust is asked before there is a session.
            Asked::Trust(_) => Reply::NotAnAnswer,
        }
    }
}

fn take_form_line(form: &mut Form, step: Step, line: &str) -> (Reply, Step) {
    let id = form.id().to_owned();
    match (line, step) {
        ("/decline", _) => (Reply::Elicitation(id, Form::decline()), step),
        ("/cancel", _) => (Reply::Elicitation(id, Form::cancel()), step),
        (_, Step::Field(place)) => {
            if let Some(field) = form.fields.get_mut(place)
                && !line.is_empty()
            {
                line.clone_into(&mut field.text);
            }
            if form.problem(place).is_some() {
                return (Reply::More, step);
            }
            if place + 1 < form.fields.len() {
                return (Reply::More, Step::Field(place + 1));
            }
            match form.accept() {
                Ok(answer) => (Reply::Elicitation(id, answer), step),
                Err((place, _)) => (Reply::More, Step::Field(place)),
            }
        }
        ("1", _) => match form.accept() {
            Ok(answer) => (Reply::Elicitation(id, answer), step),
            Err(_) => (Reply::More, step),
        },
        _ => (Reply::NotAnAnswer, step),
    }
}

fn answered(permission: &Permission, choice: PermissionChoice, words: Option<&str>, by: &Actor) -> Reply {
    Reply::Answer(permission.action(), Box::new(permission.answer(choice, words, by)))
}

/// The call runs with what the person made of its input, if the gate agrees.
fn edited(permission: &Permission, text: &str, by: &Actor) -> Reply {
    match permission.edited(text, by) {
        Ok(answer) => Reply::Answer(permission.action(), Box::new(answer)),
        Err(error) => Reply::Refused(error.to_string()),
    }
}

/// A number from 1, as a place.
fn number(line: &str) -> Option<usize> {
    line.parse::<usize>().ok()?.checked_sub(1)
}

/// The choice that a line names: its number, `y` or `n`. The scope of a rule may follow the number.
fn permission_choice(permission: &mut Permission, line: &str) -> Option<PermissionChoice> {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let choices = permission.choices();
    let choice = match first {
        "y" | "yes" => Some(PermissionChoice::Once),
        "n" | "no" => Some(PermissionChoice::No),
        _ => choices.iter().copied().find(|choice| first == choice.number().to_string()),
    }?;
    match (choice, rest.trim()) {
        (_, "") => Some(choice),
        (PermissionChoice::Always, word) => permission.set_scope(word).then_some(choice),
        _ => None,
    }
}

fn print_permission(permission: &Permission, printer: &mut Printer) {
    printer.line(&format!("permission required: {}", permission.headline()));
    for reason in permission.reasons() {
        printer.line(&format!("  why: {reason}"));
    }
    for line in permission.body() {
        printer.line(&match line {
            BodyLine::Text(text) => format!("  {text}"),
            BodyLine::Field(name, value) => format!("  {name}: {value}"),
            BodyLine::Added(text) => format!("  + {text}"),
            BodyLine::Removed(text) => format!("  - {text}"),
        });
    }
    for choice in permission.choices() {
        let scopes: Vec<&str> = permission.scopes().iter().map(|scope| scope.word()).collect();
        let number = choice.number();
        let more = match choice {
            PermissionChoice::Always if scopes.len() > 1 => {
                format!(" (or type `{number} {}`)", scopes[1..].join(&format!("` or `{number} ")))
            }
            PermissionChoice::Once
            | PermissionChoice::Session
            | PermissionChoice::Always
            | PermissionChoice::No
            | PermissionChoice::NoWithWords
            | PermissionChoice::Stop => String::new(),
        };
        printer.line(&format!("{number}. {}{more}", permission.label(choice)));
    }
    printer.line(&format!("To change it, type `edit` and {}.", permission.editable_words()));
}

fn print_choice(choice: &OneChoice, printer: &mut Printer) {
    printer.line(&format!("question: {}", one_line(&choice.text)));
    for (at, (label, description)) in choice.options.iter().enumerate() {
        let about =
            if description.is_empty() { String::new() } else { format!(": {}", one_line(description)) };
        printer.line(&format!("{}. {}{about}", at + 1, one_line(label)));
    }
    let several = if choice.several { "Type numbers separated by commas" } else { "Type a number" };
    printer.line(&format!("{several}, or your own words:"));
}

fn print_field(form: &Form, place: usize, printer: &mut Printer) {
    let Some(field) = form.fields.get(place) else { return };
    if !field.text.is_empty()
        && let Some(problem) = form.problem(place)
    {
        printer.line(&format!("error: {problem}"));
    }
    let takes = match &field.kind {
        FieldKind::Text { .. } => "text",
        FieldKind::Number { .. } => "a number",
        FieldKind::YesNo => "yes or no",
        FieldKind::OneOf(_) => "a number of the list",
    };
    let needed = if field.required { "required" } else { "optional, Enter leaves it out" };
    printer.line(&format!("field {}: {takes}, {needed}", one_line(&field.title)));
    if !field.description.is_empty() {
        printer.line(&format!("  {}", one_line(&field.description)));
    }
    if let FieldKind::OneOf(options) = &field.kind {
        for (at, (_, name)) in options.iter().enumerate() {
            printer.line(&format!("{}. {}", at + 1, one_line(name)));
        }
    }
}

/// The text of a plan without markup.
fn plain_text(markdown: &str) -> String {
    markdown.lines().map(plain).collect::<Vec<_>>().join("\n")
}
