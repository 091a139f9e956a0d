//! Threads: logs of agents beside the log of their session.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::columns::{json, number, optional_time, raw, stored, time, uuid};
use super::once::once;
use super::{PostgresDb, drive, sessions};
use crate::model::ids::{SessionId, TenantId, ThreadId};
use crate::model::refusal::Refusal;
use crate::model::status::Status;
use crate::model::thread::Thread;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::Head;
use crate::store::port::{DbFuture, Done, NewRecord, Once, ThreadAppend, ThreadRow, ThreadsDb};
use crate::store::record_parts;

/// The log of a thread and its last record; both are made when the thread is new. The caller has the lock of the session's head.
async fn log(
    transaction: &Transaction<'_>,
    head: &Head,
    append: &ThreadAppend,
) -> Result<(i64, u64), DbError> {
    let thread = uuid(append.thread.0);
    let sql = "SELECT log_key, record_seq FROM logs WHERE session_key = $1 AND thread_id = $2 FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    if let Some(row) = transaction.query_opt(&statement, &[&head.key, &thread]).await? {
        return Ok((row.try_get(0)?, number(&row, 1)?));
    }
    let sql =
        "INSERT INTO logs (session_key, thread_id, parent_log, name, agent_name, status, created_at, updated_at)
        VALUES ($1, $2, $1, $3, $4, $5, $6, $6) RETURNING log_key";
    let statement = transaction.prepare_cached(sql).await?;
    let (name, status) = (append.thread.agent(), Status::Idle.as_str());
    let row = transaction
        .query_one(&statement, &[&head.key, &thread, &name, &append.agent_name, &status, &head.now.0])
        .await?;
    Ok((row.try_get(0)?, 0))
}

async fn insert_records(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    log: i64,
    records: &[NewRecord],
) -> Result<(), DbError> {
    if records.is_empty() {
        return Ok(());
    }
    let seqs: Vec<i64> = records.iter().map(|record| stored(record.seq)).collect();
    let times: Vec<i64> = records.iter().map(|record| record.at.0).collect();
    let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
    let bodies: Vec<&[u8]> = records.iter().map(|record| record.body.as_slice()).collect();
    let references: Vec<Option<Vec<u8>>> = records.iter().map(record_parts::references).collect();
    let blobs: Vec<Option<&str>> = records.iter().map(|record| record.blob.as_deref()).collect();
    let all_parts: Vec<_> = records.iter().flat_map(|record| &record.parts).collect();
    let hashes: Vec<&[u8]> = all_parts.iter().map(|(_, hash, _)| hash.as_slice()).collect();
    let part_bodies: Vec<&[u8]> = all_parts.iter().map(|(_, _, body)| body.as_slice()).collect();
    let sql = "WITH p AS (
            INSERT INTO parts (tenant_id, sha256, body) SELECT $8, u.sha256, u.body
            FROM unnest($9::bytea[], $10::bytea[]) AS u (sha256, body) ON CONFLICT DO NOTHING)
        INSERT INTO records (log_key, seq, at, kind, body, refs, blob)
        SELECT $1, u.seq, u.at, u.kind, u.body, u.refs, u.blob
        FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[], $7::text[])
            AS u (seq, at, kind, body, refs, blob)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &log,
                &seqs,
                &times,
                &kinds,
                &bodies,
                &references,
                &blobs,
                &uuid(tenant.0),
                &hashes,
                &part_bodies,
            ],
        )
        .await?;
    Ok(())
}

/// Writes what a seat did in a thread. The caller has the lock of the session's head.
pub(super) async fn append(
    transaction: &Transaction<'_>,
    head: &Head,
    tenant: TenantId,
    append: &ThreadAppend,
) -> Result<(), DbError> {
    let (log, seq) = log(transaction, head, append).await?;
    if seq != append.expected {
        return Err(DbError::Fenced(head.key));
    }
    insert_records(transaction, tenant, log, &append.records).await?;
    let status = if append.is_running { Status::Running } else { Status::Idle };
    let sql = "UPDATE logs SET record_seq = $2, sidecar = coalesce($3::text::json, sidecar), status = $4,
            usage = $5::text::json, updated_at = $6, is_over = $7,
            active_ms = active_ms + CASE WHEN $8 OR running_since IS NULL THEN 0
                ELSE greatest(0, ($6 - running_since) / 1000) END,
            running_since = CASE WHEN $8 THEN coalesce(running_since, $6) END
        WHERE log_key = $1";
    let statement = transaction.prepare_cached(sql).await?;
    let sidecar = append.sidecar.as_ref().map(ToString::to_string);
    transaction
        .execute(
            &statement,
            &[
                &log,
                &stored(seq + append.records.len() as u64),
                &sidecar,
                &status.as_str(),
                &append.usage,
                &head.now.0,
                &append.is_over,
                &append.is_running,
            ],
        )
        .await?;
    Ok(())
}

