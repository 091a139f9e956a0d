//! The wire protocols behind one face: how a request becomes bytes and how a response becomes a reply. Everything that
//! differs between them is in their own folders; what they share is beside those.

mod anthropic;
pub(crate) mod call_id;
pub(crate) mod carry;
pub(crate) mod compose;
pub(crate) mod head;
pub(crate) mod json;
pub(crate) mod media;
mod openai;
mod openai_chat;
mod openai_responses;
pub(crate) mod partial;
mod reasoning;
pub(crate) mod reply;

use bytes::Bytes;
use qoder_core::ports::ModelRequest;
use qoder_types::Message;

use self::head::HeadOptions;
use self::reply::{Decoded, Decoder, Sink};
use crate::profile::Profile;
use crate::protocol::Protocol;

pub(crate) use anthropic::stream::stop_reason;

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

impl Protocol {
    /// A number for this protocol as a server with this profile takes it.
    pub(crate) fn key(self, profile: &Profile) -> u64 {
        let own = match self {
            Self::AnthropicMessages => 1,
            Self::OpenAiChat => 2,
            Self::OpenAiResponses => 3,
        };
        profile.fingerprint().wrapping_mul(4).wrapping_add(own)
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
