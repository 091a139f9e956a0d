//! What of a conversation the server at hand does not get: reasoning that another one wrote and images that it does not
//! take. Only messages that were not looked at before are, so that a turn costs what it adds.

use std::sync::Arc;

use qoder_core::ports::PromptMessage;
use qoder_types::{ContentBlock, MessageContent};

use crate::profile::{Images, Profile, ReasoningBack};
use crate::protocol::Protocol;
use crate::wires::media;
use crate::wires::reasoning::{KeptReasoning, RESPONSES_SIGNATURE, is_anthropic_signature};

/// How much is left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    reasoning: usize,
    media: usize,
}

/// Counts what `messages` lose on this route.
pub(crate) fn left_out(messages: &[Arc<PromptMessage>], protocol: Protocol, profile: &Profile) -> LeftOut {
    let mut count = LeftOut::default();
    for prompt in messages {
        let MessageContent::Blocks(blocks) = &prompt.message.content else { continue };
        for block in blocks {
            count.reasoning += usize::from(is_lost(block, protocol, profile));
            if profile.images == Images::None {
                count.media += match block {
                    ContentBlock::ToolResult { content, .. } => media::images_of(content).count(),
                    other => usize::from(media::is_media(other)),
                };
            }
        }
    }
    count
}

/// True for reasoning of another wire that has no place here. A server's own is no loss: it takes back what it wants.
fn is_lost(block: &ContentBlock, protocol: Protocol, profile: &Profile) -> bool {
    let (thinking, signature) = match block {
        ContentBlock::Thinking { thinking, signature } => (thinking, signature),
        ContentBlock::RedactedThinking { .. } => return protocol != Protocol::AnthropicMessages,
        ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::Document { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Unknown(_) => return false,
    };
    if thinking.is_empty() {
        return false;
    }
    let of_chat = KeptReasoning::from_signature(signature);
    let of_responses = signature.starts_with(RESPONSES_SIGNATURE);
    match protocol {
        Protocol::AnthropicMessages => {
            let is_signed =
                is_anthropic_signature(signature) || of_chat.is_some_and(|kept| !kept.blocks.is_empty());
            let is_taken = if signature.is_empty() { profile.unsigned_reasoning } else { is_signed };
            !is_taken || (is_signed && !profile.sends("signature"))
        }
        Protocol::OpenAiChat => {
            let takes_signed =
                profile.reasoning == ReasoningBack::ThinkingBlocks && is_anthropic_signature(signature);
            of_chat.is_none() && !takes_signed && !profile.reasoning_required
        }
        Protocol::OpenAiResponses => !of_responses,
    }
}

impl LeftOut {
    /// For people; none when nothing is lost.
    pub(crate) fn in_words(self) -> Option<String> {
        let some = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            more => Some(format!("{more} {many}")),
        };
        let parts: Vec<String> = [
            some(
                self.reasoning,
                "block of reasoning of another model",
                "blocks of reasoning of another model",
            ),
            some(self.media, "image or document", "images or documents"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}
