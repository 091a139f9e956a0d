//! The head of a session: what changes while it runs, and the rules by which it does. Both kinds of databases read it in a
//! transaction, change it here and write it back, so that numbers have no gaps and times never run backwards.

use qoder_types::{InboxBody, InboxEntry};
use serde_json::json;

use super::error::DbError;
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId};
use crate::model::inputs::Effect;
use crate::model::outcome::Outcome;
use crate::model::status::{Status, StopReason};
use crate::model::time::Time;

/// From this attempt on a session waits before it is tried again.
const PATIENT_FROM: i64 = 3;
/// Milliseconds that it waits at first; each further attempt doubles them.
const FIRST_WAIT: i64 = 5_000;
/// After this many attempts it is quarantined.
const MOST_ATTEMPTS: i64 = 5;
/// The count of a session that was quarantined and is tried once more.
pub(super) const LAST_TRY: i64 = 100;

/// Milliseconds by which clocks of nodes may differ; ids of events are made to a millisecond.
const SLACK: i64 = 2_000;

/// When an id of an event was made; `None` when no server makes such an id.
pub(super) fn made_at(id: EventId) -> Option<Time> {
    let milliseconds = i64::try_from(id.milliseconds()?).ok()?;
    Some(Time(milliseconds.saturating_mul(1000)))
}

/// Whether an id that is not stored may have been announced in pieces of a reply: within the life of the session, which for one that
/// rests ended with its last change. A later id is of an event that the database has lost.
pub(super) fn may_be_announced(made: Time, created_at: Time, until: Time) -> bool {
    made.after(SLACK) >= created_at && until.after(SLACK) >= made
}

/// A head, with what a transaction changes of it before it is written back.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) key: i64,
    pub(super) status: Status,
    pub(super) stop: Option<StopReason>,
    pub(super) record_seq: u64,
    pub(super) event_seq: u64,
    pub(super) inbox_seq: u64,
    pub(super) fence: i64,
    pub(super) lease: Option<NodeId>,
    pub(super) wake_at: Option<Time>,
    pub(super) attempts: i64,
    pub(super) quarantined_at: Option<Time>,
    pub(super) active_ms: u64,
    pub(super) running_since: Option<Time>,
    pub(super) usage: String,
    pub(super) outcomes: Vec<Outcome>,
    /// The node that is there and alone has the newest files of the session.
    pub(super) home_at: Option<NodeId>,
    /// The present moment, never before the last one.
    pub(super) now: Time,
}

/// An inbox entry as rows keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewInboxRow {
    pub(super) seq: u64,
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

/// A session whose work ends: what is reported, and whether everything that was left for it is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedWork {
    pub(super) events: Vec<NewEvent>,
    pub(super) drops_inbox: bool,
}

impl Head {
    /// The status from now on; time that turns run is counted.
    pub(super) fn become_status(&mut self, status: Status) {
        match (self.running_since, status) {
            (None, Status::Running) => self.running_since = Some(self.now),
            (Some(since), Status::Idle | Status::Rescheduling | Status::Terminated) => {
                self.active_ms += self.now.since(since);
                self.running_since = None;
            }
            (Some(_), Status::Running) | (None, Status::Idle | Status::Rescheduling | Status::Terminated) => {
            }
        }
        self.status = status;
    }

    /// Numbers events that are added to the session.
    pub(super) fn number(&mut self, events: Vec<NewEvent>) -> Vec<Event> {
        let now = self.now;
        let numbered = events.into_iter().map(|event| {
            self.event_seq += 1;
            Event {
                seq: self.event_seq,
                id: event.id,
                kind: event.kind.to_owned(),
                at: now,
                processed_at: event.is_processed.then_some(now),
                is_previewed: event.is_previewed,
                body: event.body,
                blob: event.blob,
                thread: event.thread,
                is_posted: event.is_posted,
            }
        });
        numbered.collect()
    }

    /// Numbers an entry that is left for the session; an input may leave several.
    pub(super) fn leave(
        &mut self,
        (input, index): (EventId, usize),
        by: &str,
        body: InboxBody,
    ) -> Result<NewInboxRow, DbError> {
        let kind = match &body {
            InboxBody::Input { .. } => "message",
            InboxBody::Answer { .. } | InboxBody::Result { .. } => "answer",
            InboxBody::Interrupt {} => "interrupt",
            InboxBody::Request { .. } => "request",
        };
        let id = if index == 0 { input.to_string() } else { format!("{input}:{index}") };
        let entry = InboxEntry { id, at: self.now.to_string(), by: by.to_owned(), body };
        let body = serde_json::to_vec(&entry).map_err(|error| DbError::Corrupt(error.to_string()))?;
        self.inbox_seq += 1;
        Ok(NewInboxRow { seq: self.inbox_seq, id: entry.id, kind, body })
    }

    /// True while the session works towards an outcome.
    pub(super) fn has_outcome(&self) -> bool {
        self.outcomes.last().is_some_and(Outcome::is_active)
    }

