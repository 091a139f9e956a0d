//! Records of questions and answers: a call that waits for somebody, what was answered, and what changed about the
//! session's permissions. They are parts of a session's log like every other record.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::permission::PermissionUpdate;

/// A call waits for somebody's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Why it asks.
    pub decision: Decision,
    /// Changes that would make the question unnecessary the next time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<PermissionUpdate>,
}

/// Somebody answered. The first answer to a call counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The call.
    pub tool_use_id: String,
    /// True to let it run.
    pub allow: bool,
    /// For a denial: what the model is told.
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
    /// Who answered.
    pub by: String,
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
    pub by: String,
}

/// The session's permissions changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsChanged {
    /// The changes.
    pub updates: Vec<PermissionUpdate>,
    /// What brought them.
    pub by: String,
}
