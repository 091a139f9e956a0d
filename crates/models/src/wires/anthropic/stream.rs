//! Reads responses of the Anthropic Messages protocol. Events with a reader are handed on
//! as they came. One event is parsed into borrowed fields; only the start of a block and of a message
//! is looked at more closely.

use qoder_types::{ContentBlock, ModelFailure, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::failure::{from_event, malformed, refusal};
use crate::wires::json::{Count, Lenient, List, Text};
use crate::wires::partial::parse_input;
use crate::wires::reply::{Decoded, Sink};

#[derive(Default, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Lenient<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    usage: Lenient<UsageBody>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UsageBody {
    input_tokens: Count,
    output_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
}

impl UsageBody {
    /// Later counts replace earlier ones: the protocol's are cumulative.
    fn apply(&self, usage: &mut Usage) {
        let pairs = [
            (self.input_tokens, &mut usage.input_tokens),
            (self.output_tokens, &mut usage.output_tokens),
            (self.cache_creation_input_tokens, &mut usage.cache_creation_input_tokens),
            (self.cache_read_input_tokens, &mut usage.cache_read_input_tokens),
        ];
        for (new, kept) in pairs {
            if let Count(Some(count)) = new {
                *kept = count;
            }
        }
    }
}

#[derive(Default, Deserialize)]
struct MessageBody<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default)]
    content: List<Map<String, Value>>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
    #[serde(default)]
    usage: Lenient<UsageBody>,
}

struct Block {
    block: ContentBlock,
    arguments: String,
}

/// Reads one response.
pub(crate) struct Decoder {
    sink: Option<Sink>,
    started: bool,
    reply: Decoded,
    blocks: Vec<Option<Block>>,
    stopped: bool,
    /// True when the endpoint sent no id and the reply has one of ours.
    given_id: bool,
}

/// More blocks than any reply has; a larger index is a broken stream and not a reason to reserve memory.
const MOST_BLOCKS: usize = 100_000;

impl Decoder {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self {
            sink,
            started: false,
            reply: Decoded::default(),
            blocks: Vec::new(),
            stopped: false,
            given_id: false,
        }
    }

    fn start_message(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let raw = event.message.map_or("null", RawValue::get);
        let message: Lenient<MessageBody<'_>> =
            serde_json::from_str(raw).map_err(|error| malformed(format!("message_start: {error}")))?;
        let message = message.0.unwrap_or_default();
        self.started = true;
        self.given_id = message.id.0.is_empty();
        self.reply.id = or_new(message.id.0.into_owned(), "msg");
        self.reply.model = message.model.0.into_owned();
        message.usage.0.unwrap_or_default().apply(&mut self.reply.usage);
        Ok(())
    }

    fn start_block(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let (Some(index), Some(raw)) = (event.place(), event.content_block) else {
            return Err(malformed("content_block_start without index or block"));
        };
        if index >= MOST_BLOCKS {
            return Err(malformed("content_block_start with an impossible index"));
        }
        let value: Value = serde_json::from_str(raw.get())
            .map_err(|error| malformed(format!("content_block_start: {error}")))?;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        self.blocks[index] = Some(Block { block: to_block(value), arguments: String::new() });
        Ok(())
    }

    fn extend_block(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let known = event.place().and_then(|index| self.blocks.get_mut(index)).and_then(Option::as_mut);
        let Some(block) = known else {
            return Err(malformed("content_block_delta for a block that never started"));
        };
        let Lenient(Some(delta)) = &event.delta else { return Ok(()) };
        match &mut block.block {
            ContentBlock::Text { text } => push(text, &delta.text),
            ContentBlock::Thinking { thinking, signature } => {
                push(thinking, &delta.thinking);
                push(signature, &delta.signature);
            }
            ContentBlock::ToolUse { .. } | ContentBlock::Unknown(_) => {
                push(&mut block.arguments, &delta.partial_json);
            }
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::RedactedThinking { .. } => {}
        }
        Ok(())
    }

    fn end_message(&mut self, event: &Event<'_>) {
        if let Lenient(Some(delta)) = &event.delta
            && !delta.stop_reason.0.is_empty()
        {
            self.reply.stop_reason = Some(stop_reason(&delta.stop_reason.0));
        }
        if let Lenient(Some(usage)) = &event.usage {
            usage.apply(&mut self.reply.usage);
        }
    }

    /// Applies one event. The first flag says that the reply is complete, the second that readers want the event.
    fn apply(&mut self, event: &Event<'_>, data: &str) -> Result<(bool, bool), ModelFailure> {
        match event.kind.0.as_ref() {
            "message_start" => self.start_message(event)?,
            "error" => return Err(from_event(&refusal(data).unwrap_or_default())),
            "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
                if !self.started =>
            {
                return Err(malformed(format!("{} before message_start", event.kind.0)));
            }
            "content_block_start" => self.start_block(event)?,
            "content_block_delta" => self.extend_block(event)?,
            "content_block_stop" => {}
            "message_delta" => self.end_message(event),
            "message_stop" => {
                self.stopped = true;
                return Ok((true, true));
            }
            "ping" => return Ok((false, false)),
            // Gateways send errors of their own, without a type or with another.
            _ => match refusal(data) {
                Some(error) => return Err(from_event(&error)),
                None => return Ok((false, false)),
            },
        }
        Ok((false, true))
    }
}

