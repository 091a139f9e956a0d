//! What a tool answers: content blocks in MCP's shapes, and whether it failed. A failure that was expected is best
//! reported with [`ToolResult::error`]; an `Err` becomes the same, with the error's own text.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a tool answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// What the model reads.
    pub content: Vec<ToolContent>,
    /// True when the tool failed; the model sees that and may try another way.
    pub is_error: bool,
    /// The answer as JSON, for programs that read results.
    pub structured_content: Option<Value>,
}

impl ToolResult {
    /// An answer of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ToolContent::text(text)], ..Self::default() }
    }

    /// An answer of JSON; the model reads its text.
    #[must_use]
    pub fn json(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    /// A failure that the model can read about.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The same with one more block.
    #[must_use]
    pub fn with(mut self, content: ToolContent) -> Self {
        self.content.push(content);
        self
    }

    pub(crate) fn blocks(&self) -> Vec<Value> {
        self.content.iter().map(|block| serde_json::to_value(block).unwrap_or(Value::Null)).collect()
    }

    /// MCP's `CallToolResult`.
    pub(crate) fn wire(&self) -> Value {
        let mut wire = json!({ "content": self.blocks(), "isError": self.is_error });
        if let Some(content) = &self.structured_content {
            wire["structuredContent"] = content.clone();
        }
        wire
    }
}

/// A block of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// For example `image/png`.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Base64.
        data: String,
        /// For example `audio/wav`.
        mime_type: String,
    },
    /// Something that can be looked up.
    ResourceLink {
        /// Where.
        uri: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// Something that comes along.
    Resource {
        /// With `text` or `blob`.
        resource: Value,
    },
}

impl ToolContent {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What the function of a tool may return.
pub trait IntoToolResult {
    /// The result.
    fn into_tool_result(self) -> ToolResult;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> ToolResult {
        self
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for Value {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::json(&self)
    }
}

impl<T: IntoToolResult, E: Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> ToolResult {
        match self {
            Ok(result) => result.into_tool_result(),
            Err(error) => ToolResult::error(error.to_string()),
        }
    }
}
