//! The `offline` model: rules instead of a language model, and it says so.
//!
//! It looks at nothing but the request: the last thing the person asked, the tools on offer, and what came back from
//! them since. The same request always gets the same answer.

mod conversation;
mod everyday;
mod help;
mod intent;
mod lookup;
mod phrases;
mod plan;
mod rendering;
mod show;
pub(crate) mod summary;

use std::hash::{DefaultHasher, Hash, Hasher};

use futures::future::BoxFuture;
use qoder_core::ports::{ModelFacts, ModelRequest};
use qoder_types::{ContentBlock, Purpose, StopReason, Usage};

use crate::calls::Endpoint;
use crate::failure::AttemptFailure;
use crate::settings::Price;
use crate::settings::catalog::Entry;
use crate::wires::partial::emit_whole;
use crate::wires::reply::{Decoded, Sink};
use conversation::Conversation;
use plan::Action;

/// Characters per piece when the caller reads a stream.
const PIECE: usize = 48;

/// Rules instead of a language model.
pub(crate) struct Offline {
    entry: Entry,
}

impl Offline {
    pub(crate) fn new(entry: Entry) -> Self {
        Self { entry }
    }
}

impl Endpoint for Offline {
    fn facts(&self) -> ModelFacts {
        ModelFacts {
            name: "offline".into(),
            provider: "offline".into(),
            context_window: self.entry.context_window,
            max_output_tokens: self.entry.max_output_tokens,
            key_source: "none",
        }
    }

    fn price(&self) -> Option<Price> {
        self.entry.price
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a Sink,
    ) -> BoxFuture<'a, Result<Decoded, AttemptFailure>> {
        Box::pin(async move {
            let decoded = answer(request);
            if request.partial {
                let length = decoded.content.iter().map(block_length).max().unwrap_or(0);
                emit_whole(sink.clone(), &decoded, length / PIECE + 1);
            }
            Ok(decoded)
        })
    }
}

/// How many words a title has.
const TITLE_WORDS: usize = 7;

/// The first words of what the session is about.
fn title(request: &ModelRequest) -> String {
    let text = request.messages.last().map(|message| message.message.content.to_text()).unwrap_or_default();
    text.split_whitespace().take(TITLE_WORDS).collect::<Vec<_>>().join(" ")
}

/// What is shown of a fetched page.
const PAGE_CHARACTERS: usize = 4_000;

fn answer(request: &ModelRequest) -> Decoded {
    let action = match request.purpose {
        Purpose::Compact => Action::Say(summary::write(&request.messages)),
        Purpose::WebFetch => Action::Say(beginning(request)),
        // Rules that do not understand the call must not vouch for it.
        Purpose::Classifier => Action::Say(
            "{\"decision\": \"deny\", \"reason\": \"the offline model judges nothing\"}".to_owned(),
        ),
        Purpose::HookPrompt => {
            Action::Say("{\"ok\": false, \"reason\": \"the offline model judges nothing\"}".to_owned())
        }
        Purpose::Grading => Action::Say(
            "{\"result\": \"failed\", \"explanation\": \"the offline model grades nothing\"}".to_owned(),
        ),
        Purpose::Title => Action::Say(title(request)),
        // It has no idea; and pictures are made elsewhere.
        Purpose::Suggestion | Purpose::ImageGen => Action::Say(String::new()),
        Purpose::Main | Purpose::Subagent | Purpose::Sampling => {
            let conversation = Conversation::read(&request.messages);
            plan::next(&conversation, &request.tools)
        }
    };
    let (content, stop_reason) = match action {
        Action::Say(text) => (vec![ContentBlock::text(text)], StopReason::EndTurn),
        Action::Call(calls) => {
            let turn = fingerprint(request);
            let blocks = calls
                .into_iter()
                .enumerate()
                .map(|(index, (name, input))| ContentBlock::ToolUse {
                    id: format!("toolu_offline_{turn:016x}_{index}"),
                    name,
                    input,
                })
                .collect();
            (blocks, StopReason::ToolUse)
        }
    };
    Decoded {
        id: format!("msg_offline_{:016x}", fingerprint(request)),
        model: "offline".into(),
        usage: estimate_usage(request, &content),
        content,
        stop_reason: Some(stop_reason),
        request_id: None,
        note: None,
    }
}

/// What a fetched page begins with: reading it for an answer is beyond this model, and it says so.
fn beginning(request: &ModelRequest) -> String {
    let text = request.messages.last().map(|message| message.message.content.to_text()).unwrap_or_default();
    let shown: String = text.chars().take(PAGE_CHARACTERS).collect();
    format!(
        "The offline model does not interpret pages. The request and the beginning of the page:\n\n{shown}"
    )
}

/// The same for the same request, and different for the turns of one session: ids must not repeat even after older
/// messages were replaced by a summary, so the count of messages alone would not do.
fn fingerprint(request: &ModelRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.messages.len().hash(&mut hasher);
    for message in request.messages.iter().rev().take(2) {
        serde_json::to_vec(&message.message).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}

/// Token counts for models that have no tokens: a quarter of the bytes. Only what the last turn added is counted as
/// input, and the rest as read from a cache, as it would be at a provider; counting everything again at every turn would
/// cost more the longer the conversation is.
pub(crate) fn estimate_usage(request: &ModelRequest, content: &[ContentBlock]) -> Usage {
    // No protocol's key: those are hashes, and this is for models that have no protocol.
    let format = 0;
    let length = |message: &std::sync::Arc<qoder_core::ports::PromptMessage>| {
        message.encoded(format, |message| serde_json::to_vec(message).unwrap_or_default().into()).len()
    };
    let fresh =
        request.messages.iter().rposition(|message| message.message.role == qoder_types::Role::Assistant);
    let fresh = fresh.map_or(0, |index| index + 1);
    let (old, new) = request.messages.split_at(fresh);
    let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
    let system: usize = request.system.iter().map(String::len).sum();
    Usage {
        input_tokens: tokens(new.iter().map(length).sum()),
        output_tokens: tokens(content.iter().map(block_length).sum()).max(1),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: tokens(old.iter().map(length).sum::<usize>() + system),
    }
}

fn block_length(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
        ContentBlock::Image { .. }
        | ContentBlock::Document { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Unknown(_) => 0,
    }
}
