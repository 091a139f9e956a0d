//! The three wire protocols behind one face: how a request becomes bytes and how a
//! response becomes a reply. Everything that differs between them is in their own
//! modules.

use bytes::Bytes;
use qoder_core::ports::ModelRequest;
use qoder_types::{Message, ModelFailure};

use crate::call::{Decoded, Sink};
use crate::profile::Profile;
use crate::{anthropic, json, openai_chat, openai_responses};

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    AnthropicMessages,
    OpenAiChat,
    OpenAiResponses,
}

/// The parts of a request that decide its head, besides system prompt and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadOptions {
    pub(crate) model: String,
    pub(crate) max_tokens: u64,
    /// True when the request set the limit or it is known: only then it is sent where it can be left out.
    pub(crate) is_limited: bool,
    pub(crate) profile: Profile,
}

impl HeadOptions {
    /// True when the output limit is part of the request.
    pub(crate) fn sends_limit(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::AnthropicMessages => true,
            Protocol::OpenAiChat => openai_chat::request::limit_field(self).is_some(),
            Protocol::OpenAiResponses => self.is_limited && self.profile.sends("max_output_tokens"),
        }
    }
}

/// Fields that requests have by themselves.
const OWN_FIELDS: [&str; 19] = [
    "model",
    "stream",
    "stream_options",
    "store",
    "include",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "system",
    "instructions",
    "tools",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "cache_control",
    "prompt_cache_key",
    "messages",
    "input",
];

/// Writes the parameters of a request that it does not have by itself.
pub(crate) fn write_parameters(out: &mut Vec<u8>, request: &ModelRequest, profile: &Profile) {
    for (name, value) in &request.parameters {
        if !OWN_FIELDS.contains(&name.as_str()) && profile.sends(name) {
            json::field(out, name, value);
        }
    }
}

/// Reads the events of one response.
pub(crate) trait Decoder: Send {
    /// Takes the `data` of one event. `Ok(true)` when the reply is complete.
    fn event(&mut self, data: String) -> Result<bool, ModelFailure>;
    /// True when the reply counts as complete although the connection ended without a last event.
    fn may_end(&self) -> bool {
        false
    }
    /// True when everything was said although no event says so: the last one came, or the connection ended behind it.
    fn is_said(&mut self) -> bool {
        false
    }
    /// The reply. Only called when it is complete.
    fn finish(self: Box<Self>) -> Decoded;
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

    /// A number for this protocol as a server with this profile takes it.
    pub(crate) fn key(self, profile: &Profile) -> u64 {
        let own = match self {
            Self::AnthropicMessages => 1,
            Self::OpenAiChat => 2,
            Self::OpenAiResponses => 3,
        };
        profile.fingerprint().wrapping_mul(4).wrapping_add(own)
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

    /// Everything of the body in front of the first message, up to and including the opening bracket. The second part
    /// is a first element of the list, or empty.
    pub(crate) fn head(self, options: &HeadOptions, request: &ModelRequest) -> (Bytes, Bytes) {
        match self {
            Self::AnthropicMessages => (anthropic::request::head(options, request), Bytes::new()),
            Self::OpenAiChat => openai_chat::request::head(options, request),
            Self::OpenAiResponses => (openai_responses::request::head(options, request), Bytes::new()),
        }
    }

    /// One message as elements of the list, comma separated; empty when nothing of it can be sent.
    pub(crate) fn encode(self, message: &Message, profile: &Profile) -> Bytes {
        match self {
            Self::AnthropicMessages => anthropic::request::encode(message, profile),
            Self::OpenAiChat => openai_chat::request::encode(message, profile),
            Self::OpenAiResponses => openai_responses::request::encode(message, profile),
        }
    }

    /// A decoder for one response.
    pub(crate) fn decoder(self, sink: Option<Sink>, profile: &Profile) -> Box<dyn Decoder> {
        match self {
            Self::AnthropicMessages => Box::new(anthropic::stream::Decoder::new(sink)),
            Self::OpenAiChat => Box::new(openai_chat::stream::Decoder::new(sink, profile.think_tags)),
            Self::OpenAiResponses => Box::new(openai_responses::stream::Decoder::new(sink)),
        }
    }

    /// A response that came in one piece of JSON although a stream was asked for.
    pub(crate) fn whole(self, body: &str, profile: &Profile) -> Option<Decoded> {
        match self {
            Self::AnthropicMessages => anthropic::stream::whole(body),
            Self::OpenAiChat => openai_chat::stream::whole(body, profile.think_tags),
            Self::OpenAiResponses => openai_responses::stream::whole(body),
        }
    }
}

/// True for OpenAI models that reason: they name the output limit differently and take an effort.
pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut letters = name.chars();
    (letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit()))
        || name.starts_with("gpt-5")
        || name.starts_with("codex-")
}

/// True for OpenAI models that are known not to reason and refuse to be asked for it.
pub(crate) fn is_plain_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|prefix| name.starts_with(prefix))
}

/// The efforts that the OpenAI protocols know; stronger ones become the strongest.
pub(crate) fn openai_effort(effort: &str) -> &str {
    match effort {
        "xhigh" | "max" => "high",
        other => other,
    }
}
