//! The heads of sessions: what changes while they run. Every transaction that adds events to a session goes through here, so
//! that their numbers have no gaps and their times never run backwards.

use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{number, optional_json, optional_raw, optional_time, status, stored, time};
use super::resources::deliveries;
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId};
use crate::model::status::{Status, StopReason};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::Claim;

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
    /// The present moment, never before the last one.
    pub(super) now: Time,
}

/// The head of a session.
pub(super) fn find(connection: &Connection, key: i64) -> Result<Head, DbError> {
    let found = connection
        .prepare_cached(
            "SELECT status, stop_reason, record_seq, event_seq, inbox_seq, fence, lease_node, wake_at, attempts,
                    quarantined_at, active_ms, running_since, usage, last_at
             FROM heads WHERE session_key = ?1",
        )?
        .query_row([key], |row| {
            Ok(Head {
                key,
                status: status(row, 0)?,
                stop: optional_json(row, 1)?,
                record_seq: number(row, 2)?,
                event_seq: number(row, 3)?,
                inbox_seq: number(row, 4)?,
                fence: row.get(5)?,
                lease: optional_raw(row, 6)?.map(NodeId),
                wake_at: optional_time(row, 7)?,
                attempts: row.get(8)?,
                quarantined_at: optional_time(row, 9)?,
                active_ms: number(row, 10)?,
                running_since: optional_time(row, 11)?,
                usage: row.get(12)?,
                now: time(row, 13)?.max(Time::now()),
            })
        })
        .optional()?;
    found.ok_or(DbError::Fenced(key))
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

    /// Adds events to the session.
    pub(super) fn add(
        &mut self,
        connection: &Connection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>, DbError> {
        let mut insert = connection.prepare_cached(
            "INSERT INTO events (session_key, seq, id, type, at, processed_at, previewed, body, blob, thread_id, posted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        let mut added = Vec::with_capacity(events.len());
        for event in events {
            self.event_seq += 1;
            let processed_at = event.is_processed.then_some(self.now);
            let body = if event.blob.is_some() { &[][..] } else { event.body.as_bytes() };
            insert.execute(params![
                self.key,
                stored(self.event_seq),
                event.id.0,
                event.kind,
                self.now.0,
                processed_at.map(|time| time.0),
                event.is_previewed,
                body,
                event.blob,
                event.thread.map(|thread| thread.0),
                event.is_posted,
            ])?;
            added.push(Event {
                seq: self.event_seq,
                id: event.id,
                kind: event.kind.to_owned(),
                at: self.now,
                processed_at,
                is_previewed: event.is_previewed,
                body: event.body,
                blob: event.blob,
                thread: event.thread,
                is_posted: event.is_posted,
            });
        }
        deliveries::notify_events(connection, self.key, &added)?;
        Ok(added)
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

    /// Writes the head back.
    pub(super) fn save(&self, connection: &Connection) -> Result<(), DbError> {
        let stop = self.stop.as_ref().and_then(|stop| serde_json::to_string(stop).ok());
        connection
            .prepare_cached(
                "UPDATE heads SET status = ?2, stop_reason = ?3, record_seq = ?4, event_seq = ?5, inbox_seq = ?6, fence = ?7,
                    lease_node = ?8, wake_at = ?9, attempts = ?10, quarantined_at = ?11, active_ms = ?12,
                    running_since = ?13, usage = ?14, last_at = ?15
                 WHERE session_key = ?1",
            )?
            .execute(params![
                self.key,
                self.status.as_str(),
                stop,
                stored(self.record_seq),
                stored(self.event_seq),
                stored(self.inbox_seq),
                self.fence,
                self.lease.map(|node| node.0),
                self.wake_at.map(|time| time.0),
                self.attempts,
                self.quarantined_at.map(|time| time.0),
                stored(self.active_ms),
                self.running_since.map(|time| time.0),
                self.usage,
                self.now.0,
            ])?;
        Ok(())
    }

    /// The lease that the session has now.
    pub(super) fn claim(&self, connection: &Connection) -> Result<Claim, DbError> {
        let configured_at = connection
            .prepare_cached(
                "SELECT max(s.updated_at, coalesce(e.updated_at, 0))
                 FROM sessions s LEFT JOIN environments e ON e.id = s.environment_id WHERE s.key = ?1",
            )?
            .query_row([self.key], |row| time(row, 0))?;
        Ok(Claim { key: self.key, fence: self.fence, record_seq: self.record_seq, configured_at })
    }
}

/// Closes actions without an answer.
pub(super) fn close_actions(connection: &Connection, key: i64, now: Time) -> Result<(), DbError> {
    connection
        .prepare_cached("UPDATE pending SET closed_at = ?2 WHERE session_key = ?1 AND closed_at IS NULL")?
        .execute(params![key, now.0])?;
    Ok(())
}

/// The actions of a session that are open, in the order of their events.
pub(super) fn open_actions(connection: &Connection, key: i64) -> Result<Vec<EventId>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT event_id FROM pending WHERE session_key = ?1 AND closed_at IS NULL ORDER BY asked_seq",
    )?;
    let rows = statement.query_map([key], |row| row.get(0).map(EventId))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
