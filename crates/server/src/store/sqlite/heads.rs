//! The heads of sessions: reading them, adding events, writing them back. Every transaction that adds events to a session goes
//! through here.

use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{json, number, optional_json, optional_raw, optional_time, status, stored, time};
use super::resources::deliveries;
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::Head;
use crate::store::port::Claim;

/// The head of a session.
pub(super) fn find(connection: &Connection, key: i64) -> Result<Head, DbError> {
    let found = connection
        .prepare_cached(
            "SELECT status, stop_reason, record_seq, event_seq, inbox_seq, fence, lease_node, wake_at, attempts,
                    quarantined_at, active_ms, running_since, usage, last_at, outcomes
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
                outcomes: json(row, 14)?,
                home_at: None,
                now: time(row, 13)?.max(Time::now()),
            })
        })
        .optional()?;
    found.ok_or(DbError::Fenced(key))
}

/// Adds events to a session.
pub(super) fn add(
    connection: &Connection,
    head: &mut Head,
    events: Vec<NewEvent>,
) -> Result<Vec<Event>, DbError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (session_key, seq, id, type, at, processed_at, previewed, body, blob, thread_id, posted)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let added = head.number(events);
    for event in &added {
        let body = if event.blob.is_some() { &[][..] } else { event.body.as_bytes() };
        insert.execute(params![
            head.key,
            stored(event.seq),
            event.id.0,
            event.kind,
            event.at.0,
            event.processed_at.map(|time| time.0),
            event.is_previewed,
            body,
            event.blob,
            event.thread.map(|thread| thread.0),
            event.is_posted,
        ])?;
    }
    deliveries::notify_events(connection, head.key, &added)?;
    Ok(added)
}

/// Writes a head back.
pub(super) fn save(connection: &Connection, head: &Head) -> Result<(), DbError> {
    let stop = head.stop.as_ref().and_then(|stop| serde_json::to_string(stop).ok());
    connection
        .prepare_cached(
            "UPDATE heads SET status = ?2, stop_reason = ?3, record_seq = ?4, event_seq = ?5, inbox_seq = ?6, fence = ?7,
                lease_node = ?8, wake_at = ?9, attempts = ?10, quarantined_at = ?11, active_ms = ?12,
                running_since = ?13, usage = ?14, last_at = ?15, outcomes = ?16
             WHERE session_key = ?1",
        )?
        .execute(params![
            head.key,
            head.status.as_str(),
            stop,
            stored(head.record_seq),
            stored(head.event_seq),
            stored(head.inbox_seq),
            head.fence,
            head.lease.map(|node| node.0),
            head.wake_at.map(|time| time.0),
            head.attempts,
            head.quarantined_at.map(|time| time.0),
            stored(head.active_ms),
            head.running_since.map(|time| time.0),
            head.usage,
            head.now.0,
            serde_json::to_string(&head.outcomes).map_err(|error| DbError::Corrupt(error.to_string()))?,
        ])?;
    Ok(())
}

/// The lease that a session has now.
pub(super) fn claim(connection: &Connection, head: &Head) -> Result<Claim, DbError> {
    let configured_at = connection
        .prepare_cached(
            "SELECT max(s.updated_at, coalesce(e.updated_at, 0))
             FROM sessions s LEFT JOIN environments e ON e.id = s.environment_id WHERE s.key = ?1",
        )?
        .query_row([head.key], |row| time(row, 0))?;
    Ok(Claim { key: head.key, fence: head.fence, record_seq: head.record_seq, configured_at })
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
