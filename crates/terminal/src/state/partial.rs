//! Pieces of a reply on their way: each block that is being written is a cell that grows. The complete message replaces what
//! the pieces came to; a reply that is begun anew leaves what was shown of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

use super::Conversation;
use super::cell::{Call, CallProgress, CellBody, Level};

/// The blocks of the reply that is being written.
#[derive(Debug, Default)]
pub(super) struct Partial {
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug)]
struct Block {
    cell: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    Call,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: Option<Start<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
}

impl Conversation {
    /// Takes a piece of the main conversation's reply. One that cannot be read is passed over: the message follows.
    pub(super) fn fold_partial(&mut self, event: &str, now: Instant) {
        let Ok(event) = serde_json::from_str::<Event<'_>>(event) else { return };
        match (event.kind.as_ref(), event.content_block, event.delta) {
            ("message_start", ..) => {
                if !self.partial.blocks.is_empty() {
                    self.abandon_partial(now);
                    self.notice(Level::Info, "The response stream was cut off; the reply begins again.");
                }
                self.facts.begin_turn(now);
            }
            ("content_block_start", Some(start), _) => self.start_block(event.index, &start, now),
            ("content_block_delta", _, Some(delta)) => self.extend_block(event.index, &delta),
            _ => {}
        }
    }

    fn start_block(&mut self, index: u64, start: &Start<'_>, now: Instant) {
        let owned = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
        let (kind, body) = match start.kind.as_ref() {
            "text" => (Kind::Text, CellBody::Reply { text: owned(&start.text) }),
            "thinking" => {
                let text = owned(&start.thinking);
                (Kind::Thinking, CellBody::Thinking { text, took: None, since: Some(now) })
            }
            "tool_use" => {
                let mut call = Call::new(&owned(&start.id), &owned(&start.name), Value::Null, Some(now));
                call.progress = CallProgress::Written;
                (Kind::Call, CellBody::Calls(vec![call]))
            }
            _ => return,
        };
        // A new block ends the thinking before it.
        self.end_thinking(now);
        self.facts.answer_arrives(0);
        let cell = self.push(body, false);
        self.partial.blocks.insert(index, Block { cell, kind });
    }

    fn extend_block(&mut self, index: u64, delta: &Delta<'_>) {
        let Some(cell) = self.partial.blocks.get(&index).map(|block| block.cell) else { return };
        let piece = delta.text.as_deref().or(delta.thinking.as_deref()).or(delta.partial_json.as_deref());
        let Some(piece) = piece else { return };
        self.facts.answer_arrives(piece.len());
        let Some(cell) = self.cell_mut(cell) else { return };
        match &mut cell.body {
            CellBody::Reply { text } | CellBody::Thinking { text, .. } => text.push_str(piece),
            CellBody::Calls(calls) => {
                // The size of the input that is being written is all that is shown of it.
                if let Some(call) = calls.first_mut() {
                    let written = call.input.as_u64().unwrap_or(0) + piece.len() as u64;
                    call.input = Value::from(written);
                }
            }
            CellBody::Prompt(_)
            | CellBody::CommandOutput(_)
            | CellBody::Notice(_)
            | CellBody::End(_)
            | CellBody::Todo(_)
            | CellBody::Rule(_) => {}
        }
    }

    fn end_thinking(&mut self, now: Instant) {
        for cell in self.cells.iter_mut().rev().take_while(|cell| !cell.is_finished) {
            if let CellBody::Thinking { took, since: Some(since), .. } = &mut cell.body {
                took.get_or_insert_with(|| now.saturating_duration_since(*since));
                cell.is_finished = true;
            }
        }
    }

    /// The cell in which a block of the complete reply was being written, if it is of this kind. Each is asked for once.
    pub(super) fn take_block(&mut self, index: usize, kind: Kind) -> Option<u64> {
        let index = index as u64;
        let matches = self.partial.blocks.get(&index).is_some_and(|block| block.kind == kind);
        matches.then(|| self.partial.blocks.remove(&index)).flatten().map(|block| block.cell)
    }

    /// What was being written is not written to its end: text stays as it is, calls never were made.
    pub(super) fn abandon_partial(&mut self, now: Instant) {
        self.end_thinking(now);
        for block in std::mem::take(&mut self.partial.blocks).into_values() {
            match block.kind {
                Kind::Text | Kind::Thinking => {
                    if let Some(cell) = self.cell_mut(block.cell) {
                        cell.is_finished = true;
                    }
                }
                Kind::Call => self.cells.retain(|cell| cell.id != block.cell),
            }
        }
    }
}
