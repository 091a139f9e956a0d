//! Previews: pieces of a reply as the model writes it, under the id that the stored event will have. They are never stored; when
//! the reply does not come to an end, nothing follows them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::ids::EventId;

/// A frame for subscribers that want pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewFrame {
    /// The event that it is a piece of.
    pub id: EventId,
    /// `agent.message` or `agent.thinking`.
    pub of: &'static str,
    /// `event_start` or `event_delta`.
    pub kind: &'static str,
    /// The whole frame's data.
    pub data: Value,
}

/// The previews of the reply that is being written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Previews {
    message: Option<EventId>,
    thinking: Vec<EventId>,
    /// The block of the provider that is being written: whether it is text, and its place among the texts.
    open: Option<Option<u64>>,
    texts: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    MessageStart,
    ContentBlockStart {
        content_block: Value,
    },
    ContentBlockDelta {
        delta: Value,
    },
    ContentBlockStop,
    #[serde(other)]
    Other,
}

impl Previews {
    /// Takes a piece of a reply, as the runtime reports it; answers with what subscribers get.
    pub fn take(&mut self, piece: &str) -> Vec<PreviewFrame> {
        let Ok(piece) = serde_json::from_str::<Piece>(piece) else { return Vec::new() };
        match piece {
            // Another attempt begins: what was shown so far belongs to a reply that will not come.
            Piece::MessageStart => {
                *self = Self::default();
                Vec::new()
            }
            Piece::ContentBlockStart { content_block } => match content_block["type"].as_str() {
                Some("text") => {
                    self.open = Some(Some(self.texts));
                    self.texts += 1;
                    Vec::new()
                }
                Some("thinking") => {
                    self.open = Some(None);
                    let id = EventId::now();
                    self.thinking.push(id);
                    vec![start(id, "agent.thinking")]
                }
                _ => Vec::new(),
            },
            Piece::ContentBlockDelta { delta } => self.delta(&delta),
            Piece::ContentBlockStop => {
                self.open = None;
                Vec::new()
            }
            Piece::Other => Vec::new(),
        }
    }

    fn delta(&mut self, delta: &Value) -> Vec<PreviewFrame> {
        let (Some(Some(index)), Some(text)) = (self.open, delta["text"].as_str()) else { return Vec::new() };
        let is_first = self.message.is_none();
        let id = *self.message.get_or_insert_with(EventId::now);
        let data = json!({
            "type": "event_delta", "event_id": id,
            "delta": { "type": "content_delta", "index": index, "content": { "type": "text", "text": text } },
        });
        let delta = PreviewFrame { id, of: "agent.message", kind: "event_delta", data };
        if is_first { vec![start(id, "agent.message"), delta] } else { vec![delta] }
    }

    /// The id of the message, if pieces of it were shown.
    pub(super) fn take_message(&mut self) -> Option<EventId> {
        self.message.take()
    }

    /// The id of the next reasoning, if pieces of it were shown.
    pub(super) fn take_thinking(&mut self) -> Option<EventId> {
        (!self.thinking.is_empty()).then(|| self.thinking.remove(0))
    }
}

fn start(id: EventId, of: &'static str) -> PreviewFrame {
    let data = json!({ "type": "event_start", "event": { "id": id, "type": of } });
    PreviewFrame { id, of, kind: "event_start", data }
}
