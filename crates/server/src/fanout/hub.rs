//! The hub: one ring of frames for each session that someone watches. Sessions that no one watches cost nothing.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, watch};

use super::channel::{Channel, Item};
use super::frame::{self, Frame};
use super::pieces::Pieces;
use crate::model::event::Event;
use crate::model::ids::EventId;
use crate::project::PreviewFrame;
use crate::store::Hint;

/// Stored events whose late pieces a subscriber drops.
const FINISHED: usize = 16;

/// Which pieces of replies a subscriber wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deltas {
    /// Of messages.
    pub message: bool,
    /// Of reasoning.
    pub thinking: bool,
}

impl Deltas {
    fn any(self) -> bool {
        self.message || self.thinking
    }

    fn wants(self, of: &str) -> bool {
        if of == "agent.thinking" { self.thinking } else { self.message }
    }
}

/// Passes events to those who watch.
#[derive(Debug, Default)]
pub struct Hub {
    channels: Mutex<HashMap<i64, Arc<Channel>>>,
    /// The most events that a subscriber was behind since this was last read.
    lag: AtomicU64,
    /// Takes hints for other nodes, where there can be some.
    hints: Option<mpsc::UnboundedSender<Hint>>,
    /// Sessions whose pieces are wanted here, and whose driver may have changed.
    unsure: Mutex<BTreeSet<i64>>,
    unsure_news: Notify,
}

impl Hub {
    /// A hub with other nodes, which get its hints.
    #[must_use]
    pub fn among_others(hints: mpsc::UnboundedSender<Hint>) -> Self {
        Self { hints: Some(hints), ..Self::default() }
    }

    /// True when other nodes may drive sessions that are watched here, and the other way round.
    #[must_use]
    pub fn has_others(&self) -> bool {
        self.hints.is_some()
    }

    /// Gives a hint to other nodes.
    pub fn announce(&self, hint: Hint) {
        if let Some(hints) = &self.hints {
            // A server that ends gives none.
            let _ = hints.send(hint);
        }
    }

    /// Another node has stored events up to this one.
    pub fn note(&self, key: i64, newest: u64) {
        let Some(channel) = self.channel(key) else { return };
        let mut ring = channel.ring();
        let is_news = ring.newest < newest;
        ring.newest = ring.newest.max(newest);
        drop(ring);
        if is_news {
            channel.announce();
            if channel.is_wanted_here() {
                self.doubt(key);
            }
        }
    }

    fn doubt(&self, key: i64) {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.unsure_news.notify_one();
    }

    /// Sessions whose pieces are wanted here and whose driver may be another one than before; waits for some.
    pub async fn delta_news(&self) -> Vec<i64> {
        loop {
            let unsure = std::mem::take(&mut *self.unsure.lock().unwrap_or_else(PoisonError::into_inner));
            if !unsure.is_empty() {
                return unsure.into_iter().collect();
            }
            self.unsure_news.notified().await;
        }
    }

    /// The sessions whose pieces someone wants here.
    #[must_use]
    pub fn watched_with_deltas(&self) -> Vec<i64> {
        self.channels().iter().filter(|(_, channel)| channel.is_wanted_here()).map(|(key, _)| *key).collect()
    }

    /// Another node has deleted a session.
    pub fn note_deleted(&self, key: i64) {
        let Some(channel) = self.channel(key) else { return };
        channel.ring().is_deleted = true;
        channel.announce();
    }

    /// The sessions that someone watches.
    #[must_use]
    pub fn watched_sessions(&self) -> Vec<i64> {
        self.channels().keys().copied().collect()
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<i64, Arc<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channel(&self, key: i64) -> Option<Arc<Channel>> {
        self.channels().get(&key).cloned()
    }

    /// Passes stored events on.
    pub fn publish(&self, key: i64, events: Vec<Event>) {
        let Some(seq) = events.last().map(|event| event.seq) else { return };
        self.announce(Hint::Events { key, seq });
        let Some(channel) = self.channel(key) else { return };
        let mut ring = channel.ring();
        ring.newest = ring.newest.max(seq);
        events.into_iter().for_each(|event| ring.push(Item::Stored(Arc::new(Frame::new(event)))));
        drop(ring);
        channel.announce();
    }

    /// Passes pieces of a reply on.
    pub fn preview(&self, key: i64, frames: &[PreviewFrame]) {
        self.push_frames(key, frames, false);
    }

    /// Passes a piece on that another node has sent.
    pub fn relay(&self, key: i64, frame: PreviewFrame) {
        self.push_frames(key, &[frame], true);
    }

    fn push_frames(&self, key: i64, frames: &[PreviewFrame], is_relayed: bool) {
        let Some(channel) = self.channel(key).filter(|_| !frames.is_empty()) else { return };
        let mut ring = channel.ring();
        for frame in frames {
            ring.push(Item::Preview { frame: frame.clone(), bytes: frame::preview(frame), is_relayed });
        }
        drop(ring);
        channel.announce();
    }

    /// True when someone wants pieces of the replies of a session, here or on another node.
    #[must_use]
    pub fn wants_deltas(&self, key: i64) -> bool {
        self.channel(key).is_some_and(|channel| {
            channel.is_wanted_here() || channel.wanted_elsewhere.load(Ordering::Relaxed) > 0
        })
    }

    /// The pieces of a session for another node, from now on.
    #[must_use]
    pub fn pieces(self: &Arc<Self>, key: i64) -> Pieces {
        let mut channels = self.channels();
        let channel = Arc::clone(channels.entry(key).or_insert_with(Channel::new));
        Pieces::new(self, key, channel)
    }

    /// The session was deleted: its streams end.
    pub fn deleted(&self, key: i64) {
        self.announce(Hint::Deleted { key });
        self.note_deleted(key);
    }

    /// The most events that a subscriber was behind since this was last asked.
    pub fn take_lag(&self) -> u64 {
        self.lag.swap(0, Ordering::Relaxed)
    }

    /// How many sessions are watched.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.channels().len()
    }

