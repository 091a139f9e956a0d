//! Pieces of a reply on their way to the host, without secrets and with the ids that its calls get. A key may be cut anywhere between two pieces, so the text
//! of each block goes through a stream of its own; what is held back comes before the end of its block.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use qoder_core::redact::{RedactedStream, Redactor, Secrets};
use qoder_types::ContentBlock;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::session::call_ids::CallNames;

/// What text a delta adds, by the name of its field; and what is looked for in it.
const FIELDS: [(&str, &str, Secrets); 4] = [
    ("text_delta", "text", Secrets::All),
    ("thinking_delta", "thinking", Secrets::All),
    ("input_json_delta", "partial_json", Secrets::Values),
    ("signature_delta", "signature", Secrets::Values),
];

/// Redacts the pieces of one reply.
pub(crate) struct Pieces {
    redactor: Redactor,
    blocks: BTreeMap<(u64, usize), RedactedStream>,
    names: CallNames,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
}

impl Delta<'_> {
    /// The field that adds text, and the text.
    fn text(&self) -> Option<(usize, &str)> {
        let kind = self.kind.as_deref()?;
        let field = FIELDS.iter().position(|(name, _, _)| *name == kind)?;
        let texts = [&self.text, &self.thinking, &self.partial_json, &self.signature];
        Some((field, texts[field].as_deref()?))
    }
}

impl Pieces {
    /// For a reply that begins; `taken` are the ids that its calls must not have.
    pub(crate) fn new(redactor: &Redactor, taken: Arc<HashSet<String>>) -> Self {
        Self { redactor: redactor.clone(), blocks: BTreeMap::new(), names: CallNames::new(taken) }
    }

    /// The reply is complete: its calls get the ids that its pieces had.
    pub(crate) fn name_calls(self, content: &mut [ContentBlock]) {
        self.names.name_reply(content);
    }

    /// The events that the host gets for one of the model's.
    pub(crate) fn redacted(&mut self, event: String) -> Vec<String> {
        // An event that is not one of these has no text in it; what cannot be read is not passed on.
        let Ok(head) = serde_json::from_str::<Head<'_>>(&event) else { return Vec::new() };
        let index = head.index.unwrap_or(0);
        match (head.kind.as_ref(), head.delta.as_ref().and_then(Delta::text)) {
            ("content_block_delta", Some((field, text))) => {
                let redactor = &self.redactor;
                let stream =
                    self.blocks.entry((index, field)).or_insert_with(|| redactor.stream(FIELDS[field].2));
                let clean = stream.push_text(text);
                if clean == text {
                    vec![event]
                } else if clean.is_empty() {
                    Vec::new()
                } else {
                    vec![with_text(&event, field, clean)]
                }
            }
            ("content_block_stop", _) => {
                let mut events = self.rest(Some(index));
                events.push(event);
                events
            }
            ("content_block_start", _) => {
                let event = self.names.name_event(event);
                vec![self.whole(event)]
            }
            ("message_start", _) => {
                // Another attempt: what was held of the one before is void.
                self.blocks.clear();
                self.names.restart();
                vec![self.whole(event)]
            }
            ("message_delta" | "message_stop", _) => {
                let mut events = self.rest(None);
                events.push(self.whole(event));
                events
            }
            _ => vec![self.whole(event)],
        }
    }

    /// What is held back of a block, or of all.
    fn rest(&mut self, index: Option<u64>) -> Vec<String> {
        let mut events = Vec::new();
        for ((block, field), stream) in &mut self.blocks {
            if index.is_some_and(|index| index != *block) {
                continue;
            }
            let rest = stream.finish_text();
            if !rest.is_empty() {
                let (kind, name, _) = FIELDS[*field];
                let delta = json!({ "type": kind, name: rest });
                events.push(
                    json!({ "type": "content_block_delta", "index": block, "delta": delta }).to_string(),
                );
            }
        }
        self.blocks.retain(|(block, _), _| index.is_some_and(|index| index != *block));
        events
    }

    /// An event whose texts are whole.
    fn whole(&self, event: String) -> String {
        if !self.redactor.may_find(&event) {
            return event;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&event) else { return event };
        if self.redactor.json(&mut value, Secrets::All) { value.to_string() } else { event }
    }
}

/// The event with another text.
fn with_text(event: &str, field: usize, text: String) -> String {
    let mut value: Value = serde_json::from_str(event).unwrap_or_default();
    value["delta"][FIELDS[field].1] = Value::String(text);
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "my-own-\"secret\"-value";

    fn delta(index: u64, field: usize, text: &str) -> String {
        let (kind, name, _) = FIELDS[field];
        json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, name: text } })
            .to_string()
    }

    /// What a host puts together of the pieces of one block.
    fn joined(events: &[String], index: u64, field: usize) -> String {
        let text = |event: &String| {
            let event: Value = serde_json::from_str(event).unwrap();
            let is_meant = event["index"] == json!(index);
            is_meant.then(|| event["delta"][FIELDS[field].1].as_str().unwrap_or_default().to_owned())
        };
        events.iter().filter_map(text).collect()
    }

    #[test]
    fn a_key_is_found_wherever_it_is_cut_in_every_kind_of_piece() {
        let redactor = Redactor::new([KEY.to_owned()]);
        for field in 0..FIELDS.len() {
            let inside = Value::from(KEY).to_string();
            let text =
                if field == 2 { format!("{{\"command\":{inside}}}") } else { format!("it is {KEY}, sk") };
            let clean = if field == 2 { "{\"command\":\"[redacted]\"}" } else { "it is [redacted], sk" };
            for at in 0..text.len() {
                let mut pieces = Pieces::new(&redactor, Arc::default());
                let mut events = pieces.redacted(delta(1, field, &text[..at]));
                // Another block in between changes nothing.
                events.extend(pieces.redacted(delta(2, field, "my-own-")));
                events.extend(pieces.redacted(delta(1, field, &text[at..])));
                events
                    .extend(pieces.redacted(json!({ "type": "content_block_stop", "index": 1 }).to_string()));
                assert_eq!(joined(&events, 1, field), clean, "{field} cut at {at}");
                assert!(events.last().unwrap().contains("content_block_stop"));
                events.extend(pieces.redacted(json!({ "type": "message_stop" }).to_string()));
                assert_eq!(joined(&events, 2, field), "my-own-");
            }
        }
    }

    #[test]
    fn events_without_secrets_stay_as_they_are() {
        let mut pieces = Pieces::new(&Redactor::new([KEY.to_owned()]), Arc::default());
        for event in [
            delta(0, 0, "hello "),
            r#"{"type": "message_start","message":{"id":"m","usage":{"input_tokens":1.50}}}"#.to_owned(),
            r#"{"type":"ping"}"#.to_owned(),
        ] {
            assert_eq!(pieces.redacted(event.clone()), [event]);
        }
    }
}
