//! Sessions that lost their node: they become due again, later each time, and are given up when they kill node after node.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::columns::{raw, status, stored, time, uuid};
use super::{NOW, PostgresDb, heads};
use crate::model::event::Event;
use crate::model::ids::{NodeId, SessionId, TenantId};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::{EndedWork, Head};
use crate::store::port::{Recovered, Stranded, UnusedWorkspace};

/// Sessions that are taken from nodes in one transaction.
const TOGETHER: usize = 100;

/// Gives a session up that has killed too many nodes. `None` when it may be tried.
pub(super) async fn give_up(
    transaction: &Transaction<'_>,
    head: &mut Head,
) -> Result<Option<Vec<Event>>, DbError> {
    match head.give_up() {
        None => Ok(None),
        Some(ended) => end(transaction, head, ended).await.map(Some),
    }
}

/// Writes the end of a session's work.
async fn end(
    transaction: &Transaction<'_>,
    head: &mut Head,
    ended: EndedWork,
) -> Result<Vec<Event>, DbError> {
    if ended.drops_inbox {
        heads::drop_inbox(transaction, head.key).await?;
    }
    heads::close_actions(transaction, head.key, head.now).await?;
    let events = heads::add(transaction, head, ended.events).await?;
    heads::save(transaction, head).await?;
    Ok(events)
}

/// The lease of a node is void: the session is due again.
async fn reschedule(transaction: &Transaction<'_>, head: &mut Head) -> Result<Vec<Event>, DbError> {
    let events = head.reschedule();
    let events = heads::add(transaction, head, events).await?;
    heads::save(transaction, head).await?;
    Ok(events)
}

/// Forgets nodes whose time is over, and takes their sessions, a few at a time.
pub(super) async fn void_leases(db: &PostgresDb, node: NodeId) -> Result<Vec<Recovered>, DbError> {
    let mut recovered = Vec::new();
    loop {
        let some = db.write(move |transaction| Box::pin(void_some(transaction, node))).await?;
        let is_last = some.len() < TOGETHER;
        recovered.extend(some);
        if is_last {
            return Ok(recovered);
        }
    }
}

async fn void_some(transaction: &Transaction<'_>, node: NodeId) -> Result<Vec<Recovered>, DbError> {
    let sql = format!("DELETE FROM nodes WHERE expires_at < {NOW} AND id <> $1");
    let statement = transaction.prepare_cached(&sql).await?;
    transaction.execute(&statement, &[&uuid(node.0)]).await?;
    let sql = format!(
        "SELECT {} FROM heads h WHERE h.lease_node IS NOT NULL AND h.lease_node <> $1
            AND NOT EXISTS (SELECT FROM nodes n WHERE n.id = h.lease_node)
         ORDER BY h.session_key LIMIT {TOGETHER} FOR UPDATE OF h SKIP LOCKED",
        heads::columns()
    );
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&uuid(node.0)]).await?;
    let mut recovered = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut head = heads::read(row)?;
        let events = reschedule(transaction, &mut head).await?;
        recovered.push(Recovered { key: head.key, events });
    }
    Ok(recovered)
}

async fn held(transaction: &Transaction<'_>, key: i64, fence: i64) -> Result<Head, DbError> {
    let head = heads::lock(transaction, key).await?;
    if head.fence == fence && head.lease.is_some() { Ok(head) } else { Err(DbError::Fenced(key)) }
}

pub(super) async fn release(
    transaction: &Transaction<'_>,
    key: i64,
    fence: i64,
    failed: bool,
) -> Result<Vec<Event>, DbError> {
    let mut head = held(transaction, key, fence).await?;
    if failed {
        return reschedule(transaction, &mut head).await;
    }
    head.give_back();
    heads::save(transaction, &head).await?;
    Ok(Vec::new())
}

pub(super) async fn fail(
    transaction: &Transaction<'_>,
    key: i64,
    fence: i64,
    message: &str,
) -> Result<Vec<Event>, DbError> {
    let mut head = held(transaction, key, fence).await?;
    let ended = head.fail(message);
    end(transaction, &mut head, ended).await
}

pub(super) async fn quarantined(connection: &Object) -> Result<Vec<Stranded>, DbError> {
    let sql = "SELECT s.id, h.quarantined_at, h.status FROM heads h JOIN sessions s ON s.key = h.session_key
        WHERE h.quarantined_at IS NOT NULL AND s.deleted_at IS NULL ORDER BY h.quarantined_at";
    let rows = connection.query(&connection.prepare_cached(sql).await?, &[]).await?;
    let read =
        |row: &Row| Ok(Stranded { id: SessionId(raw(row, 0)?), at: time(row, 1)?, status: status(row, 2)? });
    rows.iter().map(read).collect()
}

pub(super) async fn release_quarantined(
    transaction: &Transaction<'_>,
    id: SessionId,
) -> Result<bool, DbError> {
    let sql = "SELECT key FROM sessions WHERE id = $1 AND deleted_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    let Some(row) = transaction.query_opt(&statement, &[&uuid(id.0)]).await? else { return Ok(false) };
    let mut head = heads::lock(transaction, row.try_get(0)?).await?;
    let is_released = head.release_quarantined();
    heads::save(transaction, &head).await?;
    Ok(is_released)
}

/// Workspaces of sessions that were deleted before this time.
pub(super) async fn unused_workspaces(
    connection: &Object,
    before: Time,
    limit: usize,
) -> Result<Vec<UnusedWorkspace>, DbError> {
    let sql = "SELECT s.key, s.id, s.tenant_id FROM sessions s JOIN heads h ON h.session_key = s.key
        WHERE s.deleted_at < $1 AND h.workspace IS NOT NULL LIMIT $2";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&before.0, &stored(limit as u64)]).await?;
    let read = |row: &Row| {
        let (session, tenant) = (SessionId(raw(row, 1)?), TenantId(raw(row, 2)?));
        Ok(UnusedWorkspace { key: row.try_get(0)?, session, tenant })
    };
    rows.iter().map(read).collect()
}

/// Nothing is kept of a session's workspace any longer.
pub(super) async fn forget_workspace(transaction: &Transaction<'_>, key: i64) -> Result<(), DbError> {
    let sql = "UPDATE heads SET workspace = NULL, home_node = NULL WHERE session_key = $1";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&key]).await?;
    Ok(())
}
