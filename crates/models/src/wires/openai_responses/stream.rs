//! Reads responses of the Responses protocol and emits them as Anthropic-shaped events. What a finished item says is
//! added only where pieces were missing.
//!
//! Fields are read one by one when an event of a known type needs them: a field of an unexpected shape, or an event that
//! this version does not know, must not cost the reply.

use std::borrow::Cow;

use qoder_types::{ModelFailure, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::items::{Items, Kind, field};
use crate::failure::{ErrorBody, failure, from_event, malformed};
use crate::wires::partial::Assembly;
use crate::wires::reasoning::RESPONSES_SIGNATURE;
use crate::wires::reply::{Decoded, Sink};

/// A text that borrows from the event unless it holds escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    output_index: Option<&'a RawValue>,
    #[serde(borrow)]
    summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResponseBody<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
}

/// Reads one response.
pub(crate) struct Decoder {
    assembly: Assembly,
    items: Items,
    usage: Usage,
    stop_reason: StopReason,
    refused: bool,
    /// True once the response said that it is over.
    ended: bool,
}

impl Decoder {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self {
            assembly: Assembly::new(sink),
            items: Items::default(),
            usage: Usage::default(),
            stop_reason: StopReason::EndTurn,
            refused: false,
            ended: false,
        }
    }

    /// Opens a block for an item.
    fn add_item(&mut self, place: Option<u64>, kind: Kind, item: &Value) -> usize {
        let block = match kind {
            Kind::Message => self.assembly.add_text_block(),
            Kind::Call => {
                let call_id = field(item, "call_id");
                let id = if call_id.is_empty() { field(item, "id") } else { call_id };
                self.assembly.add_tool_call(id.to_owned(), field(item, "name").to_owned())
            }
            Kind::Reasoning => self.assembly.add_thinking_block(),
        };
        self.items.add(place, kind, block, item)
    }

    fn begin_item(&mut self, place: Option<u64>, item: &Value) {
        if let Some(kind) = Kind::of(item)
            && self.items.by_identity(kind, place, item).is_none()
        {
            self.add_item(place, kind, item);
        }
    }

    fn finish_item(&mut self, place: Option<u64>, item: &Value) {
        let Some(kind) = Kind::of(item) else { return };
        let known = self.items.known(kind, place, item);
        let position = known.unwrap_or_else(|| self.add_item(place, kind, item));
        self.complete(position, kind, item);
    }

    /// An item of the list in a completed response. Most have arrived before.
    fn list_item(&mut self, place: u64, item: &Value) {
        let Some(kind) = Kind::of(item) else { return };
        let whole = content_of(kind, item);
        let assembly = &self.assembly;
        let same = |block: usize| match kind {
            Kind::Message => {
                let body = assembly.body(block);
                body.contains(&whole) || whole.starts_with(body)
            }
            Kind::Call => assembly.body(block) == whole,
            // Reasoning that is sent back twice is refused, so one that cannot be told apart is taken as known.
            Kind::Reasoning => true,
        };
        let known = self.items.listed(kind, place, item, same);
        let position = known.unwrap_or_else(|| self.add_item(Some(place), kind, item));
        self.complete(position, kind, item);
    }

    /// Adds what the pieces left out.
    fn complete(&mut self, position: usize, kind: Kind, item: &Value) {
        let Some(found) = self.items.get_mut(position) else { return };
        found.done = true;
        let block = found.block;
        match kind {
            Kind::Message => self.refused |= is_refusal(item),
            Kind::Call => self.assembly.extend_name(block, field(item, "name")),
            Kind::Reasoning => {
                let mut kept = json!({
                    "id": item.get("id"),
                    "summary": item.get("summary").cloned().unwrap_or_else(|| json!([])),
                });
                if let Some(sealed) = item.get("encrypted_content").filter(|sealed| sealed.is_string()) {
                    kept["encrypted_content"] = sealed.clone();
                }
                self.assembly.sign(block, format!("{RESPONSES_SIGNATURE}{kept}"));
            }
        }
        let whole = content_of(kind, item);
        if let Some(rest) = whole.strip_prefix(self.assembly.body(block)) {
            self.assembly.append(block, rest);
        }
    }

    fn delta(&mut self, kind: Kind, event: &Event<'_>) {
        let Some(piece) = text_of(event.delta) else { return };
        let place = number_of(event.output_index);
        let id = text_of(event.item_id).unwrap_or_default();
        let position = match (self.items.for_piece(kind, place, &id), kind) {
            (Some(position), _) => position,
            // Without a name there is nothing to call yet; the finished item brings name and arguments.
            (None, Kind::Call) => return,
            (None, Kind::Message | Kind::Reasoning) => self.add_item(place, kind, &json!({"id": id})),
        };
        let Some(item) = self.items.get_mut(position) else { return };
        let block = item.block;
        if let Some(summary) = number_of(event.summary_index)
            && summary != item.summary
        {
            item.summary = summary;
            self.assembly.append(block, "\n\n");
        }
        self.assembly.append(block, &piece);
    }

    fn end(&mut self, response: &ResponseBody<'_>) -> Result<(), ModelFailure> {
        self.ended = true;
        if let Some(error) = error_of(response.error).filter(|error| error.message.is_some()) {
            return Err(from_event(&error));
        }
        if let Value::Array(output) = value_of(response.output) {
            for (place, item) in output.iter().enumerate() {
                self.list_item(place as u64, item);
            }
        }
        let usage = value_of(response.usage);
        let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("/input_tokens_details/cached_tokens");
        self.usage = Usage {
            input_tokens: count("/input_tokens").saturating_sub(cached),
            output_tokens: count("/output_tokens"),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached,
        };
        let details = value_of(response.incomplete_details);
        self.stop_reason = match details.get("reason").and_then(Value::as_str) {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
            None if self.assembly.has_tool_calls() => StopReason::ToolUse,
            None if self.refused => StopReason::Refusal,
            None => StopReason::EndTurn,
        };
        Ok(())
    }

    fn identify(&mut self, response: &ResponseBody<'_>) {
        if self.assembly.id.is_empty() {
            self.assembly.id = text_of(response.id).unwrap_or_default().into_owned();
        }
        if self.assembly.model.is_empty() {
            self.assembly.model = text_of(response.model).unwrap_or_default().into_owned();
        }
    }

    fn apply(&mut self, event: &Event<'_>) -> Result<bool, ModelFailure> {
        let kind = text_of(event.kind).unwrap_or_default();
        match kind.as_ref() {
            "response.created" => {
                if let Ok(response) = response_of(event) {
                    self.identify(&response);
                }
            }
            "response.output_item.added" => {
                self.begin_item(number_of(event.output_index), &value_of(event.item));
            }
            "response.output_item.done" => {
                self.finish_item(number_of(event.output_index), &value_of(event.item));
            }
            "response.output_text.delta" => self.delta(Kind::Message, event),
            "response.refusal.delta" => {
                self.refused = true;
                self.delta(Kind::Message, event);
            }
            "response.function_call_arguments.delta" => self.delta(Kind::Call, event),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(Kind::Reasoning, event);
            }
            "response.completed" | "response.incomplete" => {
                let response = response_of(event)?;
                self.identify(&response);
                self.end(&response)?;
                return Ok(true);
            }
            "response.failed" => {
                let error = response_of(event).ok().and_then(|response| error_of(response.error));
                return Err(from_event(&error.unwrap_or_default()));
            }
            "error" => return Err(stream_error(event)),
            // Gateways send an error without saying that it is an event.
            "" if error_of(event.error).is_some_and(|error| error.message.is_some()) => {
                return Err(stream_error(event));
            }
            _ => {}
        }
        Ok(false)
    }
}

