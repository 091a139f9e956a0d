//! Reads responses of the Chat Completions protocol and emits them as Anthropic-shaped events.
//! Tolerates what imitating servers do differently: calls without id or index or with the same ones,
//! arguments that are no text, reasoning under two names, fields of another type, a missing last line.

use qoder_types::{ModelFailure, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::think_tags::{Piece, ThinkTags};
use crate::failure::{ErrorBody, from_event, malformed, refusal};
use crate::wires::json::{Count, Lenient, List, Text, TextOrJson};
use crate::wires::partial::Assembly;
use crate::wires::reasoning::{KeptReasoning, TAGS};
use crate::wires::reply::{Decoded, Sink};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    choices: List<Choice<'a>>,
    #[serde(default)]
    usage: Lenient<ChatUsage>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Lenient<Delta<'a>>,
    /// The whole message, in an answer that came in one piece.
    #[serde(borrow, default)]
    message: Lenient<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking_blocks: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: List<ToolCall<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Lenient<Function<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: TextOrJson<'a>,
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Lenient<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
}

struct OpenCall {
    index: Option<u64>,
    /// As the server sent it; empty when it sent none.
    sent_id: String,
    /// As the reply has it.
    id: String,
    block: usize,
}

/// Reads one response.
pub(crate) struct Decoder {
    assembly: Assembly,
    calls: Vec<OpenCall>,
    /// The reasoning block that may still get pieces, and what goes into its signature.
    reasoning: Option<(usize, KeptReasoning)>,
    tags: ThinkTags,
    usage: Usage,
    finish: Option<String>,
    refused: bool,
    /// True once token counts came, which only the end of a stream has.
    is_counted: bool,
}

impl Decoder {
    /// `think_tags` says that `<think>` in the text is reasoning.
    pub(crate) fn new(sink: Option<Sink>, think_tags: bool) -> Self {
        Self {
            assembly: Assembly::new(sink),
            calls: Vec::new(),
            reasoning: None,
            tags: ThinkTags::new(think_tags),
            usage: Usage::default(),
            finish: None,
            refused: false,
            is_counted: false,
        }
    }

    /// True when what came can be a whole reply: there is something, and every call has its arguments.
    fn is_whole(&self) -> bool {
        let complete = |open: &OpenCall| self.assembly.body(open.block).is_empty() || self.is_complete(open);
        self.assembly.says_something() && self.calls.iter().all(complete)
    }

    fn chunk(&mut self, chunk: Chunk<'_>) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error.filter(|error| !error.is_empty()) {
            return Err(from_event(&error));
        }
        if self.assembly.id.is_empty() {
            self.assembly.id = chunk.id.0.into_owned();
        }
        if self.assembly.model.is_empty() {
            self.assembly.model = chunk.model.0.into_owned();
        }
        if let Some(usage) = chunk.usage.0 {
            self.is_counted |= self.assembly.says_something() && chunk.choices.0.is_empty();
            let cached =
                usage.prompt_tokens_details.0.and_then(|details| details.cached_tokens.0).unwrap_or(0);
            self.usage = Usage {
                input_tokens: usage.prompt_tokens.0.unwrap_or(0).saturating_sub(cached),
                output_tokens: usage.completion_tokens.0.unwrap_or(0),
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: cached,
            };
        }
        // Only one choice is ever asked for.
        if let Some(choice) = chunk.choices.0.into_iter().next() {
            if let Some(delta) = choice.delta.0.or(choice.message.0) {
                self.delta(delta);
            }
            // Some servers send an empty reason with every piece.
            if !choice.finish_reason.0.is_empty() {
                self.finish = Some(choice.finish_reason.0.into_owned());
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>) {
        let had_text = !delta.reasoning_content.0.is_empty() || !delta.reasoning.0.is_empty();
        // Servers that send both names send the same under both, or nothing under one.
        if !delta.reasoning_content.0.is_empty() {
            self.reason("reasoning_content", &delta.reasoning_content.0);
        } else if !delta.reasoning.0.is_empty() {
            self.reason("reasoning", &delta.reasoning.0);
        }
        if let Some(raw) = delta.reasoning_details
            && let Ok(Value::Array(details)) = serde_json::from_str(raw.get())
            && !details.is_empty()
        {
            self.kept().add_details(details);
        }
        if let Some(raw) = delta.thinking_blocks
            && let Ok(Value::Array(blocks)) = serde_json::from_str::<Value>(raw.get())
            && !blocks.is_empty()
        {
            self.thinking_blocks(blocks, had_text);
        }
        if !delta.content.0.is_empty() {
            for piece in self.tags.push(&delta.content.0) {
                self.piece(piece);
            }
        }
        if !delta.refusal.0.is_empty() {
            self.refused = true;
            self.piece(Piece::Text(delta.refusal.0.into_owned()));
        }
        for call in delta.tool_calls.0 {
            self.tool_call(call);
        }
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Thinking(text) => self.reason(TAGS, &text),
            Piece::Text(text) => {
                self.seal();
                self.assembly.text(&text);
            }
        }
    }

    /// Reasoning with its signature, as gateways pass it on. Its text comes beside it, or here alone.
    fn thinking_blocks(&mut self, blocks: Vec<Value>, had_text: bool) {
        if !had_text {
            let text: String =
                blocks.iter().filter_map(|block| block.get("thinking").and_then(Value::as_str)).collect();
            if !text.is_empty() {
                self.reason("reasoning_content", &text);
            }
        }
        self.kept().add_blocks(blocks);
    }

