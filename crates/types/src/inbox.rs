//! What others leave for a session that some process drives: inputs, answers and interrupts, and what became of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::ExternalResult;
use crate::content::Message;
use crate::permission::PermissionUpdate;
use crate::record::InputOrigin;

/// Something left in a session's inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxEntry {
    /// Identifies it: the same id again is the same entry again.
    pub id: String,
    /// When it was left.
    pub at: String,
    /// Who left it.
    pub by: String,
    /// What it is.
    #[serde(flatten)]
    pub body: InboxBody,
}

/// What an entry of an inbox is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum InboxBody {
    /// A message for the conversation.
    Input {
        /// The message.
        message: Message,
        /// Who it is from.
        #[serde(default, skip_serializing_if = "InputOrigin::is_user")]
        origin: InputOrigin,
    },
    /// The answer to an ask.
    Answer {
        /// The call that waits.
        tool_use_id: String,
        /// The agent whose call it is, when it is one's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        /// True to let the call run.
        allow: bool,
        /// For a denial: what the model reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The input to use in place of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Value>,
        /// Changes of permissions that come with the answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        updated_permissions: Vec<PermissionUpdate>,
        /// Take what the ask suggests as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
        /// For a denial: stop the turn as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
    },
    /// The result of a call that runs outside the runtime.
    Result {
        /// The call that waits.
        tool_use_id: String,
        /// The agent whose call it is, when it is one's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        /// The result.
        #[serde(flatten)]
        result: ExternalResult,
    },
    /// Stop the turn that runs.
    Interrupt {},
    /// A request of a front that is attached, as it travels on a pipe: its answer is in the details of the reply.
    Request {
        /// The request.
        request: Value,
    },
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxReply {
    /// The entry.
    pub id: String,
    /// How it ended.
    pub outcome: InboxOutcome,
    /// The outcome in words.
    pub message: String,
    /// More about it, such as the answer that won.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// How an entry of an inbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxOutcome {
    /// It is on record.
    Accepted,
    /// Another answer was first.
    Lost,
    /// It is not valid, or there is nothing that it could be for.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_told_apart_by_their_kind() {
        let entry = |kind: Value| {
            let mut entry = json!({ "id": "a", "at": "now", "by": "cli" });
            entry.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            entry
        };
        let input = entry(json!({ "kind": "input", "message": { "role": "user", "content": "hi" } }));
        let answer = entry(json!({ "kind": "answer", "toolUseId": "t", "allow": true, "always": true }));
        let interrupt = entry(json!({ "kind": "interrupt" }));
        let request = entry(json!({ "kind": "request", "request": { "subtype": "mcp_status" } }));
        let system = entry(
            json!({ "kind": "input", "origin": "system", "message": { "role": "user", "content": "hi" } }),
        );
        let result = entry(json!({ "kind": "result", "toolUseId": "t", "agentId": "a", "content": "42" }));
        let failure = entry(json!({ "kind": "result", "toolUseId": "t", "isError": true,
            "content": [{ "type": "text", "text": "no" }] }));
        for value in [input, answer, interrupt, request, system, result, failure] {
            let read: InboxEntry = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
        let unknown = entry(json!({ "kind": "reboot" }));
        assert!(serde_json::from_value::<InboxEntry>(unknown).is_err());
    }
}
