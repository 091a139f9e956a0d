//! Reads responses of the Anthropic Messages protocol. Events that somebody reads along are handed on
//! as they came. One event is parsed into borrowed fields; only the start of a block and of a message
//! is looked at more closely.

use std::borrow::Cow;

use qoder_types::{ContentBlock, ModelFailure, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{Decoded, Sink};
use crate::failure::{ErrorBody, from_event, malformed};
use crate::partial::parse_input;

/// A text that borrows from the event unless it holds escapes. `Option<Cow<str>>` alone would always copy.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    index: Option<usize>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    usage: Option<UsageBody>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct UsageBody {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
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
            if let Some(count) = new {
                *kept = count;
            }
        }
    }
}

#[derive(Deserialize)]
struct MessageBody {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    content: Vec<Value>,
    stop_reason: Option<String>,
    usage: Option<UsageBody>,
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
}

/// More blocks than any reply has; a larger index is a broken stream and not a reason to reserve memory.
const MOST_BLOCKS: usize = 100_000;

impl Decoder {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self { sink, started: false, reply: Decoded::default(), blocks: Vec::new() }
    }

    fn start_message(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let Some(raw) = event.message else { return Err(malformed("message_start without message")) };
        let message: MessageBody =
            serde_json::from_str(raw.get()).map_err(|error| malformed(format!("message_start: {error}")))?;
        self.started = true;
        self.reply.id = message.id;
        self.reply.model = message.model;
        message.usage.unwrap_or_default().apply(&mut self.reply.usage);
        Ok(())
    }

    fn start_block(&mut self, event: &Event<'_>) -> Result<(), ModelFailure> {
        let (Some(index), Some(raw)) = (event.index, event.content_block) else {
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
        let known = event.index.and_then(|index| self.blocks.get_mut(index)).and_then(Option::as_mut);
        let (Some(block), Some(delta)) = (known, &event.delta) else {
            return Err(malformed("content_block_delta for a block that never started"));
        };
        match &mut block.block {
            ContentBlock::Text { text } => push(text, delta.text.as_ref()),
            ContentBlock::Thinking { thinking, signature } => {
                push(thinking, delta.thinking.as_ref());
                push(signature, delta.signature.as_ref());
            }
            ContentBlock::ToolUse { .. } | ContentBlock::Unknown(_) => {
                push(&mut block.arguments, delta.partial_json.as_ref());
            }
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::RedactedThinking { .. } => {}
        }
        Ok(())
    }

    fn end_message(&mut self, event: &Event<'_>) {
        if let Some(Text(reason)) = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_ref()) {
            self.reply.stop_reason = Some(stop_reason(reason));
        }
        if let Some(usage) = &event.usage {
            usage.apply(&mut self.reply.usage);
        }
    }

    /// Applies one event. The first flag says that the reply is complete, the second that readers want the event.
    fn apply(&mut self, event: &Event<'_>) -> Result<(bool, bool), ModelFailure> {
        match event.kind.as_ref() {
            "message_start" => self.start_message(event)?,
            "error" => return Err(from_event(event.error.as_ref().unwrap_or(&ErrorBody::default()))),
            "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
                if !self.started =>
            {
                return Err(malformed(format!("{} before message_start", event.kind)));
            }
            "content_block_start" => self.start_block(event)?,
            "content_block_delta" => self.extend_block(event)?,
            "content_block_stop" => {}
            "message_delta" => self.end_message(event),
            "message_stop" => return Ok((true, true)),
            // Gateways send errors of their own without a type.
            _ => match &event.error {
                Some(error) => return Err(from_event(error)),
                None => return Ok((false, false)),
            },
        }
        Ok((false, true))
    }
}

impl crate::protocol::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        let event: Event<'_> = serde_json::from_str(&data)
            .map_err(|error| malformed(format!("an event is not the JSON it should be: {error}")))?;
        let (complete, wanted) = self.apply(&event)?;
        if wanted && let Some(sink) = &self.sink {
            sink.partial(data);
        }
        Ok(complete)
    }

    fn finish(self: Box<Self>) -> Decoded {
        let mut reply = self.reply;
        reply.content = self.blocks.into_iter().flatten().filter_map(finish_block).collect();
        reply
    }
}

fn push(kept: &mut String, piece: Option<&Text<'_>>) {
    if let Some(Text(piece)) = piece {
        kept.push_str(piece);
    }
}

/// The catch-all of the block type takes any JSON, so this cannot fail in practice.
fn to_block(value: Value) -> ContentBlock {
    serde_json::from_value(value).unwrap_or(ContentBlock::Unknown(Value::Null))
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
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// A message that came in one piece.
pub(crate) fn whole(body: &str) -> Option<Decoded> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let kind: Kind = serde_json::from_str(body).ok()?;
    if kind.kind != "message" {
        return None;
    }
    let message: MessageBody = serde_json::from_str(body).ok()?;
    let mut usage = Usage::default();
    message.usage.unwrap_or_default().apply(&mut usage);
    Some(Decoded {
        id: message.id,
        model: message.model,
        content: message
            .content
            .into_iter()
            .map(|value| Block { block: to_block(value), arguments: String::new() })
            .filter_map(finish_block)
            .collect(),
        stop_reason: Some(stop_reason(message.stop_reason.as_deref().unwrap_or("end_turn"))),
        usage,
        request_id: None,
    })
}
