//! Messages of the user: prompts on their way in, and tool results and echoed prompts on their way out. Both have the
//! same shape.

use qoder_types::Message;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContentBlock, MessageContent, Role, extra, require};

/// A prompt, a tool result or an echoed prompt.
///
/// ```
/// # use qoder_protocol::messages::UserMessage;
/// let message = UserMessage::new("What is in this folder?").with_uuid("my-first-message");
/// assert_eq!(message.text(), "What is in this folder?");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = always_written)]
pub struct UserMessage {
    /// Role and content.
    pub message: UserContent,
    /// The `Agent` call this belongs to; null on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// The session. On the way in it selects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub session_id: Option<String>,
    /// The transcript entry. On the way in: the name under which the message can be cancelled and rewound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub uuid: Option<String>,
    /// The tool's typed output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Value>,
    /// True for an echoed prompt.
    #[serde(default, rename = "isReplay", skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
    /// True for texts of the runtime.
    #[serde(default, rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
    /// What the host wants to find on every user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_context: Option<Map<String, Value>>,
    /// For an echoed prompt: what the person wrote, when the message is the expansion of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    /// For a tool result: milliseconds the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

/// Role and content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserContent {
    /// Always the user.
    #[serde(default = "user_role")]
    pub role: Role,
    /// What is said.
    pub content: MessageContent,
}

impl Default for UserContent {
    fn default() -> Self {
        Self { role: Role::User, content: MessageContent::Text(String::new()) }
    }
}

impl From<Message> for UserContent {
    fn from(message: Message) -> Self {
        Self { role: message.role, content: message.content }
    }
}

impl From<UserContent> for Message {
    fn from(message: UserContent) -> Self {
        Self { role: message.role, content: message.content }
    }
}

fn always_written(schema: &mut Schema) {
    require(schema, &["session_id", "uuid"]);
}

fn user_role() -> Role {
    Role::User
}

impl UserMessage {
    /// A prompt of plain text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::with_content(MessageContent::Text(text.into()))
    }

    /// A prompt of blocks: text, images and documents.
    #[must_use]
    pub fn blocks(blocks: Vec<ContentBlock>) -> Self {
        Self::with_content(MessageContent::Blocks(blocks))
    }

    fn with_content(content: MessageContent) -> Self {
        Self { message: UserContent { role: Role::User, content }, ..Self::default() }
    }

    /// The same message under a name of your own, unique in the session.
    #[must_use]
    pub fn with_uuid(mut self, uuid: impl Into<String>) -> Self {
        self.uuid = Some(uuid.into());
        self
    }

    /// The text parts, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        self.message.content.to_text()
    }

    /// The content as blocks; empty for plain text.
    #[must_use]
    pub fn content(&self) -> &[ContentBlock] {
        match &self.message.content {
            MessageContent::Text(_) => &[],
            MessageContent::Blocks(blocks) => blocks,
        }
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
