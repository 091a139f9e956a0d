//! A plan waits for approval: how work continues with it, or what is to be planned otherwise.

use std::sync::Arc;

use qoder_protocol::{ActionId, Answer, Question};
use qoder_types::{Actor, PermissionMode, PermissionUpdate, UpdateDestination};
use serde_json::{Value, json};

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanChoice {
    /// Work, and edit files without asking.
    AcceptEdits,
    /// Work, and ask for each edit.
    AskForEdits,
    /// Work without asking.
    Auto,
    /// Keep planning, with these words.
    KeepPlanning,
}

impl PlanChoice {
    /// The words of it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::AcceptEdits => "Yes, and accept edits",
            Self::AskForEdits => "Yes, and ask for each edit",
            Self::Auto => "Yes, in auto mode: a model judges what would ask",
            Self::KeepPlanning => "No, keep planning, and say what to change",
        }
    }
}

/// A plan.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    question: Arc<Question>,
    /// True when a model judges calls in auto mode.
    has_judge: bool,
    /// The plan that the person edited.
    edited: Option<String>,
}

impl Plan {
    pub(super) fn new(question: &Arc<Question>, has_judge: bool) -> Self {
        Self { question: Arc::clone(question), has_judge, edited: None }
    }

    /// What a person can answer here, in order. Auto mode without a judge would deny whatever asks.
    pub(crate) fn choices(&self) -> &'static [PlanChoice] {
        use PlanChoice::{AcceptEdits, AskForEdits, Auto, KeepPlanning};
        if self.has_judge {
            &[AcceptEdits, AskForEdits, Auto, KeepPlanning]
        } else {
            &[AcceptEdits, AskForEdits, KeepPlanning]
        }
    }

    /// What answers name.
    pub(crate) fn action(&self) -> ActionId {
        self.question.action()
    }

    /// The plan, in Markdown, as it would be approved.
    pub(crate) fn text(&self) -> &str {
        let written = || self.question.input.get("plan").and_then(Value::as_str).unwrap_or_default();
        self.edited.as_deref().unwrap_or_else(written)
    }

    /// The person edited the plan.
    pub(crate) fn edit(&mut self, text: String) {
        self.edited = Some(text);
    }

    /// The answer that a choice comes to.
    pub(crate) fn answer(&self, choice: PlanChoice, words: Option<&str>, by: &Actor) -> Answer {
        let mode = match choice {
            PlanChoice::AcceptEdits => PermissionMode::AcceptEdits,
            PlanChoice::AskForEdits => PermissionMode::Default,
            PlanChoice::Auto => PermissionMode::Auto,
            PlanChoice::KeepPlanning => {
                let words = words.map(str::trim).filter(|words| !words.is_empty());
                let message = words.unwrap_or("Keep planning; the plan is not approved yet.").to_owned();
                return Answer { message: Some(message), by: by.clone(), ..Answer::default() };
            }
        };
        let updated_input = self.edited.as_ref().map(|plan| {
            let mut input = self.question.input.clone();
            input["plan"] = json!(plan);
            input
        });
        let change = PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
        Answer {
            allow: true,
            updated_input,
            updated_permissions: vec![change],
            by: by.clone(),
            ..Answer::default()
        }
    }
}