impl crate::wires::reply::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return if self.is_said(true) {
                Ok(true)
            } else {
                Err(malformed("the stream said [DONE] before the response was finished"))
            };
        }
        match serde_json::from_str::<Event<'_>>(&data) {
            Ok(event) => self.apply(&event),
            // A list or a number is no event of this protocol, but it does no harm either.
            Err(error) if error.is_data() && !data.trim_start().starts_with('{') => {
                match serde_json::from_str::<serde::de::IgnoredAny>(&data) {
                    Ok(_) => Ok(false),
                    Err(error) => Err(not_json(&error)),
                }
            }
            Err(error) => Err(not_json(&error)),
        }
    }

    /// Each item says that it is complete, but none says that it is the last.
    fn is_said(&mut self, is_ended: bool) -> bool {
        let said = is_ended && self.items.all_done() && self.assembly.says_something();
        if said && self.assembly.has_tool_calls() {
            self.stop_reason = StopReason::ToolUse;
        }
        said
    }

    fn finish(self: Box<Self>) -> Decoded {
        let note = (!self.ended).then_some(
            "ended the stream without a last event; every item was complete, so the reply was taken as it came",
        );
        Decoded { note, ..self.assembly.finish(self.stop_reason, self.usage) }
    }
}

fn not_json(error: &serde_json::Error) -> ModelFailure {
    malformed(format!("an event is not the JSON it should be: {error}"))
}

fn text_of(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw?.get()).ok().map(|Text(text)| text)
}

fn number_of(raw: Option<&RawValue>) -> Option<u64> {
    raw?.get().parse().ok()
}

/// A field as JSON; null when it is not there.
fn value_of(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn error_of(raw: Option<&RawValue>) -> Option<ErrorBody> {
    serde_json::from_str(raw?.get()).ok()
}

fn response_of<'a>(event: &Event<'a>) -> Result<ResponseBody<'a>, ModelFailure> {
    let raw = event.response.map_or("null", RawValue::get);
    serde_json::from_str(raw).map_err(|error| malformed(format!("the event's response: {error}")))
}

/// The error event comes with its fields inside or beside `error`.
fn stream_error(event: &Event<'_>) -> ModelFailure {
    if let Some(error) = error_of(event.error) {
        return from_event(&error);
    }
    match text_of(event.message) {
        Some(message) => from_event(&ErrorBody {
            kind: None,
            message: Some(message.into_owned()),
            code: Some(value_of(event.code)).filter(|code| !code.is_null()),
        }),
        None => {
            failure(qoder_types::ModelFailureClass::Server, "the endpoint reported an error without words")
        }
    }
}

/// All that an item says: text, arguments or reasoning.
fn content_of(kind: Kind, item: &Value) -> String {
    match kind {
        Kind::Message => joined(item, "content", ""),
        Kind::Reasoning => match joined(item, "summary", "\n\n") {
            // Servers of open models give the reasoning itself and no summary.
            summary if summary.is_empty() => joined(item, "content", ""),
            summary => summary,
        },
        Kind::Call => match item.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        },
    }
}

fn is_refusal(item: &Value) -> bool {
    let parts = item.get("content").and_then(Value::as_array);
    parts.into_iter().flatten().any(|part| !field(part, "refusal").is_empty())
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
    let response: ResponseBody<'_> = serde_json::from_str(body).ok()?;
    let ended = match text_of(response.status) {
        Some(status) => matches!(status.as_ref(), "completed" | "incomplete"),
        None => value_of(response.output).is_array(),
    };
    if !ended {
        return None;
    }
    let mut decoder = Box::new(Decoder::new(None));
    decoder.identify(&response);
    decoder.end(&response).ok()?;
    Some(crate::wires::reply::Decoder::finish(decoder))
}
