//! Questions of the model with ready answers (`AskUserQuestion`): one to four, each with options, several of which may be
//! chosen where the model says so, and always a place for the person's own words.

use std::collections::BTreeSet;
use std::sync::Arc;

use qoder_protocol::{ActionId, Answer, Question};
use qoder_types::Actor;
use serde_json::{Map, Value};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OneChoice {
    /// What is asked.
    pub(crate) text: String,
    /// A word for its tab.
    pub(crate) header: String,
    /// Label and description of each option.
    pub(crate) options: Vec<(String, String)>,
    /// True when several may be chosen.
    pub(crate) several: bool,
    /// The chosen ones.
    pub(crate) chosen: BTreeSet<usize>,
    /// The person's own words.
    pub(crate) words: String,
}

impl OneChoice {
    /// Chooses an option; where only one may be chosen it replaces the other.
    pub(crate) fn choose(&mut self, option: usize) {
        if option >= self.options.len() {
            return;
        }
        if !self.several {
            self.chosen.clear();
            self.chosen.insert(option);
        } else if !self.chosen.remove(&option) {
            self.chosen.insert(option);
        }
    }

    /// True when there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        !self.chosen.is_empty() || !self.words.trim().is_empty()
    }

    /// The answer: labels, and own words.
    pub(crate) fn answer(&self) -> String {
        let labels = self.chosen.iter().filter_map(|option| self.options.get(*option));
        let mut parts: Vec<&str> = labels.map(|(label, _)| label.as_str()).collect();
        let words = self.words.trim();
        if !words.is_empty() {
            parts.push(words);
        }
        parts.join(", ")
    }

    /// Takes a typed line: numbers stand for options, anything else is the person's own words.
    pub(crate) fn take_line(&mut self, line: &str) {
        let parts: Vec<&str> = if self.several { line.split(',').collect() } else { vec![line] };
        let number = |part: &&str| {
            let number: usize = part.trim().parse().ok()?;
            number.checked_sub(1).filter(|option| *option < self.options.len())
        };
        let numbers: Option<BTreeSet<usize>> = parts.iter().map(number).collect();
        match numbers {
            Some(numbers) => self.chosen = numbers,
            None => line.trim().clone_into(&mut self.words),
        }
    }
}

/// The questions of one call.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    question: Arc<Question>,
    /// Each of them.
    pub(crate) all: Vec<OneChoice>,
}

impl Choices {
    /// `None` when the input has no question.
    pub(super) fn new(question: &Arc<Question>) -> Option<Self> {
        let input = &question.input;
        let all: Vec<OneChoice> = match input["questions"].as_array() {
            Some(questions) => questions.iter().map(one).collect(),
            None => vec![one(input)],
        };
        let has_text = all.iter().all(|one| !one.text.is_empty());
        (has_text && !all.is_empty()).then(|| Self { question: Arc::clone(question), all })
    }

    /// What answers name.
    pub(crate) fn action(&self) -> ActionId {
        self.question.action()
    }

    /// The answer with everything that was chosen.
    pub(crate) fn answer(&self, by: &Actor) -> Answer {
        let answers: Map<String, Value> =
            self.all.iter().map(|one| (one.text.clone(), Value::String(one.answer()))).collect();
        let mut updated = self.question.input.clone();
        updated["answers"] = Value::Object(answers);
        Answer { allow: true, updated_input: Some(updated), by: by.clone(), ..Answer::default() }
    }

    /// The answer of a person who does not answer.
    pub(crate) fn refusal(&self, stop: bool, by: &Actor) -> Answer {
        let message = Some("The person did not answer the questions.".to_owned());
        Answer { message, interrupt: stop, by: by.clone(), ..Answer::default() }
    }
}

fn one(question: &Value) -> OneChoice {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let option = |option: &Value| match option {
        Value::String(label) => (label.clone(), String::new()),
        other => (text(other, "label"), text(other, "description")),
    };
    OneChoice {
        text: text(question, "question"),
        header: text(question, "header"),
        options: question["options"].as_array().into_iter().flatten().map(option).collect(),
        several: question["multiSelect"].as_bool().unwrap_or(false),
        chosen: BTreeSet::new(),
        words: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn choice(several: bool) -> OneChoice {
        one(&json!({ "question": "Which?", "multiSelect": several,
            "options": [{ "label": "one", "description": "first" }, "two"] }))
    }

    #[test]
    fn numbers_stand_for_labels_and_other_words_for_themselves() {
        for (several, line, answer) in [
            (false, "2", "two"),
            (false, "3", "3"),
            (false, "neither, thanks", "neither, thanks"),
            (true, "1, 2", "one, two"),
            (true, "0", "0"),
        ] {
            let mut choice = choice(several);
            choice.take_line(line);
            assert_eq!(choice.answer(), answer);
        }
    }

    #[test]
    fn one_choice_replaces_the_other_unless_several_may_be_chosen() {
        let (mut single, mut several) = (choice(false), choice(true));
        for option in [0, 1] {
            single.choose(option);
            several.choose(option);
        }
        assert_eq!((single.answer().as_str(), several.answer().as_str()), ("two", "one, two"));
        several.choose(0);
        assert_eq!(several.answer(), "two");
    }
}
