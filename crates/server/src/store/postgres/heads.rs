//! The heads of sessions: locking them, adding events, writing them back. Every transaction that adds events to a session goes
//! through here, or through the one statement of `append`.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::NOW;
use super::columns::{
    json, number, optional_json, optional_raw, optional_time, raw, status, stored, text, time, uuid,
};
use super::resources::deliveries;
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId};
use crate::model::outcome::Outcome;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::Head;
use crate::store::port::Claim;

/// The columns that [`read`] reads.
pub(super) fn columns() -> String {
    format!(
        "h.session_key, h.status, h.stop_reason::text, h.record_seq, h.event_seq, h.inbox_seq, h.fence, h.lease_node,
         h.wake_at, h.attempts, h.quarantined_at, h.active_ms, h.running_since, h.usage::text,
         greatest(h.last_at, {NOW}), h.outcomes::text,
         (SELECT n.id FROM nodes n WHERE n.home = h.home_node AND n.expires_at >= {NOW} AND NOT n.draining LIMIT 1)"
    )
}

pub(super) fn read(row: &Row) -> Result<Head, DbError> {
    Ok(Head {
        key: row.try_get(0)?,
        status: status(row, 1)?,
        stop: optional_json(row, 2)?,
        record_seq: number(row, 3)?,
        event_seq: number(row, 4)?,
        inbox_seq: number(row, 5)?,
        fence: row.try_get(6)?,
        lease: optional_raw(row, 7)?.map(NodeId),
        wake_at: optional_time(row, 8)?,
        attempts: row.try_get(9)?,
        quarantined_at: optional_time(row, 10)?,
        active_ms: number(row, 11)?,
        running_since: optional_time(row, 12)?,
        usage: row.try_get(13)?,
        now: time(row, 14)?,
        outcomes: json(row, 15)?,
        home_at: optional_raw(row, 16)?.map(NodeId),
    })
}

/// The head of a session, locked until the transaction ends.
pub(super) async fn lock(transaction: &Transaction<'_>, key: i64) -> Result<Head, DbError> {
    let sql = format!("SELECT {} FROM heads h WHERE h.session_key = $1 FOR UPDATE", columns());
    let statement = transaction.prepare_cached(&sql).await?;
    let row = transaction.query_opt(&statement, &[&key]).await?;
    read(&row.ok_or(DbError::Fenced(key))?)
}

/// What a session works or worked towards.
pub(super) async fn outcomes(connection: &Object, key: i64) -> Result<Vec<Outcome>, DbError> {
    let sql = "SELECT outcomes::text FROM heads WHERE session_key = $1";
    let statement = connection.prepare_cached(sql).await?;
    let row = connection.query_opt(&statement, &[&key]).await?;
    json(&row.ok_or(DbError::Fenced(key))?, 0)
}

/// Adds events to a session.
pub(super) async fn add(
    transaction: &Transaction<'_>,
    head: &mut Head,
    events: Vec<NewEvent>,
) -> Result<Vec<Event>, DbError> {
    let added = head.number(events);
    if added.is_empty() {
        return Ok(added);
    }
    let sql = "INSERT INTO events (session_key, seq, id, type, at, processed_at, previewed, body, blob, thread_id,
            posted)
        SELECT $1, u.seq, u.id, u.type, $2, u.processed_at, u.previewed, u.body, u.blob, u.thread, u.posted
        FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::bigint[], $7::boolean[], $8::bytea[], $9::text[], $10::uuid[],
            $11::boolean[]) AS u (seq, id, type, processed_at, previewed, body, blob, thread, posted)";
    let seqs: Vec<i64> = added.iter().map(|event| stored(event.seq)).collect();
    let ids: Vec<Uuid> = added.iter().map(|event| uuid(event.id.0)).collect();
    let kinds: Vec<&str> = added.iter().map(|event| event.kind.as_str()).collect();
    let processed: Vec<Option<i64>> =
        added.iter().map(|event| event.processed_at.map(|time| time.0)).collect();
    let previewed: Vec<bool> = added.iter().map(|event| event.is_previewed).collect();
    let bodies: Vec<&[u8]> = added
        .iter()
        .map(|event| if event.blob.is_some() { &[][..] } else { event.body.as_bytes() })
        .collect();
    let blobs: Vec<Option<&str>> = added.iter().map(|event| event.blob.as_deref()).collect();
    let threads: Vec<Option<Uuid>> =
        added.iter().map(|event| event.thread.map(|thread| uuid(thread.0))).collect();
    let posted: Vec<bool> = added.iter().map(|event| event.is_posted).collect();
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &head.key,
                &head.now.0,
                &seqs,
                &ids,
                &kinds,
                &processed,
                &previewed,
                &bodies,
                &blobs,
                &threads,
                &posted,
            ],
        )
        .await?;
    deliveries::notify_events(transaction, head.key, &added).await?;
    Ok(added)
}

