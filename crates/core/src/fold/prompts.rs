//! What of a user's message a model reads. A log may hold messages that no model takes, from an earlier release or another
//! program; what cannot be sent is put into words, so that the conversation can be continued.

use qoder_types::record::InputProblem;
use qoder_types::{ContentBlock, Message, MessageContent};
use serde_json::Value;

/// The message as a model can read it.
pub(super) fn readable(message: &Message) -> Message {
    let content = match &message.content {
        MessageContent::Text(text) => MessageContent::Text(text.clone()),
        MessageContent::Blocks(blocks) => MessageContent::Blocks(blocks.iter().map(readable_block).collect()),
    };
    Message { role: message.role, content }
}

fn readable_block(block: &ContentBlock) -> ContentBlock {
    match block {
        // A prompt follows no open call, so this is the result of none.
        ContentBlock::ToolResult { content, .. } => ContentBlock::text(content.to_text()),
        ContentBlock::Unknown(value) if value["type"] == "tool_result" => {
            ContentBlock::text(match &value["content"] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            })
        }
        other => match InputProblem::of_block(other) {
            Some(problem) => ContentBlock::text(format!("[left out: {problem}]")),
            None => other.clone(),
        },
    }
}
