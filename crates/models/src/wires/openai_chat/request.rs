//! Writes requests of the Chat Completions protocol. One message of ours may become several of theirs:
//! every tool result is a message of its own, and images of tool results follow in a user message
//! because tool messages hold text only.

use std::borrow::Cow;

use bytes::Bytes;
use qoder_core::ports::ModelRequest;
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde::Serialize;
use serde_json::{Value, json};

use crate::profile::{Images, OutputLimit, Profile, ReasoningBack, SystemRole, schema};
use crate::wires::call_id::Accepted;
use crate::wires::head::{HeadOptions, write_parameters};
use crate::wires::openai::{arguments, is_reasoning_model, openai_effort, source_url};
use crate::wires::reasoning::{KeptReasoning, TAGS, is_anthropic_signature};
use crate::wires::{json, media};

/// A tool as the protocol has it.
#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

/// The body up to and including `"messages":[`, and the system message.
pub(crate) fn head(options: &HeadOptions, request: &ModelRequest) -> (Bytes, Bytes) {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"model\":");
    json::write(&mut out, &options.model);
    json::field(&mut out, "stream", &true);
    let profile = &options.profile;
    if profile.sends("stream_options") {
        json::field(&mut out, "stream_options", &json!({"include_usage": true}));
    }
    if let Some(limit) = limit_field(options) {
        json::field(&mut out, limit, &options.max_tokens);
    }
    if let Some(effort) = request.effort.as_ref().filter(|_| profile.sends("reasoning_effort")) {
        json::field(&mut out, "reasoning_effort", openai_effort(effort));
    }
    write_parameters(&mut out, request, profile);
    if !request.tools.is_empty() {
        let tools: Vec<Tool<'_>> = request
            .tools
            .iter()
            .map(|tool| Tool {
                kind: "function",
                function: Function {
                    name: Accepted::TOOL.id(&tool.name, profile.tool_names),
                    description: &tool.description,
                    parameters: schema::accepted(&tool.input_schema, profile),
                },
            })
            .collect();
        json::field(&mut out, "tools", &tools);
    }
    out.extend_from_slice(b",\"messages\":[");
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    let mut first = Vec::new();
    if !system.is_empty() {
        let role = match profile.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        json::write(&mut first, &json!({"role": role, "content": system.join("\n\n")}));
    }
    (out.into(), first.into())
}

/// The field that limits the output; `None` without a limit, or when the server takes none.
pub(crate) fn limit_field(options: &HeadOptions) -> Option<&'static str> {
    let field = match options.profile.output_limit {
        OutputLimit::MaxTokens => "max_tokens",
        OutputLimit::MaxCompletionTokens => "max_completion_tokens",
        OutputLimit::ByModel if is_reasoning_model(&options.model) => "max_completion_tokens",
        OutputLimit::ByModel => "max_tokens",
        OutputLimit::None => return None,
    };
    (options.is_limited && options.profile.sends(field)).then_some(field)
}

/// One message as comma separated messages of theirs; empty when nothing of it can be sent.
pub(crate) fn encode(message: &Message, profile: &Profile) -> Bytes {
    let single;
    let blocks = match &message.content {
        MessageContent::Text(text) => {
            single = [ContentBlock::text(text.clone())];
            &single[..]
        }
        MessageContent::Blocks(blocks) => blocks,
    };
    let messages = match message.role {
        Role::User => user_messages(blocks, profile),
        Role::Assistant => assistant_message(blocks, profile).into_iter().collect(),
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

/// What is put between tool results and a user message where the server wants the assistant to speak in between.
const BRIDGE: &str = "I have the results.";

fn user_messages(blocks: &[ContentBlock], profile: &Profile) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => {
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": Accepted::CHAT.id(tool_use_id, profile.call_ids),
                    "content": tool_text(content, profile),
                }));
                if profile.images != Images::None {
                    parts.extend(media::images_of(content).filter_map(part));
                }
            }
            other => parts.extend(part(&media::for_model(other, profile))),
        }
    }
    if !parts.is_empty() {
        if !messages.is_empty() && !profile.user_after_tool {
            messages.push(json!({"role": "assistant", "content": BRIDGE}));
        }
        messages.push(json!({"role": "user", "content": simplest(parts)}));
    }
    messages
}

