//! The messages of a session, in the documented shapes: the runtime writes them, and every reader of the stream reads the
//! same types. Reading is lenient: fields that this version does not know are kept in `extra`, and what may be missing in a
//! message of another program is optional.

mod assistant;
mod result;
mod system;
mod user;
mod word;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use assistant::{AssistantContent, AssistantMessage, PromptSuggestion, StreamEvent};
pub use result::{PermissionDenial, ResultMessage, SubagentAccount};
pub use system::{InitMessage, SystemMessage, TaskUsage, WireCompactMetadata};
pub use user::{UserContent, UserMessage};
pub use word::{Vocabulary, Word};

pub use qoder_types::{
    ContentBlock, ImageSource, MessageContent, ModelTotals as ModelUsage, Role, StopReason,
    ToolResultContent, Usage,
};

/// One line of the output stream.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "made once for each message and passed on by reference")]
pub enum StreamMessage {
    /// A reply of the model.
    Assistant(Box<AssistantMessage>),
    /// A tool result, or a prompt when replay is on.
    User(Box<UserMessage>),
    /// News of the runtime.
    System(SystemMessage),
    /// The end of a turn.
    Result(Box<ResultMessage>),
    /// What the person might ask next.
    PromptSuggestion(Box<PromptSuggestion>),
}

impl StreamMessage {
    /// The id of the message.
    #[must_use]
    pub fn uuid(&self) -> &str {
        match self {
            Self::Assistant(message) => message.uuid.as_deref().unwrap_or_default(),
            Self::User(message) => message.uuid.as_deref().unwrap_or_default(),
            Self::System(message) => message.uuid(),
            Self::Result(message) => &message.uuid,
            Self::PromptSuggestion(message) => &message.uuid,
        }
    }
}

/// Marks fields in the schema that the runtime always writes, although a message of another program may lack them.
fn require(schema: &mut Schema, names: &[&str]) {
    let required = schema.ensure_object().entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        required.extend(names.iter().map(|name| Value::from(*name)));
    }
}

/// Everything in a message that has no field of its own, apart from the word that says its kind.
fn extra<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let mut map = Map::deserialize(deserializer)?;
    map.remove("type");
    Ok(map)
}

/// A field that may be null: that is not the same as a field that is missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
