//! Reads responses of the Chat Completions protocol and tells them as Anthropic-shaped events.
//! Tolerates what imitating servers do differently: calls without id or index, reasoning under two
//! names, a missing last line.

use std::borrow::Cow;

use qoder_types::{ModelFailure, StopReason, Usage};
use serde::Deserialize;

use super::SIGNATURE;
use crate::call::{Decoded, Sink};
use crate::failure::{ErrorBody, from_event, malformed};
use crate::partial::Assembly;

/// A text that borrows from the event unless it holds escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// The whole message, in an answer that came in one piece.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

struct OpenCall {
    index: Option<u64>,
    id: String,
    block: usize,
}

/// Reads one response.
pub(crate) struct Decoder {
    assembly: Assembly,
    calls: Vec<OpenCall>,
    usage: Usage,
    finish: Option<String>,
    refused: bool,
}

impl Decoder {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self {
            assembly: Assembly::new(sink),
            calls: Vec::new(),
            usage: Usage::default(),
            finish: None,
            refused: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error {
            return Err(from_event(&error));
        }
        if let (true, Some(Text(id))) = (self.assembly.id.is_empty(), chunk.id) {
            self.assembly.id = id.into_owned();
        }
        if let (true, Some(Text(model))) = (self.assembly.model.is_empty(), chunk.model) {
            self.assembly.model = model.into_owned();
        }
        if let Some(usage) = chunk.usage {
            let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0);
            self.usage = Usage {
                input_tokens: usage.prompt_tokens.saturating_sub(cached),
                output_tokens: usage.completion_tokens,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: cached,
            };
        }
        // Only one choice is ever asked for.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta);
            }
            if let Some(Text(reason)) = choice.finish_reason {
                self.finish = Some(reason.into_owned());
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>) {
        if let Some(Text(piece)) = delta.reasoning_content.or(delta.reasoning)
            && !piece.is_empty()
        {
            let block = self.assembly.thinking(&piece);
            self.assembly.sign(block, SIGNATURE.to_owned());
        }
        if let Some(Text(piece)) = delta.content
            && !piece.is_empty()
        {
            self.assembly.text(&piece);
        }
        if let Some(Text(piece)) = delta.refusal
            && !piece.is_empty()
        {
            self.refused = true;
            self.assembly.text(&piece);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.tool_call(call);
        }
    }

    fn tool_call(&mut self, call: ToolCall<'_>) {
        let id = call.id.map(|Text(id)| id.into_owned()).unwrap_or_default();
        let (name, arguments) = match call.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let known = match call.index {
            Some(index) => self.calls.iter().find(|open| open.index == Some(index)),
            // Without an index a new id starts a new call, and anything else goes on with the last one.
            None => self.calls.last().filter(|open| id.is_empty() || open.id == id),
        };
        let block = match known {
            Some(open) => {
                if let Some(Text(name)) = &name {
                    self.assembly.extend_name(open.block, name);
                }
                open.block
            }
            None => {
                let name = name.map(|Text(name)| name.into_owned()).unwrap_or_default();
                let block = self.assembly.add_tool_call(id.clone(), name);
                self.calls.push(OpenCall { index: call.index, id, block });
                block
            }
        };
        if let Some(Text(piece)) = arguments
            && !piece.is_empty()
        {
            self.assembly.append(block, &piece);
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

impl crate::protocol::Decoder for Decoder {
    fn event(&mut self, data: String) -> Result<bool, ModelFailure> {
        if data.trim() == "[DONE]" {
            return if self.finish.is_some() {
                Ok(true)
            } else {
                Err(malformed("the stream said [DONE] before the reply was finished"))
            };
        }
        let chunk: Chunk<'_> = serde_json::from_str(&data)
            .map_err(|error| malformed(format!("an event is not the JSON it should be: {error}")))?;
        self.chunk(chunk)?;
        Ok(false)
    }

    fn may_end(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Decoded {
        let stop_reason = self.stop_reason();
        self.assembly.finish(stop_reason, self.usage)
    }
}

/// A completion that came in one piece.
pub(crate) fn whole(body: &str) -> Option<Decoded> {
    let chunk: Chunk<'_> = serde_json::from_str(body).ok()?;
    if !chunk.choices.as_ref().is_some_and(|choices| choices.iter().any(|choice| choice.message.is_some())) {
        return None;
    }
    let mut decoder = Box::new(Decoder::new(None));
    decoder.chunk(chunk).ok()?;
    Some(crate::protocol::Decoder::finish(decoder))
}
