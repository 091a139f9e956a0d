//! Work items: a session of a self-hosted environment that waits for a worker, or has one. An item is handed out by a poll, taken by
//! an acknowledgement and kept by heartbeats; what happens to it when is decided here, by the clock of the database.

use serde_json::{Value, json};

use crate::model::ids::{EnvironmentId, SessionId, TenantId, WorkId};
use crate::model::metadata::Metadata;
use crate::model::refusal::Refusal;
use crate::model::time::Time;

/// Seconds that a lease lasts unless the worker asks for another time.
pub const DEFAULT_TTL: u32 = 90;
/// Seconds that a worker may ask for.
pub const TTLS: std::ops::RangeInclusive<u64> = 1..=3_600;
/// Milliseconds after which an item that was handed out and not acknowledged is handed out again, unless the poll says otherwise.
pub const RECLAIM: u64 = 5_000;
/// What the first heartbeat expects.
pub const NO_BEAT: &str = "NO_HEARTBEAT";
/// Milliseconds before an item that follows a stopped one is handed out: a worker that fails at once is not asked in a circle.
const PAUSE: i64 = 1_000;

/// How far a work item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// It waits for a worker.
    Queued,
    /// A worker has acknowledged it.
    Starting,
    /// Its worker sends heartbeats.
    Active,
    /// Its worker shall end.
    Stopping,
    /// It is over.
    Stopped,
}

impl WorkState {
    const ALL: [Self; 5] = [Self::Queued, Self::Starting, Self::Active, Self::Stopping, Self::Stopped];

    /// The word on the wire and in rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// The state of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// True while the session needs no other item.
    #[must_use]
    pub fn serves(self) -> bool {
        matches!(self, Self::Queued | Self::Starting | Self::Active)
    }
}

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The item.
    pub id: WorkId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its environment.
    pub environment: EnvironmentId,
    /// Its session.
    pub session: SessionId,
    /// The key of its session.
    pub session_key: i64,
    /// How far it is.
    pub state: WorkState,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// When it was queued.
    pub created_at: Time,
    /// From when on it is handed out.
    pub due_at: Time,
    /// When it was handed out last and not acknowledged.
    pub handed_at: Option<Time>,
    /// When a worker acknowledged it.
    pub acknowledged_at: Option<Time>,
    /// When its worker first sent a heartbeat.
    pub started_at: Option<Time>,
    /// When its worker last sent a heartbeat.
    pub beat_at: Option<Time>,
    /// Seconds that its lease lasts.
    pub ttl: u32,
    /// When its lease ends.
    pub expires_at: Option<Time>,
    /// When it was asked to stop.
    pub stop_requested_at: Option<Time>,
    /// When it stopped.
    pub stopped_at: Option<Time>,
}

/// What a heartbeat asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beat {
    /// The last heartbeat that the worker knows, or `NO_HEARTBEAT`; not compared without it.
    pub expected: Option<String>,
    /// Seconds that the lease lasts from now on.
    pub ttl: Option<u32>,
}

/// What a heartbeat came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beaten {
    /// The lease lasts longer.
    Extended,
    /// The worker shall end, or the item is over.
    Ends,
    /// The lease is not the worker's.
    Refused,
}

/// Numbers of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkStats {
    /// Items that wait for a worker.
    pub depth: u64,
    /// Items that were handed out and not acknowledged.
    pub pending: u64,
    /// When the oldest of both was queued.
    pub oldest: Option<Time>,
    /// Workers that polled in the last 30 seconds.
    pub workers: u64,
}

