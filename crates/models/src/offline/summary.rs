//! A summary without understanding: quotes what the person asked and what was done, newest last,
//! within a fixed length. Used when a conversation is compacted while no language model is at
//! hand.

use std::sync::Arc;

use qoder_core::ports::PromptMessage;
use qoder_types::{ContentBlock, MessageContent, Role};

use super::conversation::prompt_of;

const MOST_LINES: usize = 60;
const MOST_CHARACTERS: usize = 160;

/// Writes an extractive summary.
pub(crate) fn write(messages: &[Arc<PromptMessage>]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        match message.message.role {
            Role::User => {
                lines.extend(prompt_of(message).map(|text| format!("- The user said: {}", short(&text))))
            }
            Role::Assistant => lines.extend(assistant_lines(&message.message.content)),
        }
    }
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let mut text = String::from(
        "Summary of the conversation so far, as quotes (made by rules, not by a language model):\n",
    );
    if left_out > 0 {
        text.push_str(&format!("- ({left_out} earlier entries are left out)\n"));
    }
    for line in lines.iter().skip(left_out) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn assistant_lines(content: &MessageContent) -> Vec<String> {
    match content {
        MessageContent::Text(text) => vec![format!("- The answer was: {}", short(text))],
        MessageContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } if !text.trim().is_empty() => {
                    Some(format!("- The answer was: {}", short(text)))
                }
                ContentBlock::ToolUse { name, input, .. } => {
                    Some(format!("- The tool {name} was called with {}", short(&input.to_string())))
                }
                _ => None,
            })
            .collect(),
    }
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
