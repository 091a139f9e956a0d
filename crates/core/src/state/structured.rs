//! Answers in a shape: the model gives its final answer by calling a tool whose input has the wanted schema. That the
//! tool is advertised says that such an answer is wanted; what came of its calls is folded here.

use qoder_types::CallOutcome;
use qoder_types::record::UserEntry;
use serde_json::Value;

use super::State;

/// The tool that the model gives its answer with.
pub const STRUCTURED_OUTPUT: &str = "StructuredOutput";
/// Attempts without an answer that fits, before the turn ends.
pub const MOST_ATTEMPTS: u32 = 5;

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
