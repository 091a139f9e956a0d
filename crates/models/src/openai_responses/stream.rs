//! Reads responses of the Responses protocol and tells them as Anthropic-shaped events. Items are
//! recognised by their place in the output; what the finished item says wins over what the pieces said
//! only where pieces were missing.

use std::borrow::Cow;

use qoder_types::{ModelFailure, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::SIGNATURE;
use crate::call::{Decoded, Sink};
use crate::failure::{ErrorBody, failure, from_event, malformed};
use crate::partial::Assembly;

/// A text that borrows from the event unless it holds escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    output_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    code: Option<Text<'a>>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ResponseBody {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    output: Vec<Value>,
    usage: Option<ResponseUsage>,
    error: Option<ErrorBody>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResponseUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

enum Kind {
    Message,
    Call,
    Reasoning,
}

struct Item {
    output_index: u64,
    kind: Kind,
    block: usize,
    summary: u64,
}

/// Reads one response.
pub(crate) struct Decoder {
    assembly: Assembly,
    items: Vec<Item>,
    usage: Usage,
    stop_reason: StopReason,
}

impl Decoder {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self {
            assembly: Assembly::new(sink),
            items: Vec::new(),
            usage: Usage::default(),
            stop_reason: StopReason::EndTurn,
        }
    }

    /// Opens a block for an item, unless it is of a kind this version does not know.
    fn add_item(&mut self, output_index: u64, item: &Value) -> Option<usize> {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, block) = match item.get("type").and_then(Value::as_str)? {
            "message" => (Kind::Message, self.assembly.add_text_block()),
            "function_call" => {
                let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
                (Kind::Call, self.assembly.add_tool_call(id, text("name")))
            }
            "reasoning" => (Kind::Reasoning, self.assembly.add_thinking_block()),
            _ => return None,
        };
        self.items.push(Item { output_index, kind, block, summary: 0 });
        Some(self.items.len() - 1)
    }

    fn find(&self, output_index: u64) -> Option<usize> {
        self.items.iter().position(|item| item.output_index == output_index)
    }

    fn finish_item(&mut self, output_index: u64, item: &Value) {
        let known = self.find(output_index).or_else(|| self.add_item(output_index, item));
        let Some(found) = known.and_then(|position| self.items.get(position)) else { return };
        let block = found.block;
        let whole = match found.kind {
            Kind::Message => joined(item, "content", ""),
            Kind::Call => item.get("arguments").and_then(Value::as_str).unwrap_or_default().to_owned(),
            Kind::Reasoning => {
                if item.get("encrypted_content").is_some_and(Value::is_string) {
                    let kept = json!({
                        "id": item.get("id"),
                        "summary": item.get("summary").cloned().unwrap_or_else(|| json!([])),
                        "encrypted_content": item.get("encrypted_content"),
                    });
                    self.assembly.sign(block, format!("{SIGNATURE}{kept}"));
                }
                joined(item, "summary", "\n\n")
            }
        };
        if self.assembly.body(block).is_empty() {
            self.assembly.append(block, &whole);
        }
    }

    fn delta(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let (Some(output_index), Some(Text(piece))) = (event.output_index, &event.delta) else {
            return Err(malformed(format!("{} without output_index or delta", event.kind)));
        };
        let Some(item) = self.items.iter_mut().find(|item| item.output_index == output_index) else {
            return Err(malformed(format!("{} for an item that was never added", event.kind)));
        };
        let block = item.block;
        if let Some(summary) = event.summary_index
            && summary != item.summary
        {
            item.summary = summary;
            self.assembly.append(block, "\n\n");
        }
        self.assembly.append(block, piece);
        Ok(())
    }

    fn end(&mut self, response: &ResponseBody) -> Result<(), ModelFailure> {
        if let Some(error) = response.error.as_ref().filter(|error| error.message.is_some()) {
            return Err(from_event(error));
        }
        if self.items.is_empty() {
            for (index, item) in response.output.iter().enumerate() {
                self.finish_item(index as u64, item);
            }
        }
        if let Some(usage) = &response.usage {
            let cached =
                usage.input_tokens_details.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0);
            self.usage = Usage {
                input_tokens: usage.input_tokens.saturating_sub(cached),
                output_tokens: usage.output_tokens,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: cached,
            };
        }
        let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        self.stop_reason = match reason {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
            None if self.assembly.has_tool_calls() => StopReason::ToolUse,
            None => StopReason::EndTurn,
        };
        Ok(())
    }

    fn identify(&mut self, response: &ResponseBody) {
        if self.assembly.id.is_empty() {
            self.assembly.id.clone_from(&response.id);
        }
        if self.assembly.model.is_empty() {
            self.assembly.model.clone_from(&response.model);
        }
    }

    fn apply(&mut self, event: &Event<'_>) -> Result<bool, ModelFailure> {
        match event.kind.as_ref() {
            "response.created" => self.identify(&response_of(event)?),
            "response.output_item.added" => {
                self.add_item(event.output_index.unwrap_or(0), &item_of(event)?);
            }
            "response.output_item.done" => {
                self.finish_item(event.output_index.unwrap_or(0), &item_of(event)?);
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.function_call_arguments.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta" => self.delta(event)?,
            "response.completed" | "response.incomplete" => {
                let response = response_of(event)?;
                self.identify(&response);
                self.end(&response)?;
                return Ok(true);
            }
            "response.failed" => {
                let response = response_of(event)?;
                return Err(from_event(&response.error.unwrap_or_default()));
            }
            "error" => return Err(stream_error(event)),
            _ => {}
        }
        Ok(false)
    }
}

