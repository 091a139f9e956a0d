//! Writes requests of the Anthropic Messages protocol.
//!
//! Cache marks stand on the last system block, on the last tool and once on the request as a whole, never inside a
//! message: a message keeps its bytes for the life of the conversation.

use std::borrow::Cow;

use bytes::Bytes;
use qoder_core::ports::{ModelRequest, Thinking};
use qoder_types::{ContentBlock, Message, MessageContent, ToolResultContent};
use serde::Serialize;
use serde_json::{Value, json};

use crate::profile::{Images, Profile, schema};
use crate::wires::call_id::Accepted;
use crate::wires::head::{HeadOptions, write_parameters};
use crate::wires::reasoning::{KeptReasoning, is_anthropic_signature};
use crate::wires::{json, media};

/// The smallest budget the protocol takes.
const LEAST_BUDGET: u64 = 1024;

/// A tool as the protocol has it.
#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a Value>,
}

/// The body up to and including `"messages":[`.
pub(crate) fn head(options: &HeadOptions, request: &ModelRequest) -> Bytes {
    let profile = &options.profile;
    let mark = json!({"type": "ephemeral"});
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"model\":");
    json::write(&mut out, &options.model);
    json::field(&mut out, "max_tokens", &options.max_tokens);
    json::field(&mut out, "stream", &true);
    let mut system: Vec<Value> = request
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    if let Some(last) = system.last_mut() {
        if profile.cache_marks {
            last["cache_control"] = mark.clone();
        }
        json::field(&mut out, "system", &system);
    }
    if !request.tools.is_empty() {
        let last = request.tools.len() - 1;
        let tools: Vec<Tool<'_>> = request
            .tools
            .iter()
            .enumerate()
            .map(|(index, tool)| Tool {
                name: Accepted::TOOL.id(&tool.name, profile.tool_names),
                description: &tool.description,
                input_schema: schema::accepted(&tool.input_schema, profile),
                cache_control: (index == last && profile.cache_marks).then_some(&mark),
            })
            .collect();
        json::field(&mut out, "tools", &tools);
    }
    if let Some(thinking) =
        thinking(request.thinking, options.max_tokens).filter(|_| profile.sends("thinking"))
    {
        json::field(&mut out, "thinking", &thinking);
    }
    if let Some(effort) = request.effort.as_ref().filter(|_| profile.sends("output_config")) {
        json::field(&mut out, "output_config", &json!({"effort": effort}));
    }
    write_parameters(&mut out, request, profile);
    if profile.sends("cache_control") {
        json::field(&mut out, "cache_control", &mark);
    }
    out.extend_from_slice(b",\"messages\":[");
    out.into()
}

fn thinking(thinking: Thinking, max_tokens: u64) -> Option<Value> {
    match thinking {
        Thinking::Default => None,
        Thinking::Disabled => Some(json!({"type": "disabled"})),
        Thinking::Adaptive => Some(json!({"type": "adaptive"})),
        Thinking::Budget(budget) => {
            // The protocol demands a budget below the output limit; a limit that leaves no room means no thinking.
            let budget = u64::from(budget).max(LEAST_BUDGET).min(max_tokens.saturating_sub(1));
            (budget >= LEAST_BUDGET).then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
    }
}

/// One message; empty when nothing of it can be sent.
pub(crate) fn encode(message: &Message, profile: &Profile) -> Bytes {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"role\":");
    json::write(&mut out, &message.role);
    out.extend_from_slice(b",\"content\":");
    match &message.content {
        MessageContent::Text(text) if text.is_empty() => return Bytes::new(),
        MessageContent::Text(text) => json::write(&mut out, text),
        MessageContent::Blocks(blocks) => {
            if !write_blocks(&mut out, blocks, profile) {
                return Bytes::new();
            }
        }
    }
    out.push(b'}');
    out.into()
}

/// Writes the blocks that can be sent; false without such a block.
fn write_blocks(out: &mut Vec<u8>, blocks: &[ContentBlock], profile: &Profile) -> bool {
    out.push(b'[');
    let start = out.len();
    let mut write = |block: &ContentBlock| {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        if !write_block(out, block, profile) {
            out.truncate(before);
        }
    };
    blocks.iter().for_each(&mut write);
    if profile.images == Images::UserMessage {
        for block in blocks {
            if let ContentBlock::ToolResult { content, .. } = block {
                media::images_of(content).for_each(&mut write);
            }
        }
    }
    let any = out.len() > start;
    out.push(b']');
    any
}

