//! Writes requests of the Chat Completions protocol. One message of ours may become several of theirs:
//! every tool result is a message of its own, and images of tool results follow in a user message
//! because tool messages hold text only.

use bytes::Bytes;
use qoder_core::ports::ModelRequest;
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde_json::{Value, json};

use super::reasoning::Kept;
use crate::call_id::Accepted;
use crate::json;
use crate::protocol::{HeadOptions, is_reasoning_model, openai_effort, write_parameters};

/// The body up to and including `"messages":[`, and the system message.
pub(crate) fn head(options: &HeadOptions, request: &ModelRequest) -> (Bytes, Bytes) {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"model\":");
    json::write(&mut out, &options.model);
    json::field(&mut out, "stream", &true);
    json::field(&mut out, "stream_options", &json!({"include_usage": true}));
    let reasoning = is_reasoning_model(&options.model);
    let limit = if reasoning { "max_completion_tokens" } else { "max_tokens" };
    json::field(&mut out, limit, &options.max_tokens);
    if let Some(effort) = &request.effort {
        json::field(&mut out, "reasoning_effort", openai_effort(effort));
    }
    write_parameters(&mut out, request);
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }})
            })
            .collect();
        json::field(&mut out, "tools", &tools);
    }
    out.extend_from_slice(b",\"messages\":[");
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    let mut first = Vec::new();
    if !system.is_empty() {
        json::write(&mut first, &json!({"role": "system", "content": system.join("\n\n")}));
    }
    (out.into(), first.into())
}

/// One message as comma separated messages of theirs; empty when nothing of it can be sent.
pub(crate) fn encode(message: &Message) -> Bytes {
    let single;
    let blocks = match &message.content {
        MessageContent::Text(text) => {
            single = [ContentBlock::text(text.clone())];
            &single[..]
        }
        MessageContent::Blocks(blocks) => blocks,
    };
    let messages = match message.role {
        Role::User => user_messages(blocks),
        Role::Assistant => assistant_message(blocks).into_iter().collect(),
    };
    let mut out = Vec::new();
    for message in &messages {
        if !out.is_empty() {
            out.push(b',');
        }
        json::write(&mut out, message);
    }
    out.into()
}

fn user_messages(blocks: &[ContentBlock]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => {
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": Accepted::CHAT.id(tool_use_id),
                    "content": tool_text(content),
                }));
                if let ToolResultContent::Blocks(inner) = content {
                    parts.extend(
                        inner
                            .iter()
                            .filter(|block| !matches!(block, ContentBlock::Text { .. }))
                            .filter_map(part),
                    );
                }
            }
            other => parts.extend(part(other)),
        }
    }
    if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": simplest(parts)}));
    }
    messages
}

fn tool_text(content: &ToolResultContent) -> String {
    let text = content.to_text();
    match content {
        ToolResultContent::Blocks(blocks)
            if text.is_empty() && blocks.iter().any(|block| matches!(block, ContentBlock::Image { .. })) =>
        {
            "(the image follows)".into()
        }
        ToolResultContent::Blocks(_) | ToolResultContent::Text(_) => text,
    }
}

/// Many servers only understand plain text, so text alone is sent as that.
fn simplest(parts: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> =
        parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
    match texts {
        Some(texts) => Value::String(texts.join("\n")),
        None => Value::Array(parts),
    }
}

fn part(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } if text.is_empty() => None,
        ContentBlock::Text { text } => Some(json!({"type": "text", "text": text})),
        ContentBlock::Image { source } => {
            Some(json!({"type": "image_url", "image_url": {"url": source_url(source)}}))
        }
        ContentBlock::Document { source: ImageSource::Url { url }, .. } => {
            Some(json!({"type": "text", "text": format!("Document: {url}")}))
        }
        ContentBlock::Document { source, extra } => {
            let name = extra.get("title").and_then(Value::as_str).unwrap_or("document.pdf");
            Some(json!({"type": "file", "file": {"filename": name, "file_data": source_url(source)}}))
        }
        ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