impl Work {
    /// A new item. One that follows another waits a moment.
    #[must_use]
    pub fn new(
        (tenant, environment): (TenantId, EnvironmentId),
        (session, session_key): (SessionId, i64),
        now: Time,
        follows: bool,
    ) -> Self {
        Self {
            id: WorkId::random(),
            tenant,
            environment,
            session,
            session_key,
            state: WorkState::Queued,
            metadata: Metadata::new(),
            created_at: now,
            due_at: if follows { now.after(PAUSE) } else { now },
            handed_at: None,
            acknowledged_at: None,
            started_at: None,
            beat_at: None,
            ttl: DEFAULT_TTL,
            expires_at: None,
            stop_requested_at: None,
            stopped_at: None,
        }
    }

    /// A worker takes it.
    ///
    /// # Errors
    /// When no poll has handed it out, or a worker has it.
    pub fn acknowledge(&mut self, now: Time) -> Result<(), Refusal> {
        if self.state != WorkState::Queued || self.handed_at.is_none() {
            let problem = match self.state {
                WorkState::Queued => "was not handed out; poll for it first",
                WorkState::Starting | WorkState::Active => "was acknowledged before",
                WorkState::Stopping | WorkState::Stopped => "was stopped",
            };
            return Err(Refusal::conflict(format!("The work item `{}` {problem}.", self.id)));
        }
        self.state = WorkState::Starting;
        self.acknowledged_at = Some(now);
        self.handed_at = None;
        self.expires_at = Some(now.after(self.ttl_ms()));
        Ok(())
    }

    /// Its worker says that it is there.
    pub fn beat(&mut self, now: Time, beat: &Beat) -> Beaten {
        match self.state {
            WorkState::Stopping | WorkState::Stopped => return Beaten::Ends,
            WorkState::Queued => return Beaten::Refused,
            WorkState::Starting | WorkState::Active => {}
        }
        let known = self.beat_at.map_or_else(|| NO_BEAT.to_owned(), |at| at.to_string());
        if beat.expected.as_ref().is_some_and(|expected| *expected != known) {
            return Beaten::Refused;
        }
        // Each heartbeat has a time of its own, because the next one names it.
        let at = self.beat_at.map_or(now, |before| now.max(Time(before.0 + 1)));
        self.ttl = beat.ttl.unwrap_or(self.ttl);
        self.beat_at = Some(at);
        self.started_at.get_or_insert(at);
        self.expires_at = Some(at.after(self.ttl_ms()));
        self.state = WorkState::Active;
        Beaten::Extended
    }

    /// True when no worker has anything to do with it any longer.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == WorkState::Stopped
    }

    /// Someone stops it; with force without waiting for its worker.
    ///
    /// # Errors
    /// When it is over, or was asked before.
    pub fn stop(&mut self, now: Time, force: bool) -> Result<(), Refusal> {
        match (self.state, force) {
            (WorkState::Stopped, _) => {
                return Err(Refusal::conflict(format!("The work item `{}` is stopped.", self.id)));
            }
            (WorkState::Stopping, false) => {
                let problem = "is stopping. Send `force` to stop it at once";
                return Err(Refusal::conflict(format!("The work item `{}` {problem}.", self.id)));
            }
            (WorkState::Starting | WorkState::Active, false) => {
                self.state = WorkState::Stopping;
                self.stop_requested_at = Some(now);
            }
            (WorkState::Queued, _)
            | (WorkState::Starting | WorkState::Active | WorkState::Stopping, true) => self.end(now),
        }
        Ok(())
    }

    fn end(&mut self, now: Time) {
        self.state = WorkState::Stopped;
        self.stop_requested_at.get_or_insert(now);
        self.stopped_at = Some(now);
        (self.handed_at, self.expires_at) = (None, None);
    }

    /// Its lease is over: the item is queued again, or has stopped.
    pub fn expire(&mut self, now: Time) {
        if self.state == WorkState::Stopping {
            self.end(now);
            return;
        }
        self.state = WorkState::Queued;
        (self.handed_at, self.acknowledged_at, self.started_at) = (None, None, None);
        (self.beat_at, self.expires_at) = (None, None);
        (self.due_at, self.ttl) = (now, DEFAULT_TTL);
    }

    fn ttl_ms(&self) -> i64 {
        i64::from(self.ttl) * 1_000
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self, secret: Option<&str>) -> Value {
        json!({
            "id": self.id, "type": "work", "environment_id": self.environment,
            "data": { "type": "session", "id": self.session }, "state": self.state.as_str(),
            "metadata": self.metadata, "secret": secret, "created_at": self.created_at,
            "acknowledged_at": self.acknowledged_at, "started_at": self.started_at,
            "latest_heartbeat_at": self.beat_at, "stop_requested_at": self.stop_requested_at,
            "stopped_at": self.stopped_at,
        })
    }

    /// The answer to a heartbeat.
    #[must_use]
    pub fn beat_view(&self, is_extended: bool) -> Value {
        let last = self.beat_at.map_or_else(String::new, |at| at.to_string());
        json!({ "type": "work_heartbeat", "last_heartbeat": last, "lease_extended": is_extended,
            "state": self.state.as_str(), "ttl_seconds": self.ttl })
    }

    /// The lease, for a worker whose heartbeat was refused.
    #[must_use]
    pub fn lease_view(&self) -> Value {
        json!({ "last_heartbeat": self.beat_at, "lease_extended": false, "state": self.state.as_str(),
            "ttl_seconds": self.ttl })
    }
}

