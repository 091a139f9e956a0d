//! Writes requests of the Responses protocol. One message becomes several input
//! items; reasoning goes back exactly as it came, from the item kept in its
//! signature.

use std::borrow::Cow;

use bytes::Bytes;
use qoder_core::ports::{ModelRequest, Thinking};
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde::Serialize;
use serde_json::{Value, json};

use crate::profile::{Images, Profile, schema};
use crate::wires::call_id::Accepted;
use crate::wires::head::{HeadOptions, write_parameters};
use crate::wires::openai::{arguments, is_plain_model, openai_effort, source_url};
use crate::wires::reasoning::RESPONSES_SIGNATURE;
use crate::wires::{json, media};

/// A tool as the protocol has it.
#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
    /// The default is strict, which refuses schemas with optional fields.
    strict: bool,
}

/// The body up to and including `"input":[`.
pub(crate) fn head(options: &HeadOptions, request: &ModelRequest) -> Bytes {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"model\":");
    json::write(&mut out, &options.model);
    json::field(&mut out, "stream", &true);
    let profile = &options.profile;
    if profile.sends("store") {
        json::field(&mut out, "store", &false);
    }
    if options.is_limited && profile.sends("max_output_tokens") {
        json::field(&mut out, "max_output_tokens", &options.max_tokens);
    }
    if !is_plain_model(&options.model) {
        if profile.sends("include") {
            json::field(&mut out, "include", &["reasoning.encrypted_content"]);
        }
        let mut reasoning = json!({});
        if let Some(effort) = &request.effort {
            reasoning["effort"] = openai_effort(effort).into();
        }
        if request.thinking != Thinking::Disabled {
            reasoning["summary"] = "auto".into();
        }
        if reasoning.as_object().is_some_and(|fields| !fields.is_empty()) && profile.sends("reasoning") {
            json::field(&mut out, "reasoning", &reasoning);
        }
    }
    write_parameters(&mut out, request, profile);
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    if !system.is_empty() {
        json::field(&mut out, "instructions", &system.join("\n\n"));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Tool<'_>> = request
            .tools
            .iter()
            .map(|tool| Tool {
                kind: "function",
                name: Accepted::TOOL.id(&tool.name, profile.tool_names),
                description: &tool.description,
                parameters: schema::accepted(&tool.input_schema, profile),
                strict: false,
            })
            .collect();
        json::field(&mut out, "tools", &tools);
    }
    if !request.session_id.is_empty() && profile.sends("prompt_cache_key") {
        json::field(&mut out, "prompt_cache_key", &request.session_id);
    }
    out.extend_from_slice(b",\"input\":[");
    out.into()
}

/// One message as comma separated items; empty when nothing of it can be sent.
pub(crate) fn encode(message: &Message, profile: &Profile) -> Bytes {
    let single;
    let blocks = match &message.content {
        MessageContent::Text(text) => {
            single = [ContentBlock::text(text.clone())];
            &single[..]
        }
        MessageContent::Blocks(blocks) => blocks,
    };
    let mut items = Items { role: message.role, profile, done: Vec::new(), parts: Vec::new() };
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

struct Items<'a> {
    role: Role,
    profile: &'a Profile,
    done: Vec<Value>,
    parts: Vec<Value>,
}

impl Items<'_> {
    fn add(&mut self, block: &ContentBlock) {
        let item = match block {
            ContentBlock::ToolUse { id, name, input } => json!({
                "type": "function_call",
                "call_id": Accepted::RESPONSES.id(id, self.profile.call_ids),
                "name": Accepted::TOOL.id(name, self.profile.tool_names),
                "arguments": arguments(input),
            }),
            ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => {
                if self.profile.images == Images::UserMessage {
                    self.parts.extend(media::images_of(content).filter_map(|block| part(Role::User, block)));
                }
                json!({
                    "type": "function_call_output",
                    "call_id": Accepted::RESPONSES.id(tool_use_id, self.profile.call_ids),
                    "output": output(content, self.profile),
                })
            }
            ContentBlock::Thinking { thinking, signature } => {
                match reasoning_item(thinking, signature, self.profile) {
                    Some(item) => item,
                    None => return,
                }
            }
            other => {
                self.parts.extend(part(self.role, &media::for_model(other, self.profile)));
                return;
            }
        };
        // The order of items matters to the provider: reasoning belongs in front of what it led to. Images of results
        // wait for the last result.
        if self.role == Role::Assistant {
            self.flush();
        }
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

fn output(content: &ToolResultContent, profile: &Profile) -> Value {
    let content = media::result_for(content, profile);
    let text = |text: String| match text.trim().is_empty() && !profile.empty_text {
        true => media::NO_OUTPUT.into(),
        false => Value::String(text),
    };
    match &*content {
        ToolResultContent::Text(plain) => text(plain.clone()),
        ToolResultContent::Blocks(blocks)
            if blocks.iter().all(|block| matches!(block, ContentBlock::Text { .. })) =>
        {
            text(content.to_text())
        }
        ToolResultContent::Blocks(blocks) => {
            Value::Array(blocks.iter().filter_map(|block| part(Role::User, block)).collect())
        }
    }
}

/// The reasoning item behind a signature of this protocol. A provider that stores nothing cannot find it again without
/// its encrypted content; servers that have none take the text.
fn reasoning_item(thinking: &str, signature: &str, profile: &Profile) -> Option<Value> {
    let mut item: Value = serde_json::from_str(signature.strip_prefix(RESPONSES_SIGNATURE)?).ok()?;
    let fields = item.as_object_mut()?;
    let is_sealed = fields.get("encrypted_content").is_some_and(Value::is_string);
    if !is_sealed || !profile.sends("encrypted_content") {
        if !profile.unsigned_reasoning || thinking.is_empty() {
            return None;
        }
        fields.remove("encrypted_content");
        if fields.get("summary").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            fields.insert("content".into(), json!([{"type": "reasoning_text", "text": thinking}]));
        }
        fields.entry("summary").or_insert_with(|| json!([]));
    }
    fields.insert("type".into(), "reasoning".into());
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::UNKNOWN_RESPONSES;

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
        let list: Value = serde_json::from_str(&format!(
            "[{}]",
            String::from_utf8(encode(&message, &UNKNOWN_RESPONSES).to_vec()).unwrap()
        ))
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
            output(&content, &UNKNOWN_RESPONSES),
            json!([
                {"type": "input_text", "text": "seen"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            ])
        );
    }
}