    fn reason(&mut self, field: &'static str, piece: &str) {
        let block = self.assembly.thinking(piece);
        match &mut self.reasoning {
            Some((open, kept)) if *open == block => kept.set_field(field),
            Some(_) | None => {
                self.seal();
                self.reasoning = Some((block, KeptReasoning::of_field(field)));
            }
        }
    }

    /// What is kept for the endpoint beside the open reasoning, which is opened if necessary.
    fn kept(&mut self) -> &mut KeptReasoning {
        let assembly = &mut self.assembly;
        &mut self.reasoning.get_or_insert_with(|| (assembly.add_thinking_block(), KeptReasoning::default())).1
    }

    /// Signs the open reasoning. Must come before the next block starts: the signature is emitted at the end of its block.
    fn seal(&mut self) {
        if let Some((block, kept)) = self.reasoning.take() {
            self.assembly.sign(block, kept.into_signature());
        }
    }

    fn is_complete(&self, open: &OpenCall) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(self.assembly.body(open.block)).is_ok()
    }

    /// The call that a piece continues; `None` when it starts a new one.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let is_same = |open: &OpenCall| open.sent_id == id && (index.is_none() || open.index == index);
        if !id.is_empty()
            && let Some(position) = self.calls.iter().rposition(is_same)
        {
            // Some servers use the name of the tool as id: nothing can follow complete arguments but another call.
            let starts = !name.is_empty() && !arguments.trim().is_empty();
            let is_new = starts && self.calls.get(position).is_some_and(|open| self.is_complete(open));
            return (!is_new).then_some(position);
        }
        let position = match index {
            Some(index) => self.calls.iter().rposition(|open| open.index == Some(index))?,
            None => self.calls.len().checked_sub(1)?,
        };
        let open = self.calls.get(position)?;
        let is_new = if id.is_empty() || open.sent_id.is_empty() {
            !name.is_empty() && self.is_complete(open)
        } else {
            // Some servers make up an id for every piece: with the same index and no name such a piece starts nothing.
            index.is_none() || !name.is_empty() || self.is_complete(open)
        };
        (!is_new).then_some(position)
    }

    fn tool_call(&mut self, call: ToolCall<'_>) {
        let sent_id = call.id.0;
        let (name, arguments) = match call.function.0 {
            Some(function) => (function.name.0, function.arguments.0),
            None => Default::default(),
        };
        let extra = call.extra_content.map(RawValue::get).filter(|raw| *raw != "null");
        let block = match self
            .find_call(call.index.0, &sent_id, &name, &arguments)
            .and_then(|at| self.calls.get(at))
        {
            Some(open) => {
                let block = open.block;
                self.assembly.extend_name(block, &name);
                if let Some(extra) = extra {
                    let id = open.id.clone();
                    self.kept().add_call(id, extra);
                }
                block
            }
            None => {
                let id = if sent_id.is_empty() || self.calls.iter().any(|open| open.id == sent_id) {
                    format!("call_{}", uuid::Uuid::new_v4().simple())
                } else {
                    sent_id.clone().into_owned()
                };
                if let Some(extra) = extra {
                    self.kept().add_call(id.clone(), extra);
                }
                self.seal();
                let block = self.assembly.add_tool_call(id.clone(), name.into_owned());
                self.calls.push(OpenCall { index: call.index.0, sent_id: sent_id.into_owned(), id, block });
                block
            }
        };
        if !arguments.is_empty() {
            self.assembly.append(block, &arguments);
        }
    }

    fn stop_reason(&self) -> StopReason {
        match self.finish.as_deref() {
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            // Several servers say `stop` after tool calls.
            Some("tool_calls" | "function_call" | "stop") | None if self.assembly.has_tool_calls() => {
                StopReason::ToolUse
            }
            Some("stop" | "tool_calls" | "function_call") | None if self.refused => StopReason::Refusal,
            Some("stop" | "tool_calls" | "function_call") | None => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl crate::wires::reply::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return if self.finish.is_some() || self.is_whole() {
                Ok(true)
            } else {
                Err(malformed("the stream said [DONE] before the reply was finished"))
            };
        }
        let chunk: Lenient<Chunk<'_>> = serde_json::from_str(&data)
            .map_err(|error| malformed(format!("an event is not the JSON it should be: {error}")))?;
        let Lenient(Some(chunk)) = chunk else { return Ok(false) };
        if chunk.choices.0.is_empty()
            && chunk.usage.0.is_none()
            && let Some(error) = refusal(&data)
        {
            return Err(from_event(&error));
        }
        self.chunk(chunk)?;
        Ok(false)
    }

    fn may_end(&self) -> bool {
        self.finish.is_some()
    }

    fn is_said(&mut self, _is_ended: bool) -> bool {
        self.is_counted && self.is_whole()
    }

    fn finish(mut self: Box<Self>) -> Decoded {
        let note = self.finish.is_none().then_some(
            "ended the stream without a finish reason; everything else was there, so the reply was taken as it came",
        );
        if let Some(piece) = self.tags.finish() {
            self.piece(piece);
        }
        self.seal();
        let stop_reason = self.stop_reason();
        Decoded { note, ..self.assembly.finish(stop_reason, self.usage) }
    }
}

/// A completion that came in one piece.
pub(crate) fn whole(body: &str, think_tags: bool) -> Option<Decoded> {
    let chunk: Chunk<'_> = serde_json::from_str(body).ok()?;
    if chunk.choices.0.iter().all(|choice| choice.message.0.is_none()) {
        return None;
    }
    let mut decoder = Box::new(Decoder::new(None, think_tags));
    decoder.chunk(chunk).ok()?;
    Some(crate::wires::reply::Decoder::finish(decoder))
}
