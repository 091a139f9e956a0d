//! Sessions that lost their node: they become due again, later each time, and are given up when they kill node after node.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::columns::{raw, status, time};
use super::heads::{self, Head};
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{NodeId, SessionId};
use crate::model::status::{Status, StopReason};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{Recovered, Stranded};

/// From this attempt on a session waits before it is tried again.
const PATIENT_FROM: i64 = 3;
/// Milliseconds that it waits at first; each further attempt doubles them.
const FIRST_WAIT: i64 = 5_000;
/// After this many attempts it is quarantined.
const MOST_ATTEMPTS: i64 = 5;
/// The count of a session that was quarantined and is tried once more.
pub(super) const LAST_TRY: i64 = 100;

/// When a session is tried again.
fn again_at(head: &Head) -> Time {
    let late = head.attempts - PATIENT_FROM;
    if late < 0 || head.attempts >= LAST_TRY {
        return head.now;
    }
    head.now.after(FIRST_WAIT << late.min(16))
}

fn error(kind: &str, message: &str, retry: &str) -> NewEvent {
    let error = json!({ "type": kind, "message": message, "retry_status": { "type": retry } });
    NewEvent::new("session.error", &json!({ "error": error }))
}

fn idle(stop: &StopReason) -> NewEvent {
    NewEvent::new("session.status_idle", &stop.idle_event())
}

/// Gives a session up that has killed too many nodes: quarantined first, terminated after one more try. `None` when it may be
/// tried.
pub(super) fn give_up(connection: &Connection, head: &mut Head) -> Result<Option<Vec<Event>>, DbError> {
    if head.attempts > LAST_TRY {
        let message = "The session stopped its node again after it was quarantined.";
        head.become_status(Status::Terminated);
        head.release(None);
        heads::close_actions(connection, head.key, head.now)?;
        let ended = NewEvent::new("session.status_terminated", &json!({ "status": "terminated" }));
        let events = head.add(connection, vec![error("unknown_error", message, "terminal"), ended])?;
        head.save(connection)?;
        return Ok(Some(events));
    }
    if head.attempts < MOST_ATTEMPTS || head.attempts == LAST_TRY {
        return Ok(None);
    }
    let message = "The session stopped its node several times in a row and is not continued. The next message tries once more.";
    let stop = StopReason::RetriesExhausted;
    head.quarantined_at = Some(head.now);
    let events =
        end_work(connection, head, vec![error("unknown_error", message, "exhausted"), idle(&stop)], stop)?;
    Ok(Some(events))
}

/// Ends the work of a session: what was left for it is dropped, and it is idle.
fn end_work(
    connection: &Connection,
    head: &mut Head,
    events: Vec<NewEvent>,
    stop: StopReason,
) -> Result<Vec<Event>, DbError> {
    head.become_status(Status::Idle);
    head.stop = Some(stop);
    head.release(None);
    connection.prepare_cached("DELETE FROM inbox WHERE session_key = ?1")?.execute([head.key])?;
    heads::close_actions(connection, head.key, head.now)?;
    let events = head.add(connection, events)?;
    head.save(connection)?;
    Ok(events)
}

/// The lease of a node is void: the session is due again.
fn reschedule(connection: &Connection, head: &mut Head) -> Result<Vec<Event>, DbError> {
    head.release(Some(again_at(head)));
    let mut events = Vec::new();
    if head.status == Status::Running {
        head.become_status(Status::Rescheduling);
        let event = NewEvent::new("session.status_rescheduled", &json!({ "status": "rescheduling" }));
        events = head.add(connection, vec![event])?;
    }
    head.save(connection)?;
    Ok(events)
}

pub(super) fn void_leases(connection: &Connection, node: NodeId) -> Result<Vec<Recovered>, DbError> {
    let keys: Vec<i64> = connection
        .prepare_cached("SELECT session_key FROM heads WHERE lease_node IS NOT NULL AND lease_node <> ?1")?
        .query_map([node.0], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut recovered = Vec::new();
    for key in keys {
        let mut head = heads::find(connection, key)?;
        let events = reschedule(connection, &mut head)?;
        recovered.push(Recovered { key, events });
    }
    Ok(recovered)
}

fn held(connection: &Connection, key: i64, fence: i64) -> Result<Head, DbError> {
    let head = heads::find(connection, key)?;
    if head.fence == fence && head.lease.is_some() { Ok(head) } else { Err(DbError::Fenced(key)) }
}

pub(super) fn release(
    connection: &Connection,
    key: i64,
    fence: i64,
    failed: bool,
) -> Result<Vec<Event>, DbError> {
    let mut head = held(connection, key, fence)?;
    if failed {
        return reschedule(connection, &mut head);
    }
    head.attempts = (head.attempts - 1).max(0);
    head.release(Some(head.now));
    head.save(connection)?;
    Ok(Vec::new())
}

pub(super) fn fail(
    connection: &Connection,
    key: i64,
    fence: i64,
    message: &str,
) -> Result<Vec<Event>, DbError> {
    let mut head = held(connection, key, fence)?;
    head.attempts = 0;
    let stop = StopReason::RetriesExhausted;
    end_work(connection, &mut head, vec![error("unknown_error", message, "exhausted"), idle(&stop)], stop)
}

pub(super) fn quarantined(connection: &Connection) -> Result<Vec<Stranded>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT s.id, h.quarantined_at, h.status FROM heads h JOIN sessions s ON s.key = h.session_key
         WHERE h.quarantined_at IS NOT NULL AND s.deleted_at IS NULL ORDER BY h.quarantined_at",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Stranded { id: SessionId(raw(row, 0)?), at: time(row, 1)?, status: status(row, 2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn release_quarantined(connection: &Connection, id: SessionId) -> Result<bool, DbError> {
    let key: Option<i64> = connection
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1 AND deleted_at IS NULL")?
        .query_row(params![id.0], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(false) };
    let mut head = heads::find(connection, key)?;
    if head.quarantined_at.take().is_none() {
        return Ok(false);
    }
    head.attempts = 0;
    head.wake_at = Some(head.now);
    head.save(connection)?;
    Ok(true)
}