    /// Watches a session, from now on. What came before is read from the store, behind `cursor`, which is set afterwards.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, key: i64, deltas: Deltas) -> Subscription {
        let mut channels = self.channels();
        let channel = channels.entry(key).or_insert_with(Channel::new);
        if deltas.any() {
            channel.wanting_deltas.fetch_add(1, Ordering::Relaxed);
            self.doubt(key);
        }
        let place = channel.ring().end();
        Subscription {
            hub: Arc::downgrade(self),
            key,
            news: channel.news.subscribe(),
            channel: Arc::clone(channel),
            deltas,
            place,
            cursor: 0,
            asked: 0,
            must_read: true,
            finished: VecDeque::new(),
        }
    }

    pub(super) fn leave(&self, key: i64, channel: &Arc<Channel>) {
        let mut channels = self.channels();
        // This subscription and the map hold it, and no one else.
        if Arc::strong_count(channel) <= 2 {
            channels.remove(&key);
        }
    }
}

/// What a subscriber does next.
#[derive(Debug)]
pub enum Next {
    /// Sends this event.
    Send(Arc<Frame>),
    /// Sends this piece.
    Preview(Bytes),
    /// Reads events behind its cursor from the store.
    Read,
    /// Waits for news.
    Wait,
    /// The session was deleted.
    Deleted,
}

/// A cursor in the events of a session.
#[derive(Debug)]
pub struct Subscription {
    hub: Weak<Hub>,
    key: i64,
    channel: Arc<Channel>,
    news: watch::Receiver<u64>,
    deltas: Deltas,
    place: u64,
    /// The last event that was sent.
    cursor: u64,
    /// The newest event that was known when the store was last read.
    asked: u64,
    must_read: bool,
    /// The last events that were shown whole after pieces of them may have been.
    finished: VecDeque<EventId>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.deltas.any() {
            self.channel.wanting_deltas.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(hub) = self.hub.upgrade() {
            hub.leave(self.key, &self.channel);
        }
    }
}

impl Subscription {
    /// The session.
    #[must_use]
    pub fn key(&self) -> i64 {
        self.key
    }

    /// The last event that the reader has.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The reader has every event up to this one.
    pub fn start_after(&mut self, seq: u64) {
        self.cursor = seq;
    }

    /// Events were read from the store up to this one; `complete` when there were no more.
    pub fn have_read(&mut self, seq: u64, complete: bool) {
        self.cursor = self.cursor.max(seq);
        self.must_read = !complete;
    }

    /// An event is shown whole: pieces of it that another node sends later are dropped.
    pub fn have_shown(&mut self, event: EventId) {
        if self.deltas.any() {
            self.finished.push_back(event);
            if self.finished.len() > FINISHED {
                self.finished.pop_front();
            }
        }
    }

    /// What to do next.
    pub fn advance(&mut self) -> Next {
        // From here on news counts, also what comes before the wait begins.
        self.news.borrow_and_update();
        let channel = Arc::clone(&self.channel);
        let ring = channel.ring();
        if ring.is_deleted {
            return Next::Deleted;
        }
        if ring.newest > self.cursor
            && let Some(hub) = self.hub.upgrade()
        {
            hub.lag.fetch_max(ring.newest - self.cursor, Ordering::Relaxed);
        }
        if self.must_read {
            self.asked = ring.newest;
            return Next::Read;
        }
        if self.place < ring.base {
            self.place = ring.base;
            return Next::Read;
        }
        loop {
            let at = usize::try_from(self.place - ring.base).unwrap_or(usize::MAX);
            let Some(item) = ring.items.get(at) else {
                if ring.newest <= self.cursor.max(self.asked) {
                    return Next::Wait;
                }
                // Another node stored events, which are in the store and not here.
                self.asked = ring.newest;
                return Next::Read;
            };
            match item {
                Item::Stored(frame) if frame.seq > self.cursor + 1 => return Next::Read,
                Item::Stored(frame) => {
                    self.place += 1;
                    if frame.seq == self.cursor + 1 {
                        self.cursor = frame.seq;
                        let frame = Arc::clone(frame);
                        drop(ring);
                        if frame.is_previewed() {
                            self.have_shown(frame.id());
                        }
                        return Next::Send(frame);
                    }
                }
                Item::Preview { frame, bytes, .. } => {
                    self.place += 1;
                    if self.deltas.wants(frame.of) && !self.finished.contains(&frame.id) {
                        return Next::Preview(bytes.clone());
                    }
                }
            }
        }
    }