/// Whether what was appended to a thread is stored; an error when something else is in its place.
pub(super) async fn is_stored(
    client: &impl GenericClient,
    key: i64,
    append: &ThreadAppend,
) -> Result<bool, DbError> {
    let sql = "SELECT l.record_seq,
            (SELECT r.body FROM records r WHERE r.log_key = l.log_key AND r.seq = l.record_seq)
        FROM logs l WHERE l.session_key = $1 AND l.thread_id = $2";
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&key, &uuid(append.thread.0)]).await?;
    let (seq, last): (u64, Option<Vec<u8>>) = match row {
        None => (0, None),
        Some(row) => (number(&row, 0)?, row.try_get(1)?),
    };
    let is_ours = append.records.last().is_some_and(|record| last.as_ref() == Some(&record.body));
    if seq == append.expected {
        Ok(false)
    } else if seq == append.expected + append.records.len() as u64 && is_ours {
        Ok(true)
    } else {
        Err(DbError::Fenced(key))
    }
}

/// The threads of a session, with the records of those that are not over.
pub(super) async fn rows(
    client: &impl GenericClient,
    tenant: TenantId,
    session: i64,
) -> Result<Vec<ThreadRow>, DbError> {
    let sql = "SELECT log_key, thread_id, agent_name, sidecar::text, record_seq, usage::text, status, is_over FROM logs
        WHERE session_key = $1 AND thread_id IS NOT NULL ORDER BY log_key";
    let statement = client.prepare_cached(sql).await?;
    let mut threads = Vec::new();
    for row in client.query(&statement, &[&session]).await? {
        let (log, status): (i64, &str) = (row.try_get(0)?, row.try_get(6)?);
        let is_over: bool = row.try_get(7)?;
        threads.push(ThreadRow {
            thread: ThreadId(raw(&row, 1)?),
            agent_name: row.try_get(2)?,
            sidecar: json(&row, 3)?,
            record_seq: number(&row, 4)?,
            usage: row.try_get(5)?,
            is_running: status == Status::Running.as_str(),
            is_over,
            records: if is_over { Vec::new() } else { drive::records(client, tenant, log).await? },
        });
    }
    Ok(threads)
}

const SELECT: &str =
    "SELECT thread_id, agent_name, status, usage::text, active_ms, running_since, created_at,
    coalesce(updated_at, created_at), archived_at, is_over FROM logs";

fn read(row: &Row) -> Result<Thread, DbError> {
    Ok(Thread {
        id: ThreadId(raw(row, 0)?),
        agent_name: row.try_get(1)?,
        status: Status::parse(row.try_get(2)?).unwrap_or(Status::Idle),
        usage: json(row, 3)?,
        active_ms: number(row, 4)?,
        running_since: optional_time(row, 5)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        archived_at: optional_time(row, 8)?,
    })
}

async fn list(connection: &Object, tenant: TenantId, session: SessionId) -> Result<Vec<Thread>, DbError> {
    let (key, _) = sessions::key(connection, tenant, session).await?;
    let sql = format!("{SELECT} WHERE session_key = $1 AND thread_id IS NOT NULL ORDER BY log_key");
    let statement = connection.prepare_cached(&sql).await?;
    connection.query(&statement, &[&key]).await?.iter().map(read).collect()
}

async fn archive(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    session: SessionId,
    thread: ThreadId,
) -> Result<Thread, DbError> {
    let (key, _) = sessions::key(transaction, tenant, session).await?;
    let id: Uuid = uuid(thread.0);
    let sql = format!("{SELECT} WHERE session_key = $1 AND thread_id = $2 FOR UPDATE");
    let statement = transaction.prepare_cached(&sql).await?;
    let row = transaction.query_opt(&statement, &[&key, &id]).await?;
    let row = row.ok_or_else(|| Refusal::not_found("thread", thread))?;
    if !row.try_get::<_, bool>(9)? {
        let message = format!("The thread `{thread}` has work to do. Stop it with `user.interrupt` first.");
        return Err(Refusal::conflict(message).into());
    }
    let found = read(&row)?;
    if found.archived_at.is_some() {
        return Ok(found);
    }
    let now = Time::now();
    let sql = "UPDATE logs SET archived_at = $3, updated_at = $3 WHERE session_key = $1 AND thread_id = $2";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&key, &id, &now.0]).await?;
    Ok(Thread { archived_at: Some(now), updated_at: now, ..found })
}

impl ThreadsDb for PostgresDb {
    fn threads(&self, tenant: TenantId, session: SessionId) -> DbFuture<'_, Vec<Thread>> {
        self.read(move |connection| Box::pin(list(connection, tenant, session)))
    }

    fn archive_thread(
        &self,
        tenant: TenantId,
        session: SessionId,
        thread: ThreadId,
        done: Once<Thread>,
    ) -> DbFuture<'_, Done<Thread>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, archive(transaction, tenant, session, thread)))
        })
    }
}
