//! Messages of the user: prompts on their way in, and tool results and echoed prompts on their way out. Both have the
//! same shape.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContentBlock, MessageContent, Role, extra};

/// A prompt, a tool result or an echoed prompt.
///
/// ```
/// # use qoder_agent_sdk::UserMessage;
/// let message = UserMessage::new("What is in this folder?").with_uuid("my-first-message");
/// assert_eq!(message.text(), "What is in this folder?");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Role and content.
    pub message: UserContent,
    /// The `Agent` call this belongs to; `None` on the main thread.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// The session. On the way in it selects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The transcript entry. On the way in: the name under which the message can be cancelled and rewound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The tool's typed output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Value>,
    /// Fields that this version does not know, such as `isReplay`.
    #[serde(flatten, deserialize_with = "extra")]
    pub extra: Map<String, Value>,
}

/// Role and content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserContent {
    /// Always the user.
    #[serde(default = "user_role")]
    pub role: Role,
    /// What is said.
    pub content: MessageContent,
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
        Self {
            message: UserContent { role: Role::User, content },
            parent_tool_use_id: None,
            session_id: None,
            uuid: None,
            tool_use_result: None,
            extra: Map::new(),
        }
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

    /// Why it cannot be a prompt, if so.
    pub(crate) fn complaint(&self) -> Option<&'static str> {
        let text = self.text();
        if self.message.role != Role::User {
            return Some("a user message has another role than `user`");
        }
        if text.trim().is_empty() && self.content().is_empty() {
            return Some("a user message is empty");
        }
        text.contains('\0').then_some("a user message contains a NUL character")
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
