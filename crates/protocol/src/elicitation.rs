//! An MCP server's question to a person, and the answer. What is entered goes to the server and is not kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An MCP server wants input of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// Identifies the question.
    pub elicitation_id: String,
    /// The server, by the name of its configuration.
    pub server_name: String,
    /// What it says to the person: untrusted.
    pub message: String,
    /// JSON Schema of the wanted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// What the person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    /// Gave the content.
    Accept,
    /// Said no.
    Decline,
    /// Did not answer.
    Cancel,
}

/// The answer to an [`Elicitation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    /// What the person did.
    pub action: ElicitationAction,
    /// What was entered; matches the requested schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}
