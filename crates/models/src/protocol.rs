//! The wire protocols, by name. How each of them is spoken is in `wires`.

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    AnthropicMessages,
    OpenAiChat,
    OpenAiResponses,
}

impl Protocol {
    /// Reads a protocol as people write it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "anthropic-messages" | "anthropic" => Self::AnthropicMessages,
            "openai-chat" | "openai" => Self::OpenAiChat,
            "openai-responses" => Self::OpenAiResponses,
            _ => return None,
        })
    }

    /// The name in settings and recordings; also names the encoding of a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    /// The path below `/v1`.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "messages",
            Self::OpenAiChat => "chat/completions",
            Self::OpenAiResponses => "responses",
        }
    }

    /// The model to ask for when the user named none.
    pub(crate) fn default_model(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "claude-sonnet-4-5",
            Self::OpenAiChat | Self::OpenAiResponses => "gpt-5",
        }
    }
}
