//! From the state to a model request. Within an epoch the request only grows: messages are appended, never changed, so
//! what the model saw last time is a byte prefix of what it sees next.

use std::sync::Arc;

use qoder_types::{ContentBlock, Message, MessageContent, Purpose, Role, ToolResultContent};

use crate::ports::{ModelRequest, PromptMessage, Thinking};
use crate::state::State;

/// Choices of the session that are not in its records.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// The session's id.
    pub session_id: String,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`.
    pub effort: Option<String>,
    /// How much the model may vary its words; its provider's choice without it.
    pub temperature: Option<f64>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
    /// True when someone reads partial replies.
    pub partial: bool,
    /// Whose conversation it is.
    pub purpose: Purpose,
}

/// The request for the next reply.
#[must_use]
pub fn request(state: &State, options: &RenderOptions) -> ModelRequest {
    let epoch = state.epoch.as_ref();
    ModelRequest {
        purpose: options.purpose,
        session_id: options.session_id.clone(),
        system: epoch.map(|epoch| Arc::clone(&epoch.system)).unwrap_or_default(),
        tools: epoch.map(|epoch| Arc::clone(&epoch.tools)).unwrap_or_default(),
        messages: state.prompt.clone(),
        max_output_tokens: options.max_output_tokens,
        thinking: options.thinking,
        effort: options.effort.clone(),
        parameters: options
            .temperature
            .map(|value| ("temperature".to_owned(), value.into()))
            .into_iter()
            .collect(),
        partial: options.partial,
    }
}

const COMPACTION_PROMPT: &str = "Write a summary of this conversation that lets someone else continue the work \
without having read it. Do not call tools. Cover, in this order: what the user asked for, in their own words where \
the wording matters; decisions and constraints; files and commands that matter, with exact paths and names; what has \
been done and what came of it, errors included; what is left to do and the very next step. Leave out what no longer \
matters.";

/// The request for a summary of the conversation. `shrink` counts how often the provider said that even this is too
/// long: each level keeps half of what the one before kept, newest first. `instructions` are a person's words on what
/// the summary is to keep.
#[must_use]
pub fn compaction_request(
    state: &State,
    options: &RenderOptions,
    shrink: u32,
    instructions: Option<&str>,
) -> ModelRequest {
    let keep = (state.prompt.len() >> shrink).max(1);
    let mut messages: Vec<Arc<PromptMessage>> = Vec::with_capacity(keep + 2);
    let tail = &state.prompt[state.prompt.len().saturating_sub(keep)..];
    // A tail must not begin with results whose calls were left out.
    let start = tail.iter().position(|message| !holds_results(&message.message)).unwrap_or(tail.len());
    if shrink > 0 {
        messages.push(note("[Earlier parts of the conversation were left out because they do not fit.]"));
        let first = format!("The user's request of this turn was:\n{}", cut(&state.last_prompt, 20_000));
        messages.push(note(&first));
    }
    let level = shrink;
    messages.extend(
        tail[start..].iter().map(|message| if level == 0 { Arc::clone(message) } else { slim(message) }),
    );
    let wish =
        instructions.map(|text| format!("\n\nThe user adds: {}", cut(text, 20_000))).unwrap_or_default();
    messages.push(note(&format!("{COMPACTION_PROMPT}{wish}")));
    ModelRequest { purpose: Purpose::Compact, partial: false, messages, ..request(state, options) }
}

/// The message that replaces everything before it.
#[must_use]
pub fn summary_message(summary: &str, last_prompt: &str, mid_turn: bool) -> Message {
    let mut text = format!(
        "This conversation continues an earlier one that became too long. Summary of what came before:\n\n{summary}"
    );
    if mid_turn {
        text.push_str("\n\nThe request you were working on, in the user's words:\n");
        text.push_str(&cut(last_prompt, 20_000));
        text.push_str(
            "\n\nContinue with it from where the summary stops. Read files again before you edit them.",
        );
    }
    Message { role: Role::User, content: MessageContent::Text(text) }
}

fn note(text: &str) -> Arc<PromptMessage> {
    Arc::new(PromptMessage::new(Message::user(text)))
}

fn holds_results(message: &Message) -> bool {
    matches!(&message.content, MessageContent::Blocks(blocks)
        if blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. })))
}

/// The same message with long tool results cut, for a summary that has to fit.
fn slim(message: &Arc<PromptMessage>) -> Arc<PromptMessage> {
    let MessageContent::Blocks(blocks) = &message.message.content else { return Arc::clone(message) };
    let blocks = blocks
        .iter()
        .map(|block| match block {
            ContentBlock::ToolResult { tool_use_id, content, is_error } => ContentBlock::ToolResult {
                tool_use_id: tool_use_id.clone(),
                content: ToolResultContent::Text(cut(&content.to_text(), 2_000)),
                is_error: *is_error,
            },
            other => other.clone(),
        })
        .collect();
    let content = MessageContent::Blocks(blocks);
    Arc::new(PromptMessage::new(Message { role: message.message.role, content }))
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[… cut …]", &text[..end])
}