    /// Completes when there may be something new.
    pub async fn changed(&mut self) {
        // The sender lives in the channel, which this subscription holds.
        let _ = self.news.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::channel::KEPT;
    use crate::model::time::Time;

    fn event(seq: u64) -> Event {
        Event {
            seq,
            id: EventId::now(),
            kind: "agent.message".to_owned(),
            at: Time(0),
            processed_at: None,
            is_previewed: false,
            body: "{}".to_owned(),
            blob: None,
            thread: None,
            is_posted: false,
        }
    }

    /// Reads like a stream does, from a store that has everything up to `stored`.
    fn drain(subscription: &mut Subscription, stored: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            match subscription.advance() {
                Next::Send(frame) => seen.push(frame.seq),
                Next::Preview(_) => seen.push(0),
                Next::Read => {
                    seen.extend(subscription.cursor() + 1..=stored);
                    subscription.have_read(stored, true);
                }
                Next::Wait | Next::Deleted => return seen,
            }
        }
    }

    #[test]
    fn nothing_is_missed_or_repeated_in_any_order_of_news() {
        let hub = Arc::new(Hub::default());
        let mut subscription = hub.subscribe(1, Deltas::default());
        hub.publish(1, vec![event(3)]);
        subscription.start_after(1);
        assert_eq!(drain(&mut subscription, 3), [2, 3], "stored before it began to read");
        hub.publish(1, vec![event(6)]);
        hub.publish(1, vec![event(4), event(5)]);
        assert_eq!(drain(&mut subscription, 6), [4, 5, 6], "two nodes published in another order");
        hub.publish(2, vec![event(1)]);
        assert_eq!(drain(&mut subscription, 6), [0_u64; 0]);
    }

    #[test]
    fn what_another_node_stores_is_read_once() {
        let hub = Arc::new(Hub::default());
        let mut subscription = hub.subscribe(1, Deltas::default());
        subscription.start_after(0);
        assert_eq!(drain(&mut subscription, 0), [0_u64; 0]);
        hub.note(1, 2);
        assert_eq!(drain(&mut subscription, 2), [1, 2]);
        hub.note(1, 2);
        hub.note(1, 1);
        assert!(matches!(subscription.advance(), Next::Wait), "nothing is new");
        hub.note(1, 3);
        assert!(matches!(subscription.advance(), Next::Read));
        subscription.have_read(2, true);
        assert!(
            matches!(subscription.advance(), Next::Wait),
            "a store that is behind is not asked again and again"
        );
        hub.publish(1, vec![event(3)]);
        assert_eq!(drain(&mut subscription, 3), [3]);
        hub.note_deleted(1);
        assert!(matches!(subscription.advance(), Next::Deleted));
        assert_eq!(hub.watched_sessions(), [1]);
    }

    #[test]
    fn one_who_fell_behind_reads_from_the_store() {
        let hub = Arc::new(Hub::default());
        let mut subscription = hub.subscribe(1, Deltas::default());
        subscription.start_after(0);
        assert_eq!(drain(&mut subscription, 0), [0_u64; 0]);
        let many = 3 * KEPT as u64;
        (1..=many).for_each(|seq| hub.publish(1, vec![event(seq)]));
        assert_eq!(drain(&mut subscription, many), (1..=many).collect::<Vec<_>>());
    }

    #[test]
    fn pieces_go_to_those_who_want_them_and_sessions_without_watchers_cost_nothing() {
        let hub = Arc::new(Hub::default());
        let piece = PreviewFrame {
            id: EventId::now(),
            of: "agent.message",
            kind: "event_delta",
            data: serde_json::json!({}),
        };
        hub.preview(1, std::slice::from_ref(&piece));
        assert_eq!(hub.watched(), 0);
        let mut plain = hub.subscribe(1, Deltas::default());
        let mut eager = hub.subscribe(1, Deltas { message: true, thinking: false });
        for subscription in [&mut plain, &mut eager] {
            subscription.start_after(0);
            assert_eq!(drain(subscription, 0), [0_u64; 0]);
        }
        assert!(hub.wants_deltas(1));
        hub.preview(1, std::slice::from_ref(&piece));
        assert_eq!((drain(&mut plain, 0), drain(&mut eager, 0)), (vec![], vec![0]));
        drop(eager);
        assert!(!hub.wants_deltas(1));
        hub.deleted(1);
        assert!(matches!(plain.advance(), Next::Deleted));
        drop(plain);
        assert_eq!(hub.watched(), 0);
    }
}