/// Writes a head back.
pub(super) async fn save(transaction: &Transaction<'_>, head: &Head) -> Result<(), DbError> {
    let sql = "UPDATE heads SET status = $2, stop_reason = $3::text::json, record_seq = $4, event_seq = $5, inbox_seq = $6,
            fence = $7, lease_node = $8, wake_at = $9, attempts = $10, quarantined_at = $11, active_ms = $12,
            running_since = $13, usage = $14::text::json, last_at = $15, outcomes = $16::text::json
        WHERE session_key = $1";
    let stop = head.stop.as_ref().map(text).transpose()?;
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &head.key,
                &head.status.as_str(),
                &stop,
                &stored(head.record_seq),
                &stored(head.event_seq),
                &stored(head.inbox_seq),
                &head.fence,
                &head.lease.map(|node| uuid(node.0)),
                &head.wake_at.map(|time| time.0),
                &head.attempts,
                &head.quarantined_at.map(|time| time.0),
                &stored(head.active_ms),
                &head.running_since.map(|time| time.0),
                &head.usage,
                &head.now.0,
                &text(&head.outcomes)?,
            ],
        )
        .await?;
    Ok(())
}

/// The lease that a session has now.
pub(super) async fn claim(transaction: &Transaction<'_>, head: &Head) -> Result<Claim, DbError> {
    let sql = "SELECT greatest(s.updated_at, coalesce(e.updated_at, 0))
        FROM sessions s LEFT JOIN environments e ON e.id = s.environment_id WHERE s.key = $1";
    let statement = transaction.prepare_cached(sql).await?;
    let row = transaction.query_one(&statement, &[&head.key]).await?;
    Ok(Claim { key: head.key, fence: head.fence, record_seq: head.record_seq, configured_at: time(&row, 0)? })
}

/// Closes actions without an answer.
pub(super) async fn close_actions(transaction: &Transaction<'_>, key: i64, now: Time) -> Result<(), DbError> {
    let sql = "UPDATE pending SET closed_at = $2 WHERE session_key = $1 AND closed_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&key, &now.0]).await?;
    Ok(())
}

/// Drops what is left for a session.
pub(super) async fn drop_inbox(transaction: &Transaction<'_>, key: i64) -> Result<(), DbError> {
    let statement = transaction.prepare_cached("DELETE FROM inbox WHERE session_key = $1").await?;
    transaction.execute(&statement, &[&key]).await?;
    Ok(())
}

/// The actions of a session that are open, in the order of their events.
pub(super) async fn open_actions(transaction: &Transaction<'_>, key: i64) -> Result<Vec<EventId>, DbError> {
    let sql = "SELECT event_id FROM pending WHERE session_key = $1 AND closed_at IS NULL ORDER BY asked_seq";
    let statement = transaction.prepare_cached(sql).await?;
    let rows = transaction.query(&statement, &[&key]).await?;
    rows.iter().map(|row| raw(row, 0).map(EventId)).collect()
}
