//! Frames of server-sent events. One is encoded once a dialect, however many read it.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::model::dialect::Dialect;
use crate::model::event::{self, Event};
use crate::model::ids::{EventId, ThreadId};
use crate::project::PreviewFrame;

/// A frame that all subscribers of a session share.
#[derive(Debug)]
pub struct Frame {
    /// The event's number.
    pub seq: u64,
    event: Event,
    encoded: [OnceLock<Bytes>; Dialect::COUNT],
}

impl Frame {
    /// The frame of an event.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self { seq: event.seq, event, encoded: Default::default() }
    }

    /// True when it is shown in this thread, or in the session itself.
    #[must_use]
    pub fn is_in(&self, thread: Option<ThreadId>) -> bool {
        self.event.is_in(thread)
    }

    /// The event.
    #[must_use]
    pub fn id(&self) -> EventId {
        self.event.id
    }

    /// True when pieces of it may have been shown before.
    #[must_use]
    pub fn is_previewed(&self) -> bool {
        self.event.is_previewed
    }

    /// Its bytes for a dialect.
    #[must_use]
    pub fn bytes(&self, dialect: Dialect) -> Bytes {
        let encode =
            || encode(&self.event.id.to_string(), &self.event.kind, &event::render(&self.event, dialect));
        self.encoded[dialect.index()].get_or_init(encode).clone()
    }
}

/// The bytes of a frame: one line of data. Some clients take more characters for line ends than the standard does.
fn encode(id: &str, kind: &str, data: &str) -> Bytes {
    let mut frame = String::with_capacity(data.len() + id.len() + kind.len() + 24);
    for part in ["id: ", id, "\nevent: ", kind, "\ndata: "] {
        frame.push_str(part);
    }
    if data.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        for character in data.chars() {
            match character {
                '\u{85}' => frame.push_str("\\u0085"),
                '\u{2028}' => frame.push_str("\\u2028"),
                '\u{2029}' => frame.push_str("\\u2029"),
                other => frame.push(other),
            }
        }
    } else {
        frame.push_str(data);
    }
    frame.push_str("\n\n");
    Bytes::from(frame)
}

/// The bytes of a preview.
pub(super) fn preview(frame: &PreviewFrame) -> Bytes {
    encode(&frame.id.to_string(), frame.kind, &frame.data.to_string())
}

/// A line that clients skip.
#[must_use]
pub fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

/// How long clients wait before they connect again.
#[must_use]
pub fn retry(milliseconds: u64) -> Bytes {
    Bytes::from(format!("retry: {milliseconds}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_one_line_of_data_whatever_the_text_contains() {
        let text = "a\nb\r\u{85}c\u{2028}d\u{2029}\u{1F600}";
        let data = serde_json::to_string(&serde_json::json!({ "text": text })).unwrap();
        let frame = encode("evt_1", "agent.message", &data);
        let frame = std::str::from_utf8(&frame).unwrap();
        assert!(
            frame.starts_with("id: evt_1\nevent: agent.message\ndata: {") && frame.ends_with("}\n\n"),
            "{frame}"
        );
        assert_eq!(frame.trim_end().lines().count(), 3);
        assert!(!frame.contains(['\u{85}', '\u{2028}', '\u{2029}', '\r']));
        let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let read: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["text"], text);
    }
}
