//! Writes requests of the Responses protocol. One message becomes several input
//! items; reasoning goes back exactly as it came, from the item kept in its
//! signature.

use bytes::Bytes;
use qoder_core::ports::{ModelRequest, Thinking};
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde_json::{Value, json};

use super::SIGNATURE;
use crate::call_id::Accepted;
use crate::json;
use crate::openai_chat::request::{arguments, source_url};
use crate::protocol::{HeadOptions, is_plain_model, openai_effort, write_parameters};

/// The body up to and including `"input":[`.
pub(crate) fn head(options: &HeadOptions, request: &ModelRequest) -> Bytes {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"model\":");
    json::write(&mut out, &options.model);
    json::field(&mut out, "stream", &true);
    json::field(&mut out, "store", &false);
    json::field(&mut out, "max_output_tokens", &options.max_tokens);
    if !is_plain_model(&options.model) {
        json::field(&mut out, "include", &["reasoning.encrypted_content"]);
        let mut reasoning = json!({});
        if let Some(effort) = &request.effort {
            reasoning["effort"] = openai_effort(effort).into();
        }
        if request.thinking != Thinking::Disabled {
            reasoning["summary"] = "auto".into();
        }
        if reasoning.as_object().is_some_and(|fields| !fields.is_empty()) {
            json::field(&mut out, "reasoning", &reasoning);
        }
    }
    write_parameters(&mut out, request);
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    if !system.is_empty() {
        json::field(&mut out, "instructions", &system.join("\n\n"));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                    // The default is strict, which refuses schemas with optional fields.
                    "strict": false,
                })
            })
            .collect();
        json::field(&mut out, "tools", &tools);
    }
    if !request.session_id.is_empty() {
        json::field(&mut out, "prompt_cache_key", &request.session_id);
    }
    out.extend_from_slice(b",\"input\":[");
    out.into()
}

/// One message as comma separated items; empty when nothing of it can be sent.
pub(crate) fn encode(message: &Message) -> Bytes {
    let single;
    let blocks = match &message.content {
        MessageContent::Text(text) => {
            single = [ContentBlock::text(text.clone())];
            &single[..]
        }
        MessageContent::Blocks(blocks) => blocks,
    };
    let mut items = Items { role: message.role, done: Vec::new(), parts: Vec::new() };
    for block in blocks {
        items.add(block);
    }
    items.flush();
    let mut out = Vec::new();
    for item in &items.done {
        if !out.is_empty() {
            out.push(b',');
        }
        json::write(&mut out, item);
    }
    out.into()
}

struct Items {
    role: Role,
    done: Vec<Value>,
    parts: Vec<Value>,
}

impl Items {
    fn add(&mut self, block: &ContentBlock) {
        let item = match block {
            ContentBlock::ToolUse { id, name, input } => json!({
                "type": "function_call",
                "call_id": Accepted::RESPONSES.id(id),
                "name": name,
                "arguments": arguments(input),
            }),
            ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => json!({
                "type": "function_call_output",
                "call_id": Accepted::RESPONSES.id(tool_use_id),
                "output": output(content),
            }),
            ContentBlock::Thinking { signature, .. } => match reasoning_item(signature) {
                Some(item) => item,
                None => return,
            },
            other => {
                self.parts.extend(part(self.role, other));
                return;
            }
        };
        // The order of items matters to the provider: reasoning belongs in front of what it led to.
        self.flush();
        self.done.push(item);
    }

    fn flush(&mut self) {
        if !self.parts.is_empty() {
            let content = std::mem::take(&mut self.parts);
            self.done.push(json!({"type": "message", "role": self.role, "content": content}));
        }
    }
}

fn part(role: Role, block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } if text.is_empty() => None,
        ContentBlock::Text { text } => {
            let kind = match role {
                Role::User => "input_text",
                Role::Assistant => "output_text",
            };
            Some(json!({"type": kind, "text": text}))
        }
        ContentBlock::Image { source } => {
            Some(json!({"type": "input_image", "image_url": source_url(source)}))
        }
        ContentBlock::Document { source: ImageSource::Url { url }, .. } => {
            Some(json!({"type": "input_file", "file_url": url}))
        }
        ContentBlock::Document { source, extra } => {
            let name = extra.get("title").and_then(Value::as_str).unwrap_or("document.pdf");
            Some(json!({"type": "input_file", "filename": name, "file_data": source_url(source)}))
        }
        ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

fn output(content: &ToolResultContent) -> Value {
    match content {
        ToolResultContent::Text(text) => Value::String(text.clone()),
        ToolResultContent::Blocks(blocks)
            if blocks.iter().all(|block| matches!(block, ContentBlock::Text { .. })) =>
        {
            Value::String(content.to_text())
        }
        ToolResultContent::Blocks(blocks) => {
            Value::Array(blocks.iter().filter_map(|block| part(Role::User, block)).collect())
        }
    }
}

/// The reasoning item behind a signature of this protocol. Without its encrypted content the provider, which stores
/// nothing, could not find it again.
fn reasoning_item(signature: &str) -> Option<Value> {
    let mut item: Value = serde_json::from_str(signature.strip_prefix(SIGNATURE)?).ok()?;
    item.get("encrypted_content").and_then(Value::as_str)?;
    item.as_object_mut()?.insert("type".into(), "reasoning".into());
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_foreign_reasoning_is_left_out() {
        let thinking =
            |signature: &str| ContentBlock::Thinking { thinking: "t".into(), signature: signature.into() };
        let message = Message {
            role: Role::Assistant,
            content: MessageContent::Blocks(vec![
                thinking(r#"responses:{"id":"rs_1","summary":[],"encrypted_content":"zzz"}"#),
                thinking("chat:"),
                thinking(r#"responses:{"id":"rs_2","summary":[]}"#),
                ContentBlock::text("first"),
                ContentBlock::ToolUse { id: "c1".into(), name: "Read".into(), input: json!({"a": 1}) },
            ]),
        };
        let list: Value =
            serde_json::from_str(&format!("[{}]", String::from_utf8(encode(&message).to_vec()).unwrap()))
                .unwrap();
        assert_eq!(
            list,
            json!([
                {"id": "rs_1", "summary": [], "encrypted_content": "zzz", "type": "reasoning"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "first"}]},
                {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{\"a\":1}"},
            ])
        );
    }

    #[test]
    fn images_in_tool_results_stay_in_the_output() {
        let content = ToolResultContent::Blocks(vec![
            ContentBlock::text("seen"),
            ContentBlock::Image {
                source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
            },
        ]);
        assert_eq!(
            output(&content),
            json!([
                {"type": "input_text", "text": "seen"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            ])
        );
    }
}
