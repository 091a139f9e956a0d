//! Sessions that lost their node: they become due again, later each time, and are given up when they kill node after node.

use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{raw, status, time};
use super::heads;
use crate::model::event::Event;
use crate::model::ids::{NodeId, SessionId};
use crate::store::error::DbError;
use crate::store::head::{EndedWork, Head};
use crate::store::port::{Recovered, Stranded};

/// Gives a session up that has killed too many nodes. `None` when it may be tried.
pub(super) fn give_up(connection: &Connection, head: &mut Head) -> Result<Option<Vec<Event>>, DbError> {
    head.give_up().map(|ended| end(connection, head, ended)).transpose()
}

/// Writes the end of a session's work.
fn end(connection: &Connection, head: &mut Head, ended: EndedWork) -> Result<Vec<Event>, DbError> {
    if ended.drops_inbox {
        connection.prepare_cached("DELETE FROM inbox WHERE session_key = ?1")?.execute([head.key])?;
    }
    heads::close_actions(connection, head.key, head.now)?;
    let events = heads::add(connection, head, ended.events)?;
    heads::save(connection, head)?;
    Ok(events)
}

/// The lease of a node is void: the session is due again.
fn reschedule(connection: &Connection, head: &mut Head) -> Result<Vec<Event>, DbError> {
    let events = head.reschedule();
    let events = heads::add(connection, head, events)?;
    heads::save(connection, head)?;
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
    head.give_back();
    heads::save(connection, &head)?;
    Ok(Vec::new())
}

pub(super) fn fail(
    connection: &Connection,
    key: i64,
    fence: i64,
    message: &str,
) -> Result<Vec<Event>, DbError> {
    let mut head = held(connection, key, fence)?;
    let ended = head.fail(message);
    end(connection, &mut head, ended)
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
    let is_released = head.release_quarantined();
    heads::save(connection, &head)?;
    Ok(is_released)
}