impl crate::wires::reply::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return if self.may_end() {
                Ok(true)
            } else {
                Err(malformed("the stream said [DONE] before the reply was finished"))
            };
        }
        let event: Lenient<Event<'_>> = serde_json::from_str(&data)
            .map_err(|error| malformed(format!("an event is not the JSON it should be: {error}")))?;
        let event = event.0.unwrap_or_default();
        let (complete, wanted) = self.apply(&event, &data)?;
        let is_start = event.kind.0 == "message_start";
        if wanted && let Some(sink) = &self.sink {
            sink.partial(if is_start && self.given_id { with_id(&data, &self.reply.id) } else { data });
        }
        Ok(complete)
    }

    fn may_end(&self) -> bool {
        self.reply.stop_reason.is_some()
    }

    fn finish(self: Box<Self>) -> Decoded {
        if let (false, Some(sink)) = (self.stopped, &self.sink) {
            sink.partial(r#"{"type":"message_stop"}"#.into());
        }
        let mut reply = self.reply;
        reply.content = self.blocks.into_iter().flatten().filter_map(finish_block).collect();
        reply
    }
}

impl Event<'_> {
    /// The index as a place in a list.
    fn place(&self) -> Option<usize> {
        self.index.0.and_then(|index| usize::try_from(index).ok())
    }
}

fn push(kept: &mut String, piece: &Text<'_>) {
    kept.push_str(&piece.0);
}

/// An id, or a new one where the endpoint sent none.
fn or_new(id: String, prefix: &str) -> String {
    if id.is_empty() { format!("{prefix}_{}", uuid::Uuid::new_v4().simple()) } else { id }
}

/// The first event with an id, for those who read along.
fn with_id(data: &str, id: &str) -> String {
    let mut event: Map<String, Value> = serde_json::from_str(data).unwrap_or_default();
    let message = event.entry("message").or_insert(Value::Null);
    if !message.is_object() {
        *message = Value::Object(Map::new());
    }
    if let Value::Object(fields) = message {
        fields.insert("id".into(), id.into());
    }
    Value::Object(event).to_string()
}

/// A block as it starts. Fields may be missing where pieces follow, and a call is always a call: as an unknown block it
/// would never be answered. The catch-all of the block type takes any other JSON.
fn to_block(value: Value) -> ContentBlock {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match value.get("type").and_then(Value::as_str) {
        Some("text") => ContentBlock::Text { text: text("text") },
        Some("thinking") => {
            ContentBlock::Thinking { thinking: text("thinking"), signature: text("signature") }
        }
        Some("tool_use") => ContentBlock::ToolUse {
            id: or_new(text("id"), "toolu"),
            name: text("name"),
            input: match value.get("input") {
                None | Some(Value::Null) => Value::Object(Map::new()),
                Some(Value::String(arguments)) => parse_input(arguments),
                Some(input) => input.clone(),
            },
        },
        Some(_) | None => serde_json::from_value(value).unwrap_or(ContentBlock::Unknown(Value::Null)),
    }
}

fn finish_block(finished: Block) -> Option<ContentBlock> {
    let Block { block, arguments } = finished;
    Some(match block {
        ContentBlock::Text { text } if text.is_empty() => return None,
        ContentBlock::ToolUse { id, name, input } => {
            let input = if arguments.is_empty() { input } else { parse_input(&arguments) };
            ContentBlock::ToolUse { id, name, input }
        }
        ContentBlock::Unknown(Value::Object(mut fields)) => {
            if !arguments.is_empty() {
                fields.insert("input".into(), parse_input(&arguments));
            }
            ContentBlock::Unknown(Value::Object(fields))
        }
        other => other,
    })
}

/// A stop reason as the protocol spells it.
pub(crate) fn stop_reason(text: &str) -> StopReason {
    match text {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        // The window ended the reply as the limit would have.
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// A message that came in one piece.
pub(crate) fn whole(body: &str) -> Option<Decoded> {
    let Lenient(message) = serde_json::from_str::<Lenient<MessageBody<'_>>>(body).ok()?;
    let message = message.filter(|message| message.kind.0 == "message")?;
    let mut usage = Usage::default();
    message.usage.0.unwrap_or_default().apply(&mut usage);
    let reason = message.stop_reason.0;
    Some(Decoded {
        id: or_new(message.id.0.into_owned(), "msg"),
        model: message.model.0.into_owned(),
        content: message
            .content
            .0
            .into_iter()
            .map(|fields| Block { block: to_block(Value::Object(fields)), arguments: String::new() })
            .filter_map(finish_block)
            .collect(),
        stop_reason: Some(if reason.is_empty() { StopReason::EndTurn } else { stop_reason(&reason) }),
        usage,
        request_id: None,
        note: None,
    })
}
