//! Replies of the model: complete, in pieces, and what it suggests to ask next.

use qoder_types::record;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContentBlock, Role, StopReason, Usage, extra, present, require};

/// A reply of the model. One turn may have several; only [`ResultMessage`](super::ResultMessage) ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// What the model said.
    pub message: AssistantContent,
    /// The `Agent` call this belongs to; null on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// The session.
    #[serde(default)]
    #[schemars(with = "String")]
    pub session_id: Option<String>,
    /// The transcript entry.
    #[serde(default)]
    #[schemars(with = "String")]
    pub uuid: Option<String>,
    /// The provider's id of the request, where the environment asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Why the model was not answering, on a message that stands for a failed call: `authentication_failed`,
    /// `billing_error`, `rate_limit`, `invalid_request`, `server_error` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

impl AssistantMessage {
    /// The content blocks.
    #[must_use]
    pub fn content(&self) -> &[ContentBlock] {
        &self.message.content
    }

    /// The text blocks, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        qoder_types::content::join_text(&self.message.content)
    }
}

/// The model's reply itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = always_written)]
pub struct AssistantContent {
    /// The provider's id.
    #[serde(default)]
    pub id: String,
    /// Always `message`.
    #[serde(rename = "type", default = "message_kind")]
    pub kind: String,
    /// Always the assistant.
    #[serde(default = "assistant_role")]
    pub role: Role,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// What it said.
    pub content: Vec<ContentBlock>,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// Always null where this runtime writes it; readers expect the key.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nullable_text")]
    pub stop_sequence: Option<Value>,
    /// What it cost in tokens.
    #[serde(default)]
    #[schemars(with = "Usage")]
    pub usage: Option<Usage>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

impl Default for AssistantContent {
    fn default() -> Self {
        Self {
            id: String::new(),
            kind: message_kind(),
            role: Role::Assistant,
            model: String::new(),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: Some(Value::Null),
            usage: None,
            extra: Map::new(),
        }
    }
}

impl From<record::AssistantMessage> for AssistantContent {
    fn from(reply: record::AssistantMessage) -> Self {
        Self {
            id: reply.id,
            kind: reply.kind,
            role: reply.role,
            model: reply.model,
            content: reply.content,
            stop_reason: reply.stop_reason,
            stop_sequence: Some(reply.stop_sequence.map_or(Value::Null, Value::String)),
            usage: Some(reply.usage),
            extra: Map::new(),
        }
    }
}

fn always_written(schema: &mut Schema) {
    require(schema, &["stop_sequence"]);
}

/// A key that is always there.
fn nullable_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"] })
}

fn message_kind() -> String {
    "message".to_owned()
}

fn assistant_role() -> Role {
    Role::Assistant
}

/// A piece of a reply, in the shape of the Messages API's stream; only when the host wants pieces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEvent {
    /// The event as it came: `content_block_delta` and the rest.
    pub event: Value,
    /// The `Agent` call this belongs to; null on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// The session.
    pub session_id: String,
    /// New for each message.
    pub uuid: String,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

impl StreamEvent {
    /// The new text, when the event brings some.
    ///
    /// ```
    /// # use qoder_protocol::messages::StreamEvent;
    /// # use serde_json::json;
    /// let event = json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "Hi" } });
    /// assert_eq!(StreamEvent { event, ..StreamEvent::default() }.text(), Some("Hi"));
    /// ```
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let delta = self.event.get("delta").filter(|delta| delta["type"] == "text_delta")?;
        delta.get("text")?.as_str()
    }
}

/// What the person might ask next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptSuggestion {
    /// The prompt.
    pub suggestion: String,
    /// New for each message.
    #[serde(default)]
    pub uuid: String,
    /// The session.
    #[serde(default)]
    pub session_id: String,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}
