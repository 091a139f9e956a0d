//! Puts a reply together from pieces and, when the caller reads a stream, emits it as Anthropic-shaped stream events.
//!
//! Used by every source that does not speak Anthropic itself. Only one block is open at a time, blocks are emitted in the
//! order of their indices, and nothing is emitted twice: pieces for a block that cannot be open yet wait for their turn.

use qoder_types::{ContentBlock, StopReason, Usage};
use serde_json::Value;

use crate::wires::json;
use crate::wires::reply::{Decoded, Sink};

enum Kind {
    Text,
    Thinking { signature: String },
    Tool { id: String, name: String },
}

struct Block {
    kind: Kind,
    /// Text, reasoning or arguments, by kind.
    body: String,
    /// How many bytes of `body` have been emitted.
    told: usize,
    closed: bool,
}

/// A reply in the making.
pub(crate) struct Assembly {
    pub(crate) id: String,
    pub(crate) model: String,
    blocks: Vec<Block>,
    open: Option<usize>,
    started: bool,
    sink: Option<Sink>,
}

impl Assembly {
    /// Starts empty; `sink` is given when the caller reads a stream.
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self { id: String::new(), model: String::new(), blocks: Vec::new(), open: None, started: false, sink }
    }

    /// Opens a text block.
    pub(crate) fn add_text_block(&mut self) -> usize {
        self.add(Kind::Text)
    }

    /// Opens a reasoning block.
    pub(crate) fn add_thinking_block(&mut self) -> usize {
        self.add(Kind::Thinking { signature: String::new() })
    }

    /// Opens a tool call. An empty id is replaced by a new one.
    pub(crate) fn add_tool_call(&mut self, id: String, name: String) -> usize {
        let id = if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id };
        self.add(Kind::Tool { id, name })
    }

    /// Adds text, to the last block if that is text.
    pub(crate) fn text(&mut self, piece: &str) {
        let index = match self.blocks.last() {
            Some(Block { kind: Kind::Text, .. }) => self.blocks.len() - 1,
            _ => self.add_text_block(),
        };
        self.append(index, piece);
    }

    /// Adds reasoning, to the last block if that is reasoning.
    pub(crate) fn thinking(&mut self, piece: &str) -> usize {
        let index = match self.blocks.last() {
            Some(Block { kind: Kind::Thinking { .. }, .. }) => self.blocks.len() - 1,
            _ => self.add_thinking_block(),
        };
        self.append(index, piece);
        index
    }

    /// Sets the signature of a reasoning block.
    pub(crate) fn sign(&mut self, index: usize, text: String) {
        if let Some(Block { kind: Kind::Thinking { signature }, .. }) = self.blocks.get_mut(index) {
            *signature = text;
        }
    }

    /// Adds to the body of a block.
    pub(crate) fn append(&mut self, index: usize, piece: &str) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        block.body.push_str(piece);
        if self.sink.is_some() && self.open == Some(index) {
            self.emit_rest(index);
        }
    }

    fn append_pieces(&mut self, index: usize, text: &str, count: usize) {
        for piece in pieces(text, count) {
            self.append(index, piece);
        }
    }

    /// The body of a block so far.
    pub(crate) fn body(&self, index: usize) -> &str {
        self.blocks.get(index).map_or("", |block| &block.body)
    }

    /// Gives a tool call the name that came late.
    pub(crate) fn extend_name(&mut self, index: usize, piece: &str) {
        if let Some(Block { kind: Kind::Tool { name, .. }, .. }) = self.blocks.get_mut(index)
            && name.is_empty()
        {
            name.push_str(piece);
        }
    }

    /// True when there is a text or a call.
    pub(crate) fn says_something(&self) -> bool {
        self.blocks.iter().any(|block| match block.kind {
            Kind::Text => !block.body.trim().is_empty(),
            Kind::Tool { .. } => true,
            Kind::Thinking { .. } => false,
        })
    }

    /// True when there is at least one tool call.
    pub(crate) fn has_tool_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.kind, Kind::Tool { .. }))
    }

    /// Ends the reply.
    pub(crate) fn finish(mut self, stop_reason: StopReason, usage: Usage) -> Decoded {
        if self.id.is_empty() {
            self.id = format!("msg_{}", uuid::Uuid::new_v4().simple());
        }
        if self.sink.is_some() {
            self.start();
            for index in 0..self.blocks.len() {
                self.close(index);
            }
            let mut delta = String::from(r#"{"type":"message_delta","delta":{"stop_reason":"#);
            delta.push_str(&serde_json::to_string(&stop_reason).unwrap_or_else(|_| "null".into()));
            delta.push_str(r#","stop_sequence":null},"usage":"#);
            delta.push_str(&serde_json::to_string(&usage).unwrap_or_else(|_| "{}".into()));
            delta.push('}');
            self.emit(delta);
            self.emit(r#"{"type":"message_stop"}"#.into());
        }
        Decoded {
            id: self.id,
            model: self.model,
            content: self.blocks.into_iter().filter_map(into_content).collect(),
            stop_reason: Some(stop_reason),
            usage,
            request_id: None,
            note: None,
        }
    }

    fn add(&mut self, kind: Kind) -> usize {
        let index = self.blocks.len();
        self.blocks.push(Block { kind, body: String::new(), told: 0, closed: false });
        if self.sink.is_some() {
            match self.open {
                // A call whose arguments are still incomplete may get more pieces: its successor waits.
                Some(open) if !self.may_close(open) => {}
                Some(open) if open + 1 == index => {
                    self.close(open);
                    self.open_block(index);
                }
                Some(_) => {}
                None => self.open_block(index),
            }
        }
        index
    }

    fn may_close(&self, index: usize) -> bool {
        self.blocks.get(index).is_some_and(|block| match block.kind {
            Kind::Text | Kind::Thinking { .. } => true,
            Kind::Tool { .. } => serde_json::from_str::<serde::de::IgnoredAny>(&block.body).is_ok(),
        })
    }

    fn start(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        let mut event = String::from(r#"{"type":"message_start","message":{"id":"#);
        json::quote_into(&mut event, &self.id);
        event.push_str(r#","type":"message","role":"assistant","model":"#);
        json::quote_into(&mut event, &self.model);
        event.push_str(
            r#","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}"#,
        );
        self.emit(event);
    }

    fn open_block(&mut self, index: usize) {
        self.start();
        let Some(block) = self.blocks.get(index) else { return };
        let mut event = format!(r#"{{"type":"content_block_start","index":{index},"content_block":"#);
        match &block.kind {
            Kind::Text => event.push_str(r#"{"type":"text","text":""}"#),
            Kind::Thinking { .. } => event.push_str(r#"{"type":"thinking","thinking":"","signature":""}"#),
            Kind::Tool { id, name } => {
                event.push_str(r#"{"type":"tool_use","id":"#);
                json::quote_into(&mut event, id);
                event.push_str(r#","name":"#);
                json::quote_into(&mut event, name);
                event.push_str(r#","input":{}}"#);
            }
        }
        event.push('}');
        self.emit(event);
        self.open = Some(index);
        self.emit_rest(index);
    }

    fn emit_rest(&mut self, index: usize) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        let Some(piece) = block.body.get(block.told..).filter(|piece| !piece.is_empty()) else { return };
        let (kind, field) = match block.kind {
            Kind::Text => ("text_delta", "text"),
            Kind::Thinking { .. } => ("thinking_delta", "thinking"),
            Kind::Tool { .. } => ("input_json_delta", "partial_json"),
        };
        let mut event = String::with_capacity(piece.len() + 96);
        event.push_str(r#"{"type":"content_block_delta","index":"#);
        event.push_str(&index.to_string());
        event.push_str(r#","delta":{"type":""#);
        event.push_str(kind);
        event.push_str(r#"",""#);
        event.push_str(field);
        event.push_str(r#"":"#);
        json::quote_into(&mut event, piece);
        event.push_str("}}");
        block.told = block.body.len();
        self.emit(event);
    }

    fn close(&mut self, index: usize) {
        let Some(block) = self.blocks.get(index) else { return };
        if block.closed {
            return;
        }
        if self.open != Some(index) {
            self.open_block(index);
        }
        self.emit_rest(index);
        let signature = match self.blocks.get_mut(index) {
            Some(block) => {
                block.closed = true;
                match &block.kind {
                    Kind::Thinking { signature } if !signature.is_empty() => Some(signature.clone()),
                    Kind::Thinking { .. } | Kind::Text | Kind::Tool { .. } => None,
                }
            }
            None => None,
        };
        if let Some(signature) = signature {
            let mut event = format!(
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"signature_delta","signature":"#
            );
            json::quote_into(&mut event, &signature);
            event.push_str("}}");
            self.emit(event);
        }
        self.emit(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
        self.open = None;
    }

    fn emit(&self, event: String) {
        if let Some(sink) = &self.sink {
            sink.partial(event);
        }
    }
}

fn into_content(block: Block) -> Option<ContentBlock> {
    Some(match block.kind {
        Kind::Text if block.body.is_empty() => return None,
        Kind::Text => ContentBlock::Text { text: block.body },
        Kind::Thinking { signature } if block.body.is_empty() && signature.is_empty() => return None,
        Kind::Thinking { signature } => ContentBlock::Thinking { thinking: block.body, signature },
        Kind::Tool { id, name } => ContentBlock::ToolUse { id, name, input: parse_input(&block.body) },
    })
}

/// Arguments as JSON; no text at all means no arguments, and text that is not JSON stays text.
pub(crate) fn parse_input(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(text) {
        // Some servers encode arguments twice.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            _ => Value::String(inner),
        },
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// Emits a complete reply as the events of a stream, with texts and arguments in `chunks` pieces. The reply itself stays
/// as it is: blocks that have no events of their own must not get lost.
pub(crate) fn emit_whole(sink: Sink, reply: &Decoded, chunks: usize) {
    let mut assembly = Assembly::new(Some(sink));
    assembly.id.clone_from(&reply.id);
    assembly.model.clone_from(&reply.model);
    for block in &reply.content {
        match block {
            ContentBlock::Text { text } => {
                let index = assembly.add_text_block();
                assembly.append_pieces(index, text, chunks);
            }
            ContentBlock::Thinking { thinking, signature } => {
                let index = assembly.add_thinking_block();
                assembly.append_pieces(index, thinking, chunks);
                assembly.sign(index, signature.clone());
            }
            ContentBlock::ToolUse { id, name, input } => {
                let index = assembly.add_tool_call(id.clone(), name.clone());
                match input {
                    Value::String(text) => assembly.append(index, text),
                    input => assembly.append_pieces(index, &input.to_string(), chunks),
                }
            }
            ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::Unknown(_) => {}
        }
    }
    assembly.finish(reply.stop_reason.clone().unwrap_or(StopReason::EndTurn), reply.usage);
}

/// Splits a text into at most `count` pieces of about the same length, at character boundaries.
fn pieces(text: &str, count: usize) -> Vec<&str> {
    let length = text.len().div_ceil(count.max(1)).max(1);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let mut cut = length.min(rest.len());
        while !rest.is_char_boundary(cut) {
            cut += 1;
        }
        let (piece, remaining) = rest.split_at(cut);
        pieces.push(piece);
        rest = remaining;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_split_a_character() {
        let text = "aé漢字🦀z";
        for count in 1..12 {
            assert_eq!(pieces(text, count).concat(), text);
            assert!(pieces(text, count).len() <= count.max(1));
        }
    }

    #[test]
    fn arguments_that_are_not_json_stay_text() {
        assert_eq!(parse_input(" "), serde_json::json!({}));
        assert_eq!(parse_input("{\"a\":1}"), serde_json::json!({"a": 1}));
        assert_eq!(parse_input(r#""{\"a\":1}""#), serde_json::json!({"a": 1}), "encoded twice");
        assert_eq!(parse_input(r#""plain""#), Value::String("plain".into()));
        assert_eq!(parse_input("{\"a\":"), Value::String("{\"a\":".into()));
    }
}
