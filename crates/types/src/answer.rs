//! Records of questions and answers: a call that is pending, what was answered, and what changed about the
//! session's permissions. They are parts of a session's log like every other record.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::content::{ContentBlock, ToolResultContent};
use crate::decision::Decision;
use crate::permission::PermissionUpdate;

/// What an ask wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Permission: allow or deny.
    #[default]
    Permission,
    /// The result of a call that runs outside the runtime.
    External,
}

impl AskKind {
    fn is_permission(&self) -> bool {
        *self == Self::Permission
    }
}

/// The result of a call that ran outside the runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalResult {
    /// What the model reads: text, or text, image and document blocks.
    pub content: ToolResultContent,
    /// True when the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ExternalResult {
    /// The first block that a result cannot contain, by its type.
    #[must_use]
    pub fn unusable_block(&self) -> Option<&'static str> {
        let ToolResultContent::Blocks(blocks) = &self.content else { return None };
        blocks.iter().find_map(|block| match block {
            ContentBlock::Text { .. } | ContentBlock::Image { .. } | ContentBlock::Document { .. } => None,
            ContentBlock::ToolUse { .. } => Some("tool_use"),
            ContentBlock::ToolResult { .. } => Some("tool_result"),
            ContentBlock::Thinking { .. } => Some("thinking"),
            ContentBlock::RedactedThinking { .. } => Some("redacted_thinking"),
            ContentBlock::Unknown(_) => Some("unknown"),
        })
    }
}

/// A call waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// What is wanted.
    #[serde(default, skip_serializing_if = "AskKind::is_permission")]
    pub kind: AskKind,
    /// Why it asks.
    pub decision: Decision,
    /// Changes that would make the question unnecessary the next time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<PermissionUpdate>,
}

/// An answer arrived. The first answer to a call counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The call.
    pub tool_use_id: String,
    /// True to let it run.
    pub allow: bool,
    /// For a denial: what the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The input to use in place of the model's. It is judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<serde_json::Value>,
    /// Changes of permissions that come with the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updated_permissions: Vec<PermissionUpdate>,
    /// For a denial: stop the turn as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// The result of a call that runs outside the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ExternalResult>,
    /// Who answered.
    pub by: Actor,
}

impl Answered {
    /// What the answer says, in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (&self.result, self.allow) {
            (Some(_), _) => "result",
            (None, true) => "allow",
            (None, false) => "deny",
        }
    }

    /// True when it is an answer to an ask of this kind. A call that runs outside can be denied; to allow it says nothing.
    #[must_use]
    pub fn answers(&self, kind: AskKind) -> bool {
        match kind {
            AskKind::Permission => self.result.is_none(),
            AskKind::External => self.result.is_some() || !self.allow,
        }
    }
}

/// A server waits for input of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicited {
    /// Identifies the question.
    pub elicitation_id: String,
    /// The server.
    pub server_name: String,
    /// What it says to the person.
    pub message: String,
    /// JSON Schema of the wanted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<serde_json::Value>,
}

/// A server's question has an answer. What was entered went to the server and is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationAnswered {
    /// The question.
    pub elicitation_id: String,
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// Who answered, or what took the question back.
    pub by: Actor,
}

/// The session's permissions changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsChanged {
    /// The changes.
    pub updates: Vec<PermissionUpdate>,
    /// What brought them.
    pub by: Actor,
}
