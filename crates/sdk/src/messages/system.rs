//! News of the runtime. Every subtype reaches the program: the common one, `init`, has a type of its own, all others
//! are read from `data`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::extra;

/// News of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemMessage {
    /// `init`, `compact_boundary`, `status`, `task_started` and many others.
    pub subtype: String,
    /// All other fields.
    #[serde(flatten, deserialize_with = "extra")]
    pub data: Map<String, Value>,
}

impl SystemMessage {
    /// A field that is a text.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field)?.as_str()
    }

    /// What the session is, when this is `init`.
    #[must_use]
    pub fn init(&self) -> Option<InitMessage> {
        if self.subtype != "init" {
            return None;
        }
        serde_json::from_value(Value::Object(self.data.clone())).ok()
    }
}

/// What the session is, at the start of every turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InitMessage {
    /// The session.
    pub session_id: String,
    /// Working directory.
    pub cwd: String,
    /// The model's name.
    pub model: String,
    /// The mode in force.
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
    /// What the model may call.
    pub tools: Vec<String>,
    /// MCP servers with `name` and `status`.
    pub mcp_servers: Vec<Value>,
    /// Slash commands.
    pub slash_commands: Vec<String>,
    /// Subagents.
    pub agents: Vec<String>,
    /// Skills.
    pub skills: Vec<String>,
    /// Where the key came from.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    /// Version of the runtime.
    pub qodercli_version: String,
    /// True when the built-in offline model answers, which is not a language model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// All other fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