fn tool_text(content: &ToolResultContent, profile: &Profile) -> String {
    // Tool messages hold text only, wherever else the server takes images.
    let images = if profile.images == Images::None { Images::None } else { Images::UserMessage };
    let text = media::result_for(content, &Profile { images, ..*profile }).to_text();
    if text.trim().is_empty() && !profile.empty_text { media::NO_OUTPUT.into() } else { text }
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

fn assistant_message(blocks: &[ContentBlock], profile: &Profile) -> Option<Value> {
    let mut text: Vec<&str> = Vec::new();
    let mut reasoning = Reasoning::default();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text: piece } if !piece.is_empty() => text.push(piece),
            ContentBlock::Thinking { thinking, signature } => reasoning.add(thinking, signature, profile),
            ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                "id": Accepted::CHAT.id(id, profile.call_ids),
                "type": "function",
                "function": {"name": Accepted::TOOL.id(name, profile.tool_names), "arguments": arguments(input)},
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
    let content = match (text.is_empty(), profile.null_content) {
        (true, true) => Value::Null,
        (true, false) => Value::String(String::new()),
        (false, _) => Value::String(text.join("\n")),
    };
    let mut message = json!({"role": "assistant", "content": content});
    let extras = reasoning.write(&mut message, !calls.is_empty(), profile);
    add_extras(&mut calls, extras, profile);
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

/// The reasoning of one message, on its way back.
#[derive(Default)]
struct Reasoning {
    /// Names of fields, and what was said under them.
    texts: Vec<(&'static str, String)>,
    details: Vec<Value>,
    blocks: Vec<Value>,
    extras: Vec<(String, Value)>,
}

impl Reasoning {
    fn add(&mut self, thinking: &str, signature: &str, profile: &Profile) {
        let kept = KeptReasoning::from_signature(signature);
        let is_own = kept.is_some();
        let kept = kept.unwrap_or_default();
        let field = match profile.reasoning {
            ReasoningBack::AsReceived => kept.field(),
            ReasoningBack::ReasoningContent | ReasoningBack::ThinkingBlocks => "reasoning_content",
            ReasoningBack::Reasoning => "reasoning",
            ReasoningBack::ThinkTags => TAGS,
            ReasoningBack::None => return self.extras.extend(kept.calls),
        };
        // A server that demands reasoning takes that of another model too.
        if !thinking.is_empty() && (is_own || profile.reasoning_required) {
            self.texts.push((field, thinking.to_owned()));
        }
        let takes_signed = profile.reasoning == ReasoningBack::ThinkingBlocks && profile.sends("signature");
        if takes_signed && is_anthropic_signature(signature) {
            self.blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
        }
        if profile.reasoning == ReasoningBack::AsReceived {
            self.details.extend(kept.details);
        }
        if matches!(profile.reasoning, ReasoningBack::AsReceived | ReasoningBack::ThinkingBlocks) {
            self.blocks.extend(kept.blocks);
        }
        self.extras.extend(kept.calls);
    }

    /// Writes it into its message and gives what belongs to the calls.
    fn write(mut self, message: &mut Value, has_calls: bool, profile: &Profile) -> Vec<(String, Value)> {
        if profile.reasoning_required && has_calls && self.texts.is_empty() {
            // The field must be there, and some servers take an empty one for a missing one.
            self.texts.push(("reasoning_content", " ".to_owned()));
        }
        for field in ["reasoning_content", "reasoning", TAGS] {
            let texts = self.texts.iter().filter(|(name, _)| *name == field).map(|(_, text)| text.as_str());
            let text = texts.collect::<Vec<&str>>().join("\n");
            if text.is_empty() {
                continue;
            }
            if field == TAGS {
                let rest = message["content"].as_str().unwrap_or_default();
                message["content"] = format!("<think>{text}</think>\n\n{rest}").into();
            } else if profile.sends(field) {
                message[field] = Value::String(text);
            }
        }
        for (field, list) in [("reasoning_details", self.details), ("thinking_blocks", self.blocks)] {
            if !list.is_empty() && profile.sends(field) {
                message[field] = Value::Array(list);
            }
        }
        self.extras
    }
}

/// Gives calls back what came with them. A call that was given another id finds its own by its place: the others have
/// theirs.
fn add_extras(calls: &mut [Value], extras: Vec<(String, Value)>, profile: &Profile) {
    if !profile.sends("extra_content") {
        return;
    }
    let mut unnamed = Vec::new();
    for (id, extra) in extras {
        match calls.iter_mut().find(|call| call["id"] == *Accepted::CHAT.id(&id, profile.call_ids)) {
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
    use crate::profile::UNKNOWN_CHAT;

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
        let list: Value = serde_json::from_str(&format!(
            "[{}]",
            String::from_utf8(encode(&message, &UNKNOWN_CHAT).to_vec()).unwrap()
        ))
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
        let message = assistant_message(
            &[
                thinking("mine", "chat:"),
                thinking("foreign", "c2ln"),
                ContentBlock::ToolUse { id: "x".into(), name: "Bash".into(), input: json!("{\"a") },
            ],
            &UNKNOWN_CHAT,
        )
        .unwrap();
        assert_eq!(message["reasoning_content"], "mine");
        assert_eq!(message["content"], Value::Null);
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"_invalid":"{\"a"}"#);
    }
}
