//! Pieces of replies on their way to other nodes: what a node hands to those that have subscribers of a session that it drives.
//! Pieces that came from another node are not handed on, so none can travel in a circle.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::channel::{Channel, Item};
use super::hub::Hub;
use crate::model::ids::EventId;
use crate::project::PreviewFrame;

/// A piece as nodes send it to each other, one a line.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    of: String,
    kind: String,
    data: Value,
}

/// The line of a piece, with its end.
fn line(frame: &PreviewFrame) -> Bytes {
    let line = Line {
        id: frame.id.to_string(),
        of: frame.of.to_owned(),
        kind: frame.kind.to_owned(),
        data: frame.data.clone(),
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    Bytes::from(text)
}

/// Reads a line of another node; `None` when it is not a piece that this release knows.
#[must_use]
pub fn read_piece(line: &[u8]) -> Option<PreviewFrame> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let of = ["agent.message", "agent.thinking"].into_iter().find(|of| *of == line.of)?;
    let kind = ["event_start", "event_delta"].into_iter().find(|kind| *kind == line.kind)?;
    Some(PreviewFrame { id: EventId::parse(&line.id)?, of, kind, data: line.data })
}

/// The pieces of one session, for another node.
#[derive(Debug)]
pub struct Pieces {
    hub: Weak<Hub>,
    key: i64,
    channel: Arc<Channel>,
    news: watch::Receiver<u64>,
    place: u64,
}

impl Pieces {
    pub(super) fn new(hub: &Arc<Hub>, key: i64, channel: Arc<Channel>) -> Self {
        channel.wanted_elsewhere.fetch_add(1, Ordering::Relaxed);
        let (news, place) = (channel.news.subscribe(), channel.ring().end());
        Self { hub: Arc::downgrade(hub), key, channel, news, place }
    }

    /// The lines of pieces that came since; waits for some. `None` when the session was deleted.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.news.borrow_and_update();
            let lines = self.take()?;
            if !lines.is_empty() {
                return Some(Bytes::from(lines));
            }
            // The sender lives in the channel, which is held here.
            let _ = self.news.changed().await;
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let ring = self.channel.ring();
        if ring.is_deleted {
            return None;
        }
        // Who fell behind misses pieces and no event: those come from the database.
        let skipped = usize::try_from(self.place.saturating_sub(ring.base)).unwrap_or(usize::MAX);
        let mut lines = Vec::new();
        for item in ring.items.iter().skip(skipped) {
            if let Item::Preview { frame, is_relayed: false, .. } = item {
                lines.extend_from_slice(&line(frame));
            }
        }
        self.place = ring.end();
        Some(lines)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.channel.wanted_elsewhere.fetch_sub(1, Ordering::Relaxed);
        if let Some(hub) = self.hub.upgrade() {
            hub.leave(self.key, &self.channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fanout::{Deltas, Next};

    fn piece(kind: &'static str) -> PreviewFrame {
        PreviewFrame { id: EventId::now(), of: "agent.message", kind, data: json!({ "text": "a\nb" }) }
    }

    #[tokio::test]
    async fn pieces_reach_another_node_once_and_never_come_back() {
        let (driver, other) = (Arc::new(Hub::default()), Arc::new(Hub::default()));
        let mut subscription = other.subscribe(1, Deltas { message: true, thinking: false });
        subscription.have_read(0, true);
        assert_eq!(other.delta_news().await, [1], "what is wanted here may be driven elsewhere");
        assert_eq!(other.watched_with_deltas(), [1]);
        let mut pieces = driver.pieces(1);
        assert!(driver.wants_deltas(1) && driver.watched_with_deltas().is_empty(), "wanted, but not here");
        driver.preview(1, &[piece("event_start"), piece("event_delta")]);
        let lines = pieces.next().await.unwrap();
        let mut back = other.pieces(1);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            other.relay(1, read_piece(line).unwrap());
        }
        for _ in 0..2 {
            assert!(matches!(subscription.advance(), Next::Preview(_)));
        }
        assert!(matches!(subscription.advance(), Next::Wait));
        assert_eq!(back.take().unwrap(), b"", "what was relayed is not handed on");
        drop((pieces, back));
        assert!(!driver.wants_deltas(1) && driver.watched() == 0);
        driver.deleted(1);
        for junk in [&b""[..], b"{}", br#"{"id":"evt_1","of":"x","kind":"event_delta","data":1}"#, b"\xff"] {
            assert_eq!(read_piece(junk), None);
        }
    }
}
