//! The messages of a request as one server takes them: encoded for its profile, and where it wants roles to alternate,
//! those of one role in a row as one. Such rows come from turns that failed: the next prompt follows the last.

use std::sync::Arc;

use bytes::Bytes;
use qoder_core::ports::PromptMessage;
use qoder_types::{ContentBlock, Message, MessageContent, Role};

use crate::profile::Profile;
use crate::protocol::Protocol;
use crate::wires::media::images_of;

/// The elements of the list of messages, in order; none of them is empty. `key` identifies protocol and profile.
pub(crate) fn pieces(
    messages: &[Arc<PromptMessage>],
    protocol: Protocol,
    profile: &Profile,
    key: u64,
) -> Vec<Bytes> {
    let encode = |message: &Message| protocol.encode(message, profile);
    let is_strict = profile.roles_alternate || !profile.user_after_tool;
    let mut pieces: Vec<Bytes> = Vec::with_capacity(messages.len());
    let mut row: Vec<&Message> = Vec::new();
    for prompt in messages {
        let bytes = prompt.encoded(key, encode);
        if bytes.is_empty() {
            continue;
        }
        let message = &prompt.message;
        let joins = is_strict && row.last().is_some_and(|last| collide(last, message, protocol, profile));
        if !joins {
            row.clear();
            row.push(message);
            pieces.push(bytes);
            continue;
        }
        row.push(message);
        if let Some(last) = pieces.last_mut() {
            *last = encode(&joined(&row));
        }
    }
    pieces
}

/// True when these two, one behind the other, would be two messages of one role at the server.
fn collide(first: &Message, second: &Message, protocol: Protocol, profile: &Profile) -> bool {
    if first.role != second.role {
        return false;
    }
    match (protocol, first.role) {
        (Protocol::AnthropicMessages, _) | (_, Role::Assistant) => true,
        // Results are messages or items of their own kind, in front of everything else.
        (Protocol::OpenAiChat | Protocol::OpenAiResponses, Role::User) => {
            let ends_as_user = blocks(first).any(|block| match block {
                ContentBlock::ToolResult { content, .. } => images_of(content).next().is_some(),
                _ => true,
            });
            let starts_as_user = !blocks(second).any(is_result);
            let text = matches!(first.content, MessageContent::Text(_));
            starts_as_user && (text || ends_as_user || !profile.user_after_tool)
        }
    }
}

fn is_result(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult { .. })
}

fn blocks(message: &Message) -> impl Iterator<Item = &ContentBlock> {
    match &message.content {
        MessageContent::Text(_) => [].iter(),
        MessageContent::Blocks(blocks) => blocks.iter(),
    }
}

/// Several messages of one role as one.
fn joined(row: &[&Message]) -> Message {
    let mut all = Vec::new();
    for message in row {
        match &message.content {
            MessageContent::Text(text) => all.push(ContentBlock::text(text.clone())),
            MessageContent::Blocks(blocks) => all.extend(blocks.iter().cloned()),
        }
    }
    let role = row.first().map_or(Role::User, |message| message.role);
    Message { role, content: MessageContent::Blocks(all) }
}