impl crate::protocol::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return Err(malformed("the stream said [DONE] before the response was finished"));
        }
        let event: Event<'_> = serde_json::from_str(&data)
            .map_err(|error| malformed(format!("an event is not the JSON it should be: {error}")))?;
        self.apply(&event)
    }

    fn finish(self: Box<Self>) -> Decoded {
        self.assembly.finish(self.stop_reason, self.usage)
    }
}

fn response_of(event: &Event<'_>) -> Result<ResponseBody, ModelFailure> {
    let raw = event.response.map_or("null", RawValue::get);
    serde_json::from_str(raw).map_err(|error| malformed(format!("{}: {error}", event.kind)))
}

fn item_of(event: &Event<'_>) -> Result<Value, ModelFailure> {
    let raw = event.item.map_or("null", RawValue::get);
    serde_json::from_str(raw).map_err(|error| malformed(format!("{}: {error}", event.kind)))
}

/// The error event comes with its fields inside or beside `error`.
fn stream_error(event: &Event<'_>) -> ModelFailure {
    if let Some(error) = &event.error {
        return from_event(error);
    }
    match &event.message {
        Some(Text(message)) => from_event(&ErrorBody {
            kind: None,
            message: Some(message.clone().into_owned()),
            code: event.code.as_ref().map(|Text(code)| Value::String(code.clone().into_owned())),
        }),
        None => {
            failure(qoder_types::ModelFailureClass::Server, "the endpoint reported an error without words")
        }
    }
}

/// The texts of an item's parts.
fn joined(item: &Value, list: &str, separator: &str) -> String {
    let texts: Vec<&str> = item
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str))
        .collect();
    texts.join(separator)
}

/// A response that came in one piece.
pub(crate) fn whole(body: &str) -> Option<Decoded> {
    let response: ResponseBody = serde_json::from_str(body).ok()?;
    if !matches!(response.status.as_str(), "completed" | "incomplete") {
        return None;
    }
    let mut decoder = Box::new(Decoder::new(None));
    decoder.identify(&response);
    decoder.end(&response).ok()?;
    Some(crate::protocol::Decoder::finish(decoder))
}