impl WorkStats {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({ "type": "work_queue_stats", "depth": self.depth, "pending": self.pending,
            "oldest_queued_at": self.oldest, "workers_polling": self.workers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> Work {
        let owner = (TenantId([1; 16]), EnvironmentId([2; 16]));
        Work::new(owner, (SessionId([3; 16]), 7), Time(1_000_000), false)
    }

    fn beat(work: &mut Work, now: i64, expected: &str) -> Beaten {
        work.beat(Time(now), &Beat { expected: Some(expected.to_owned()), ttl: None })
    }

    #[test]
    fn a_lease_belongs_to_the_worker_that_knows_the_last_heartbeat() {
        let mut work = item();
        assert!(work.acknowledge(Time(1)).is_err(), "no poll has handed it out");
        work.handed_at = Some(Time(1));
        work.acknowledge(Time(2)).unwrap();
        assert!(work.acknowledge(Time(3)).is_err());
        assert_eq!(beat(&mut work, 10, "x"), Beaten::Refused);
        assert_eq!(beat(&mut work, 10, NO_BEAT), Beaten::Extended);
        assert_eq!(beat(&mut work, 11, NO_BEAT), Beaten::Refused);
        let first = work.beat_at.unwrap().to_string();
        // A stopped clock gives each heartbeat a name of its own all the same.
        assert_eq!(beat(&mut work, 10, &first), Beaten::Extended);
        assert_ne!(work.beat_at.unwrap().to_string(), first);
        assert_eq!(work.expires_at, Some(Time(11 + 90_000_000)));
        work.expire(Time(100));
        assert_eq!((work.state, work.beat_at), (WorkState::Queued, None));
        assert_eq!(beat(&mut work, 101, NO_BEAT), Beaten::Refused, "it is in the queue again");
    }

    #[test]
    fn an_item_stops_once() {
        let mut work = item();
        work.stop(Time(1), false).unwrap();
        assert_eq!(work.state, WorkState::Stopped, "no worker has it");
        assert!(work.stop(Time(2), true).is_err());
        let mut work = item();
        work.handed_at = Some(Time(1));
        work.acknowledge(Time(1)).unwrap();
        work.stop(Time(2), false).unwrap();
        assert_eq!(work.state, WorkState::Stopping);
        assert!(work.stop(Time(3), false).is_err());
        assert_eq!(beat(&mut work, 4, "whatever"), Beaten::Ends, "not compared any longer");
        work.stop(Time(5), true).unwrap();
        assert_eq!((work.state, work.stopped_at), (WorkState::Stopped, Some(Time(5))));
    }
}