    /// Keeps what an input means for the session itself.
    pub(super) fn keep(&mut self, effect: &Effect) {
        if let Effect::Outcome(outcome) = effect {
            self.outcomes.push(Outcome::clone(outcome));
        }
    }

    /// Gives the session to a node.
    pub(super) fn lease_to(&mut self, node: NodeId) {
        self.lease = Some(node);
        self.fence += 1;
        self.attempts += 1;
        self.wake_at = None;
    }

    /// Takes the session from its node.
    pub(super) fn release(&mut self, wake_at: Option<Time>) {
        self.lease = None;
        self.wake_at = wake_at;
    }

    /// Has a node take the session up, unless one has it: the one that has room, or any. True when the offered node got it.
    pub(super) fn wake(&mut self, node: Option<NodeId>) -> bool {
        if self.lease.is_some() {
            return false;
        }
        if self.quarantined_at.take().is_some() {
            self.attempts = LAST_TRY;
        }
        match node {
            Some(node) => self.lease_to(node),
            None => self.wake_at = Some(self.wake_at.map_or(self.now, |at| at.min(self.now))),
        }
        node.is_some()
    }

    /// A session that ends loses its lease: a node that drives it can append nothing more.
    pub(super) fn cut_off(&mut self) {
        self.fence += 1;
        self.release(None);
        if self.status != Status::Terminated {
            self.become_status(Status::Idle);
        }
    }

    /// Nothing is left to do. The events that report it are only news when the session did not rest for the same reason.
    pub(super) fn rest(&mut self, stop: StopReason, releases: bool) -> bool {
        let is_news = self.status != Status::Idle || self.stop.as_ref() != Some(&stop);
        self.become_status(Status::Idle);
        self.stop = Some(stop);
        if releases {
            self.release(None);
        }
        is_news
    }

    /// When a session that lost its node is tried again.
    fn again_at(&self) -> Time {
        let late = self.attempts - PATIENT_FROM;
        if late < 0 || self.attempts >= LAST_TRY {
            return self.now;
        }
        self.now.after(FIRST_WAIT << late.min(16))
    }

    /// The lease of a node is void: the session is due again.
    pub(super) fn reschedule(&mut self) -> Vec<NewEvent> {
        self.release(Some(self.again_at()));
        if self.status != Status::Running {
            return Vec::new();
        }
        self.become_status(Status::Rescheduling);
        vec![NewEvent::new("session.status_rescheduled", &json!({ "status": "rescheduling" }))]
    }

    /// A node gives its lease back without a fault: the session is due, and no attempt was made.
    pub(super) fn give_back(&mut self) {
        self.attempts = (self.attempts - 1).max(0);
        self.release(Some(self.now));
    }

    /// Gives a session up that has killed too many nodes: quarantined first, terminated after one more try. `None` when it may be
    /// tried.
    pub(super) fn give_up(&mut self) -> Option<EndedWork> {
        if self.attempts > LAST_TRY {
            let message = "The session stopped its node again after it was quarantined.";
            self.become_status(Status::Terminated);
            self.release(None);
            let ended = NewEvent::new("session.status_terminated", &json!({ "status": "terminated" }));
            let events = vec![error("unknown_error", message, "terminal"), ended];
            return Some(EndedWork { events, drops_inbox: false });
        }
        if self.attempts < MOST_ATTEMPTS || self.attempts == LAST_TRY {
            return None;
        }
        let message = "The session stopped its node several times in a row and is not continued. The next message tries once more.";
        self.quarantined_at = Some(self.now);
        Some(self.end_work(message))
    }

    /// The session cannot run as it is configured.
    pub(super) fn fail(&mut self, message: &str) -> EndedWork {
        self.attempts = 0;
        self.end_work(message)
    }

    /// Ends the work of a session: what was left for it is dropped, and it is idle.
    fn end_work(&mut self, message: &str) -> EndedWork {
        let stop = StopReason::RetriesExhausted;
        let idle = NewEvent::new("session.status_idle", &stop.idle_event());
        self.become_status(Status::Idle);
        self.stop = Some(stop);
        self.release(None);
        EndedWork { events: vec![error("unknown_error", message, "exhausted"), idle], drops_inbox: true }
    }

    /// An operator lets a quarantined session continue. False when it is not quarantined.
    pub(super) fn release_quarantined(&mut self) -> bool {
        if self.quarantined_at.take().is_none() {
            return false;
        }
        self.attempts = 0;
        self.wake_at = Some(self.now);
        true
    }
}

fn error(kind: &str, message: &str, retry: &str) -> NewEvent {
    let error = json!({ "type": kind, "message": message, "retry_status": { "type": retry } });
    NewEvent::new("session.error", &json!({ "error": error }))
}

/// The event that reports that a turn runs.
pub(super) fn running() -> NewEvent {
    NewEvent::new("session.status_running", &json!({ "status": "running" }))
}
