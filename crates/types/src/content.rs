//! Content blocks and messages in the shape in which they travel: to the model, in the transcript and on the stream.
//! Blocks that this version does not know are kept whole and passed through.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks in a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, a tool result or the runtime.
    User,
    /// The model.
    Assistant,
}

/// Where the bytes of an image or document are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    /// The bytes themselves, base64 encoded.
    Base64 {
        /// For example `image/png`.
        media_type: String,
        /// Standard base64 with padding.
        data: String,
    },
    /// A public address that the provider fetches.
    Url {
        /// The address.
        url: String,
    },
}

/// The content of a tool result: plain text or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolResultContent {
    /// Plain text.
    Text(String),
    /// Text and image blocks.
    Blocks(Vec<ContentBlock>),
}

impl ToolResultContent {
    /// The text parts, joined by newlines.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => join_text(blocks),
        }
    }
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Prose.
    Text {
        /// The text.
        #[serde(default)]
        text: String,
    },
    /// An image given to the model.
    Image {
        /// The bytes or where they are.
        source: ImageSource,
    },
    /// A document given to the model.
    Document {
        /// The bytes or where they are.
        source: ImageSource,
        /// Further fields such as `title`, kept as sent.
        #[serde(flatten)]
        extra: serde_json::Map<String, Value>,
    },
    /// The model asks for a tool to be run.
    ToolUse {
        /// Identifies the call within the session.
        id: String,
        /// The tool's name as advertised.
        name: String,
        /// The arguments. When the model sent text that is not JSON this is a string with that text.
        #[serde(default)]
        input: Value,
    },
    /// What a tool call came to.
    ToolResult {
        /// The call it belongs to.
        tool_use_id: String,
        /// What the model reads.
        content: ToolResultContent,
        /// True when the call failed, was denied, or has no known outcome.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// The model's reasoning, with the provider's proof that it is unchanged.
    Thinking {
        /// Readable reasoning; may be empty.
        thinking: String,
        /// The provider's signature; empty when it has none. Always present on the wire.
        #[serde(default)]
        signature: String,
    },
    /// Reasoning that the provider encrypted.
    RedactedThinking {
        /// Opaque bytes to send back.
        data: String,
    },
    /// A block of a kind this version does not know, kept as it came.
    #[serde(untagged)]
    Unknown(Value),
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The content of a message: plain text or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<ContentBlock>),
}

impl MessageContent {
    /// The text parts, joined by newlines.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => join_text(blocks),
        }
    }

    /// The content as blocks; plain text becomes one text block.
    #[must_use]
    pub fn into_blocks(self) -> Vec<ContentBlock> {
        match self {
            Self::Text(text) => vec![ContentBlock::Text { text }],
            Self::Blocks(blocks) => blocks,
        }
    }
}

/// A message as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: MessageContent,
}

impl Message {
    /// A user message of plain text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: MessageContent::Text(text.into()) }
    }
}

/// The text blocks among `blocks`, joined by newlines.
#[must_use]
pub fn join_text(blocks: &[ContentBlock]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}
