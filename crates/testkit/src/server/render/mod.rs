//! Replies in the words of a wire protocol. An [`Answer`] is what all three have in common;
//! each protocol has a file that turns it into the events of a stream or into one JSON
//! document.

mod anthropic;
mod chat;
mod responses;

use serde_json::{Value, json};

use crate::Reply;

/// The wire protocols the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
}

impl Protocol {
    /// The protocol of a path, with or without a version in front.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/messages") {
            Some(Self::Messages)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else {
            None
        }
    }

    /// The events of a streamed answer, each as the text of one server-sent event.
    pub(super) fn events(self, answer: &Answer) -> Vec<String> {
        match self {
            Self::Messages => anthropic::events(answer),
            Self::Chat => chat::events(answer),
            Self::Responses => responses::events(answer),
        }
    }

    /// The same answer as one document, for a request that does not stream.
    pub(super) fn document(self, answer: &Answer) -> Value {
        match self {
            Self::Messages => anthropic::document(answer),
            Self::Chat => chat::document(answer),
            Self::Responses => responses::document(answer),
        }
    }
}

/// Token counts that do not overlap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

impl Tokens {
    fn of(usage: Option<&Value>) -> Self {
        let count = |name: &str, default: u64| {
            usage.map_or(default, |usage| usage[name].as_u64().unwrap_or_default())
        };
        Self {
            input: count("input_tokens", 10),
            output: count("output_tokens", 5),
            cache_read: count("cache_read_input_tokens", 0),
            cache_write: count("cache_creation_input_tokens", 0),
        }
    }

    /// Everything read; what OpenAI's protocols call prompt or input tokens.
    fn all_input(self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// A reply without a wire protocol.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// A word made from the request; ids of the answer contain it.
    pub(super) mark: String,
    pub(super) model: String,
    /// Reasoning and its signature.
    pub(super) thinking: Option<(String, String)>,
    /// The pieces of the text.
    pub(super) text: Option<Vec<String>>,
    /// Calls, as id, name and arguments.
    pub(super) tools: Vec<(String, String, Value)>,
    /// In the words of the Anthropic protocol.
    pub(super) stop_reason: String,
    pub(super) tokens: Tokens,
}

impl Answer {
    /// The answer that a reply describes; `None` for a reply that is a fault and no message.
    pub(super) fn of(reply: &Reply, model: &str, mark: &str) -> Option<Self> {
        let mut answer = Self {
            mark: mark.to_owned(),
            model: model.to_owned(),
            thinking: None,
            text: None,
            tools: Vec::new(),
            stop_reason: "end_turn".to_owned(),
            tokens: Tokens::of(None),
        };
        match reply {
            Reply::Text(text) => answer.text = Some(pieces(text)),
            Reply::Deltas { count, text } => answer.text = Some(vec![text.clone(); *count]),
            Reply::ToolCalls(calls) => {
                answer.tools = calls
                    .iter()
                    .enumerate()
                    .map(|(index, (name, input))| {
                        (format!("toolu_{mark}_{index}"), name.clone(), input.clone())
                    })
                    .collect();
            }
            Reply::Blocks { thinking, text, tools, usage, .. } => {
                answer.thinking.clone_from(thinking);
                answer.text = text.as_deref().map(pieces);
                answer.tools.clone_from(tools);
                answer.tokens = Tokens::of(usage.as_ref());
            }
            Reply::HttpError { .. }
            | Reply::CutStream { .. }
            | Reply::StalledStream { .. }
            | Reply::PacedStream { .. }
            | Reply::Malformed
            | Reply::SlowFirstByte { .. }
            | Reply::Html(_) => return None,
        }
        if !answer.tools.is_empty() {
            answer.stop_reason = "tool_use".to_owned();
        }
        if let Reply::Blocks { stop_reason: Some(stop_reason), .. } = reply {
            answer.stop_reason.clone_from(stop_reason);
        }
        Some(answer)
    }

    /// The whole text.
    fn whole_text(&self) -> String {
        self.text.as_ref().map(|pieces| pieces.concat()).unwrap_or_default()
    }
}

/// The text in about three pieces, cut between characters.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(3).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// One server-sent event with a name.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}

/// The list of models that `GET /v1/models` answers.
pub(super) fn models() -> Value {
    let model = |id: &str| {
        json!({
            "id": id, "type": "model", "object": "model", "display_name": id,
            "created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "scripted"
        })
    };
    json!({
        "object": "list",
        "data": [model("scripted-large"), model("scripted-small")],
        "has_more": false, "first_id": "scripted-large", "last_id": "scripted-small"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text() {
        for text in ["", "a", "ab", "hello world", "🦀🦀🦀🦀"] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(pieces("abcdefg").len(), 3);
    }

    #[test]
    fn paths_name_protocols_with_and_without_a_version() {
        assert_eq!(Protocol::of("/v1/messages?beta=true"), Some(Protocol::Messages));
        assert_eq!(Protocol::of("/chat/completions"), Some(Protocol::Chat));
        assert_eq!(Protocol::of("/v1/responses"), Some(Protocol::Responses));
        assert_eq!(Protocol::of("/v1/models"), None);
    }
}
