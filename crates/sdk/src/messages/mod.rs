//! The messages of a session as values: one type for each documented kind, and [`Message::Unknown`] for kinds that
//! this version does not know. All of them read and write exactly the JSON that travels; fields that are not known are
//! kept in `extra`.

mod result;
mod system;
mod user;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use result::{PermissionDenial, ResultMessage, SubagentAccount};
pub use system::{InitMessage, SystemMessage};
pub use user::{UserContent, UserMessage};

pub use qoder_types::{
    ContentBlock, ImageSource, MessageContent, ModelTotals as ModelUsage, Role, ToolResultContent, Usage,
};

/// One message of a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// A reply of the model.
    Assistant(Box<AssistantMessage>),
    /// A tool result, or an echoed prompt.
    User(Box<UserMessage>),
    /// News of the runtime.
    System(Box<SystemMessage>),
    /// The end of a turn.
    Result(Box<ResultMessage>),
    /// A piece of a reply; only with `include_partial_messages`.
    StreamEvent(Box<StreamEvent>),
    /// What the person might ask next; only with `prompt_suggestions`, after a result.
    PromptSuggestion(Box<PromptSuggestion>),
    /// A kind that this version does not know, as it came.
    Unknown(Value),
}

impl Message {
    /// Reads the JSON of a message. What is not one of the known kinds, or lacks what its kind needs, is
    /// [`Message::Unknown`]; nothing is lost.
    ///
    /// ```
    /// # use qoder_agent_sdk::Message;
    /// # use serde_json::json;
    /// let message = Message::from_value(json!({ "type": "keep_alive" }));
    /// assert_eq!(message, Message::Unknown(json!({ "type": "keep_alive" })));
    /// ```
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        fn read<T: for<'de> Deserialize<'de>>(
            value: Value,
            known: impl FnOnce(Box<T>) -> Message,
        ) -> Message {
            match T::deserialize(&value) {
                Ok(message) => known(Box::new(message)),
                Err(_) => Message::Unknown(value),
            }
        }
        match value.get("type").and_then(Value::as_str) {
            Some("assistant") => read(value, Self::Assistant),
            Some("user") => read(value, Self::User),
            Some("system") => read(value, Self::System),
            Some("result") => read(value, Self::Result),
            Some("stream_event") => read(value, Self::StreamEvent),
            Some("prompt_suggestion") => read(value, Self::PromptSuggestion),
            Some(_) | None => Self::Unknown(value),
        }
    }

    /// The session it belongs to.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        match self {
            Self::Assistant(message) => message.session_id.as_deref(),
            Self::User(message) => message.session_id.as_deref(),
            Self::System(message) => message.text("session_id"),
            Self::Result(message) => Some(&message.session_id),
            Self::StreamEvent(message) => Some(&message.session_id),
            Self::PromptSuggestion(message) => Some(&message.session_id),
            Self::Unknown(value) => value.get("session_id").and_then(Value::as_str),
        }
    }

    /// The result, when this is the end of a turn.
    #[must_use]
    pub fn as_result(&self) -> Option<&ResultMessage> {
        match self {
            Self::Result(result) => Some(result),
            Self::Assistant(_)
            | Self::User(_)
            | Self::System(_)
            | Self::StreamEvent(_)
            | Self::PromptSuggestion(_)
            | Self::Unknown(_) => None,
        }
    }

    /// The reply, when this is one.
    #[must_use]
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            Self::Result(_)
            | Self::User(_)
            | Self::System(_)
            | Self::StreamEvent(_)
            | Self::PromptSuggestion(_)
            | Self::Unknown(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value)
    }
}

/// A message's own fields with its `type` in front.
#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    message: &'a T,
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Assistant(message) => Tagged { kind: "assistant", message }.serialize(serializer),
            Self::User(message) => Tagged { kind: "user", message }.serialize(serializer),
            Self::System(message) => Tagged { kind: "system", message }.serialize(serializer),
            Self::Result(message) => Tagged { kind: "result", message }.serialize(serializer),
            Self::StreamEvent(message) => Tagged { kind: "stream_event", message }.serialize(serializer),
            Self::PromptSuggestion(message) => {
                Tagged { kind: "prompt_suggestion", message }.serialize(serializer)
            }
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

/// Everything in a message that has no field of its own, apart from the word that says its kind.
pub(crate) fn extra<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let mut map = Map::deserialize(deserializer)?;
    map.remove("type");
    Ok(map)
}

/// A reply of the model. One turn may have several; only [`ResultMessage`] ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// What the model said.
    pub message: AssistantContent,
    /// The `Agent` call this belongs to; `None` on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// The session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The transcript entry.
    #[serde(default)]
    pub uuid: Option<String>,
    /// Set on a message that reports a failure, for example `rate_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantContent {
    /// The provider's id.
    #[serde(default)]
    pub id: String,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// What it said.
    pub content: Vec<ContentBlock>,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Fields that this version does not know; also `type` and `role`, which are always the same.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A piece of a reply, in the shape of the Messages API's stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// New for each event.
    pub uuid: String,
    /// The session.
    pub session_id: String,
    /// The event as it came: `content_block_delta` and the rest.
    pub event: Value,
    /// The `Agent` call this belongs to; `None` on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    pub extra: Map<String, Value>,
}

impl StreamEvent {
    /// The new text, when the event brings some.
    ///
    /// ```
    /// # use qoder_agent_sdk::StreamEvent;
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    pub extra: Map<String, Value>,
}
