//! What a hook answers. An empty answer has no opinion; of several hooks the strictest decision wins.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a hook answers. `Default` is no opinion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookJsonOutput {
    /// `Some(false)` ends the run.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_: Option<bool>,
    /// For people: why the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// True: the answer is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_output: Option<bool>,
    /// Shown to the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// `approve` or `block`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Why; the model reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `Some(true)`: the run continues without waiting.
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    pub async_: Option<bool>,
    /// The part that belongs to the event, with `hookEventName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl HookJsonOutput {
    /// For `PreToolUse`: the call may run without a question.
    #[must_use]
    pub fn allow() -> Self {
        Self::specific(json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow" }))
    }

    /// For `PreToolUse`: the call may run without a question, with another input.
    #[must_use]
    pub fn allow_with(input: &Value) -> Self {
        Self::specific(
            json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input }),
        )
    }

    /// For `PreToolUse`: the call must not run.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::pre_tool_use("deny", &reason.into())
    }

    /// For `PreToolUse`: the host or person is asked.
    #[must_use]
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::pre_tool_use("ask", &reason.into())
    }

    fn pre_tool_use(decision: &str, reason: &str) -> Self {
        Self::specific(json!({
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
        }))
    }

    /// Blocks the action; for `Stop`: the model continues, and reads the reason.
    #[must_use]
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Some("block".to_owned()), reason: Some(reason.into()), ..Self::default() }
    }

    /// Ends the run.
    #[must_use]
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { continue_: Some(false), stop_reason: Some(reason.into()), ..Self::default() }
    }

    /// Gives the model something more to read.
    #[must_use]
    pub fn context(event: &super::HookEvent, text: impl Into<String>) -> Self {
        Self::specific(json!({ "hookEventName": event.as_str(), "additionalContext": text.into() }))
    }

    /// For `PostToolUse`: the model reads this in place of what the tool said.
    #[must_use]
    pub fn replace_output(text: impl Into<String>) -> Self {
        Self::specific(json!({ "hookEventName": "PostToolUse", "updatedToolOutput": text.into() }))
    }

    fn specific(output: Value) -> Self {
        Self { hook_specific_output: Some(output), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_documented_keys() {
        let output = HookJsonOutput::stop("enough");
        assert_eq!(
            serde_json::to_value(&output).unwrap(),
            json!({ "continue": false, "stopReason": "enough" })
        );
        let output = HookJsonOutput::deny("no");
        assert_eq!(
            serde_json::to_value(&output).unwrap(),
            json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no" } })
        );
        assert_eq!(serde_json::to_value(HookJsonOutput::default()).unwrap(), json!({}));
    }
}