fn write_block(out: &mut Vec<u8>, block: &ContentBlock, profile: &Profile) -> bool {
    match &*media::for_model(block, profile) {
        ContentBlock::Text { text } if text.is_empty() || (text.trim().is_empty() && !profile.empty_text) => {
            return false;
        }
        ContentBlock::Thinking { thinking, signature } => {
            return write_thinking(out, thinking, signature, profile);
        }
        ContentBlock::ToolUse { id, name, input } => {
            out.extend_from_slice(b"{\"type\":\"tool_use\"");
            json::field(out, "id", &Accepted::ANTHROPIC.id(id, profile.call_ids));
            json::field(out, "name", &Accepted::TOOL.id(name, profile.tool_names));
            match input {
                Value::Object(_) => json::field(out, "input", input),
                Value::Null => json::field(out, "input", &json!({})),
                Value::String(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
                    json::field(out, "input", &json!({"_invalid": input}));
                }
            }
            out.push(b'}');
        }
        ContentBlock::ToolResult { tool_use_id, content, is_error } => {
            out.extend_from_slice(b"{\"type\":\"tool_result\"");
            json::field(out, "tool_use_id", &Accepted::ANTHROPIC.id(tool_use_id, profile.call_ids));
            out.extend_from_slice(b",\"content\":");
            match &*media::result_for(content, profile) {
                ToolResultContent::Text(text) => json::write(out, text),
                ToolResultContent::Blocks(blocks) => {
                    write_blocks(out, blocks, profile);
                }
            }
            if *is_error {
                json::field(out, "is_error", &true);
            }
            out.push(b'}');
        }
        other @ (ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::Document { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Unknown(_)) => json::write(out, other),
    }
    true
}

/// Writes reasoning that the endpoint takes back: what it signed, what a gateway passed on with the signature, and
/// where the profile says so unsigned reasoning. False for all other.
fn write_thinking(out: &mut Vec<u8>, thinking: &str, signature: &str, profile: &Profile) -> bool {
    if is_anthropic_signature(signature) {
        if profile.sends("signature") {
            json::write(out, &json!({"type": "thinking", "thinking": thinking, "signature": signature}));
        }
        return profile.sends("signature");
    }
    let blocks = KeptReasoning::from_signature(signature).map(|kept| kept.blocks).unwrap_or_default();
    if !blocks.is_empty() && profile.sends("signature") {
        let start = out.len();
        for block in &blocks {
            if out.len() > start {
                out.push(b',');
            }
            json::write(out, block);
        }
        return true;
    }
    let is_unsigned = signature.is_empty() && profile.unsigned_reasoning && !thinking.is_empty();
    if is_unsigned {
        json::write(out, &json!({"type": "thinking", "thinking": thinking}));
    }
    is_unsigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::profiles;
    use qoder_types::Role;

    fn anthropic() -> Profile {
        *profiles().iter().find(|profile| profile.name == "anthropic").unwrap()
    }

    fn assistant(blocks: Vec<ContentBlock>) -> String {
        let message = Message { role: Role::Assistant, content: MessageContent::Blocks(blocks) };
        String::from_utf8(encode(&message, &anthropic()).to_vec()).unwrap()
    }

    #[test]
    fn foreign_and_empty_blocks_are_left_out() {
        let thinking =
            |signature: &str| ContentBlock::Thinking { thinking: "hm".into(), signature: signature.into() };
        assert_eq!(
            assistant(vec![
                thinking("chat:"),
                thinking("responses:{}"),
                thinking(""),
                ContentBlock::text("")
            ]),
            ""
        );
        assert_eq!(
            assistant(vec![ContentBlock::text(""), thinking("c2ln"), ContentBlock::text("a")]),
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]}"#
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_wrapped() {
        let call = |input: Value| {
            assistant(vec![ContentBlock::ToolUse { id: "t".into(), name: "Bash".into(), input }])
        };
        assert!(call(json!("{\"a\":")).contains(r#""input":{"_invalid":"{\"a\":"}"#));
        assert!(call(json!({"a": 1})).contains(r#""input":{"a":1}"#));
        assert!(call(Value::Null).contains(r#""input":{}"#));
    }

    #[test]
    fn budgets_fit_the_output_limit() {
        assert_eq!(
            thinking(Thinking::Budget(10), 8000),
            Some(json!({"type": "enabled", "budget_tokens": 1024}))
        );
        assert_eq!(
            thinking(Thinking::Budget(9000), 8000),
            Some(json!({"type": "enabled", "budget_tokens": 7999}))
        );
        assert_eq!(thinking(Thinking::Budget(9000), 500), None);
        assert_eq!(thinking(Thinking::Adaptive, 500), Some(json!({"type": "adaptive"})));
    }
}
