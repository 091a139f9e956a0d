//! What the offline model sees of a conversation: the last thing a person asked and the tool
//! calls since, with results. Reminders that the runtime adds to messages are not words of the
//! person.

use std::sync::Arc;

use qoder_core::ports::PromptMessage;
use qoder_types::{ContentBlock, MessageContent, Role};
use serde_json::Value;

/// A tool call and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) output: String,
    pub(super) is_error: bool,
}

impl Step {
    /// A text field of the input.
    pub(super) fn field(&self, name: &str) -> &str {
        self.input.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The last request of a person and what was done about it.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) prompt: String,
    pub(super) steps: Vec<Step>,
}

impl Conversation {
    pub(super) fn read(messages: &[Arc<PromptMessage>]) -> Self {
        let mut start = messages.len();
        let mut prompt = String::new();
        while start > 0 {
            start -= 1;
            if let Some(text) = prompt_of(&messages[start]) {
                prompt = text;
                break;
            }
        }
        let mut steps: Vec<(String, Step)> = Vec::new();
        for message in &messages[start..] {
            let MessageContent::Blocks(blocks) = &message.message.content else { continue };
            for block in blocks {
                match block {
                    ContentBlock::ToolUse { id, name, input } => steps.push((
                        id.clone(),
                        Step {
                            name: name.clone(),
                            input: input.clone(),
                            output: String::new(),
                            is_error: false,
                        },
                    )),
                    ContentBlock::ToolResult { tool_use_id, content, is_error } => {
                        if let Some((_, step)) = steps.iter_mut().rev().find(|(id, _)| id == tool_use_id) {
                            step.output = content.to_text();
                            step.is_error = *is_error;
                        }
                    }
                    _ => {}
                }
            }
        }
        Self { prompt, steps: steps.into_iter().map(|(_, step)| step).collect() }
    }
}

/// The person's words in a message, unless it only carries tool results or reminders.
pub(super) fn prompt_of(message: &PromptMessage) -> Option<String> {
    if message.message.role != Role::User {
        return None;
    }
    let texts: Vec<String> = match &message.message.content {
        MessageContent::Text(text) => vec![without_reminders(text)],
        MessageContent::Blocks(blocks) => {
            if blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. })) {
                return None;
            }
            blocks
                .iter()
                .filter_map(|block| match block {
                    ContentBlock::Text { text } => Some(without_reminders(text)),
                    _ => None,
                })
                .collect()
        }
    };
    texts.into_iter().rev().map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
}

fn without_reminders(text: &str) -> String {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let mut rest = text;
    let mut kept = String::new();
    while let Some(start) = rest.find(OPEN) {
        kept.push_str(&rest[..start]);
        rest = match rest[start..].find(CLOSE) {
            Some(end) => &rest[start + end + CLOSE.len()..],
            None => "",
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use qoder_types::{Message, ToolResultContent};

    #[test]
    fn reminders_and_results_are_not_the_prompt() {
        let message = |role, content| Arc::new(PromptMessage::new(Message { role, content }));
        let messages = vec![
            message(Role::User, MessageContent::Text("old".into())),
            message(Role::Assistant, MessageContent::Text("ok".into())),
            message(
                Role::User,
                MessageContent::Text("show a.txt<system-reminder>be nice</system-reminder>".into()),
            ),
            message(
                Role::Assistant,
                MessageContent::Blocks(vec![ContentBlock::ToolUse {
                    id: "1".into(),
                    name: "Read".into(),
                    input: serde_json::json!({"file_path": "a.txt"}),
                }]),
            ),
            message(
                Role::User,
                MessageContent::Blocks(vec![
                    ContentBlock::ToolResult {
                        tool_use_id: "1".into(),
                        content: ToolResultContent::Text("     1\thello".into()),
                        is_error: false,
                    },
                    ContentBlock::text("a reminder"),
                ]),
            ),
        ];
        let conversation = Conversation::read(&messages);
        assert_eq!(conversation.prompt, "show a.txt");
        assert_eq!(conversation.steps.len(), 1);
        assert_eq!(conversation.steps[0].output, "     1\thello");
    }
}
