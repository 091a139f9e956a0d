//! Questions about tool calls and their answers: what `can_use_tool` is asked, and what it says. Rules and modes are
//! looked at first; only what is still open after them reaches the callback.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callback::{CallbackError, CancellationToken};

pub use qoder_protocol::{Behavior, PermissionMode, PermissionUpdate, RuleValue, UpdateDestination};

/// Decides about a call: name of the tool, its input, and what else is known.
pub type CanUseTool = Arc<
    dyn Fn(
            String,
            Value,
            ToolPermissionContext,
        ) -> BoxFuture<'static, Result<PermissionResult, CallbackError>>
        + Send
        + Sync,
>;

/// What else is known about a call that needs a decision.
#[derive(Debug, Clone)]
pub struct ToolPermissionContext {
    /// Cancelled when the answer is no longer needed.
    pub signal: CancellationToken,
    /// Changes that would make the question unnecessary the next time.
    pub suggestions: Vec<PermissionUpdate>,
    /// The file that made the call ask.
    pub blocked_path: Option<String>,
    /// Why it is asked.
    pub decision_reason: Option<String>,
    /// The layer that wants to know, for example `rule` or `mode`.
    pub decision_reason_type: Option<String>,
    /// Whether a classifier could approve the call.
    pub classifier_approvable: Option<bool>,
    /// For people: a headline.
    pub title: Option<String>,
    /// For people: the tool.
    pub display_name: Option<String>,
    /// For people: what the call does.
    pub description: Option<String>,
    /// The call.
    pub tool_use_id: Option<String>,
    /// The subagent that made the call.
    pub agent_id: Option<String>,
    /// The plan, when the call leaves plan mode.
    pub exit_plan_mode: Option<Value>,
}

/// The answer about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum PermissionResult {
    /// The call may run.
    Allow {
        /// The input to use in place of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Value>,
        /// Changes of permissions that come with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<Vec<PermissionUpdate>>,
        /// How the host classifies its decision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_classification: Option<String>,
    },
    /// The call must not run.
    Deny {
        /// What the model reads.
        #[serde(default)]
        message: String,
        /// True: the turn stops as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
        /// How the host classifies its decision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_classification: Option<String>,
    },
}

impl PermissionResult {
    /// The call may run as it is.
    #[must_use]
    pub fn allow() -> Self {
        Self::Allow { updated_input: None, updated_permissions: None, decision_classification: None }
    }

    /// The call may run with another input.
    #[must_use]
    pub fn allow_with(input: Value) -> Self {
        Self::Allow { updated_input: Some(input), updated_permissions: None, decision_classification: None }
    }

    /// The call must not run; the model reads why and may try another way.
    #[must_use]
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false, decision_classification: None }
    }

    /// The call must not run and the turn stops.
    #[must_use]
    pub fn deny_and_interrupt(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: true, decision_classification: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_have_the_documented_shape() {
        let cases = [
            (PermissionResult::allow(), json!({ "behavior": "allow" })),
            (
                PermissionResult::allow_with(json!({ "a": 1 })),
                json!({ "behavior": "allow", "updatedInput": { "a": 1 } }),
            ),
            (
                PermissionResult::deny_and_interrupt("no"),
                json!({ "behavior": "deny", "message": "no", "interrupt": true }),
            ),
        ];
        for (answer, shape) in cases {
            assert_eq!(serde_json::to_value(&answer).unwrap(), shape);
            assert_eq!(serde_json::from_value::<PermissionResult>(shape).unwrap(), answer);
        }
    }
}
