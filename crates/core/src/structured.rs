//! Answers in a shape: the model gives its final answer by calling a tool whose input has the wanted schema. That the
//! tool is advertised says that such an answer is wanted; what came of its calls is folded here.

use qoder_types::CallOutcome;
use qoder_types::record::UserEntry;
use serde_json::Value;

use crate::next::{EndReason, Step};
use crate::state::{State, Turn};

/// The tool that the model gives its answer with.
pub const STRUCTURED_OUTPUT: &str = "StructuredOutput";
/// Attempts without an answer that fits, before the turn ends.
pub const MOST_ATTEMPTS: u32 = 5;

/// What the model hears when it ends without having given its answer.
const REMINDER: &str = "You have not given your final answer yet. Give it now by calling the tool StructuredOutput; its input \
is the answer, and it must fit the tool's schema.";

/// What a turn has of its answer.
#[derive(Debug, Clone, Default)]
pub struct StructuredAnswer {
    /// The last answer that fits the schema.
    pub answer: Option<Value>,
    /// True until something is said to the model after that answer.
    pub is_fresh: bool,
    /// Attempts that did not fit, and ends without one.
    pub fruitless: u32,
}

impl StructuredAnswer {
    /// A call of the tool has its result.
    pub(crate) fn take_result(&mut self, entry: &UserEntry) {
        let completed = entry.outcome == Some(CallOutcome::Completed);
        let given = entry.tool_use_result.as_deref().filter(|_| completed);
        match given.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            Some(answer) => {
                self.answer = Some(answer);
                self.is_fresh = true;
            }
            None => self.fruitless += 1,
        }
    }
}

impl State {
    /// True when the model was given the tool for its answer.
    #[must_use]
    pub fn wants_structured_output(&self) -> bool {
        let tools = self.epoch.as_ref().map(|epoch| &epoch.tools);
        tools.is_some_and(|tools| tools.iter().any(|tool| tool.name == STRUCTURED_OUTPUT))
    }
}

/// The turn ends as soon as the answer is there, or when it was tried often enough.
pub(crate) fn answered(state: &State, turn: &Turn) -> Option<Step> {
    let structured = &turn.structured;
    if structured.is_fresh {
        return Some(Step::End(EndReason::Completed));
    }
    let given_up = structured.answer.is_none() && structured.fruitless >= MOST_ATTEMPTS;
    (given_up && state.wants_structured_output()).then_some(Step::End(EndReason::NoStructuredOutput))
}

/// The model ended without a call: it is reminded while its answer is missing.
pub(crate) fn missing(state: &State, turn: &Turn) -> Option<Step> {
    let missing = turn.structured.answer.is_none() && state.wants_structured_output();
    missing.then_some(Step::Notice(REMINDER))
}