/// The address of an image; bytes become a data URL.
pub(crate) fn source_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        ImageSource::Url { url } => url.clone(),
    }
}

/// Arguments as the JSON text the protocol wants. Text that is no JSON is wrapped, because servers parse it again.
pub(crate) fn arguments(input: &Value) -> String {
    match input {
        Value::Object(_) => input.to_string(),
        Value::Null => "{}".into(),
        other => json!({"_invalid": other}).to_string(),
    }
}

fn assistant_message(blocks: &[ContentBlock]) -> Option<Value> {
    let mut text: Vec<&str> = Vec::new();
    let mut reasoning: Vec<(&str, &str)> = Vec::new();
    let mut details = Vec::new();
    let mut extras = Vec::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text: piece } if !piece.is_empty() => text.push(piece),
            ContentBlock::Thinking { thinking, signature } => {
                if let Some(kept) = Kept::from_signature(signature) {
                    if !thinking.is_empty() {
                        reasoning.push((kept.field(), thinking));
                    }
                    details.extend(kept.details);
                    extras.extend(kept.calls);
                }
            }
            ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                "id": Accepted::CHAT.id(id),
                "type": "function",
                "function": {"name": name, "arguments": arguments(input)},
            })),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text.join("\n")) };
    let mut message = json!({"role": "assistant", "content": content});
    for field in ["reasoning_content", "reasoning"] {
        let texts: Vec<&str> =
            reasoning.iter().filter(|(name, _)| *name == field).map(|(_, text)| *text).collect();
        if !texts.is_empty() {
            message[field] = Value::String(texts.join("\n"));
        }
    }
    if !details.is_empty() {
        message["reasoning_details"] = Value::Array(details);
    }
    add_extras(&mut calls, extras);
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

/// Gives calls back what came with them. A call that was given another id finds its own by its place: the others have
/// theirs.
fn add_extras(calls: &mut [Value], extras: Vec<(String, Value)>) {
    let mut unnamed = Vec::new();
    for (id, extra) in extras {
        match calls.iter_mut().find(|call| call["id"] == *Accepted::CHAT.id(&id)) {
            Some(call) => call["extra_content"] = extra,
            None => unnamed.push(extra),
        }
    }
    let bare = calls.iter_mut().filter(|call| call.get("extra_content").is_none());
    for (call, extra) in bare.zip(unnamed) {
        call["extra_content"] = extra;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_results_come_first_and_their_images_follow() {
        let image = ContentBlock::Image {
            source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
        };
        let message = Message {
            role: Role::User,
            content: MessageContent::Blocks(vec![
                ContentBlock::text("and now?"),
                ContentBlock::ToolResult {
                    tool_use_id: "a".into(),
                    content: ToolResultContent::Blocks(vec![ContentBlock::text("seen"), image]),
                    is_error: false,
                },
                ContentBlock::ToolResult {
                    tool_use_id: "b".into(),
                    content: ToolResultContent::Text("plain".into()),
                    is_error: true,
                },
            ]),
        };
        let list: Value =
            serde_json::from_str(&format!("[{}]", String::from_utf8(encode(&message).to_vec()).unwrap()))
                .unwrap();
        assert_eq!(
            list,
            json!([
                {"role": "tool", "tool_call_id": "a", "content": "seen"},
                {"role": "tool", "tool_call_id": "b", "content": "plain"},
                {"role": "user", "content": [
                    {"type": "text", "text": "and now?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
            ])
        );
    }

    #[test]
    fn only_own_reasoning_is_sent_back() {
        let thinking = |text: &str, signature: &str| ContentBlock::Thinking {
            thinking: text.into(),
            signature: signature.into(),
        };
        let message = assistant_message(&[
            thinking("mine", "chat:"),
            thinking("foreign", "c2ln"),
            ContentBlock::ToolUse { id: "x".into(), name: "Bash".into(), input: json!("{\"a") },
        ])
        .unwrap();
        assert_eq!(message["reasoning_content"], "mine");
        assert_eq!(message["content"], Value::Null);
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"_invalid":"{\"a"}"#);
    }
}
