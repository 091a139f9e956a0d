//! The messages of a session as values: one type for each documented kind, those that the runtime itself writes, and
//! [`Message::Unknown`] for kinds that this version does not know. All of them read and write exactly the JSON that
//! travels; fields that are not known are kept in `extra`.

mod prompt;
mod system;

use qoder_protocol::messages::StreamMessage;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use prompt::Prompt;
pub(crate) use prompt::{check, refused};
pub use qoder_protocol::messages::{
    AssistantContent, AssistantMessage, ContentBlock, ImageSource, InitMessage, MessageContent, ModelUsage,
    PermissionDenial, PromptSuggestion, ResultMessage, Role, StopReason, StreamEvent, SubagentAccount,
    ToolResultContent, Usage, UserContent, UserMessage,
};
pub use system::SystemMessage;

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

    /// The message that the runtime made, without the detour over JSON where both have the same type.
    pub(crate) fn from_stream(message: &StreamMessage) -> serde_json::Result<Self> {
        Ok(match message {
            StreamMessage::Assistant(message) => Self::Assistant(message.clone()),
            StreamMessage::User(message) => Self::User(message.clone()),
            StreamMessage::System(message) => Self::System(Box::new(SystemMessage::of(message)?)),
            StreamMessage::Result(message) => Self::Result(message.clone()),
            StreamMessage::PromptSuggestion(message) => Self::PromptSuggestion(message.clone()),
        })
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
