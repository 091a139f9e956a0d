//! Threads: logs of agents beside the log of their session.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteDb;
use super::columns::{json, number, optional_time, raw, stored, time};
use super::drive::{insert_records, records};

use super::once::once;
use super::sessions;
use crate::model::ids::{SessionId, TenantId, ThreadId};
use crate::model::refusal::Refusal;
use crate::model::status::Status;
use crate::model::thread::Thread;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::Head;
use crate::store::port::{DbFuture, Done, Once, ThreadAppend, ThreadRow, ThreadsDb};

/// The log of a thread.
pub(super) fn log_of(
    connection: &Connection,
    session: i64,
    thread: ThreadId,
) -> Result<Option<i64>, DbError> {
    let sql = "SELECT log_key FROM logs WHERE session_key = ?1 AND thread_id = ?2";
    Ok(connection.prepare_cached(sql)?.query_row(params![session, thread.0], |row| row.get(0)).optional()?)
}

/// Writes what a seat did in a thread.
pub(super) fn append(
    connection: &Connection,
    head: &Head,
    tenant: TenantId,
    append: &ThreadAppend,
) -> Result<(), DbError> {
    let now = head.now.0;
    let log = match log_of(connection, head.key, append.thread)? {
        Some(log) => log,
        None => {
            connection
                .prepare_cached(
                    "INSERT INTO logs (session_key, thread_id, parent_log, name, agent_name, status, created_at, updated_at)
                     VALUES (?1, ?2, ?1, ?3, ?4, ?5, ?6, ?6)",
                )?
                .execute(params![
                    head.key,
                    append.thread.0,
                    append.thread.agent(),
                    append.agent_name,
                    Status::Idle.as_str(),
                    now
                ])?;
            connection.last_insert_rowid()
        }
    };
    let (seq, active_ms, since): (u64, i64, Option<i64>) = connection
        .prepare_cached("SELECT record_seq, active_ms, running_since FROM logs WHERE log_key = ?1")?
        .query_row([log], |row| Ok((number(row, 0)?, row.get(1)?, row.get(2)?)))?;
    if seq != append.expected {
        return Err(DbError::Fenced(head.key));
    }
    insert_records(connection, tenant, log, &append.records)?;
    let (status, active_ms, since) = match (append.is_running, since) {
        (true, since) => (Status::Running, active_ms, Some(since.unwrap_or(now))),
        (false, Some(since)) => (Status::Idle, active_ms + (now - since).max(0) / 1000, None),
        (false, None) => (Status::Idle, active_ms, None),
    };
    connection
        .prepare_cached(
            "UPDATE logs SET record_seq = ?2, sidecar = coalesce(?3, sidecar), status = ?4, usage = ?5, active_ms = ?6,
                running_since = ?7, updated_at = ?8, is_over = ?9 WHERE log_key = ?1",
        )?
        .execute(params![
            log,
            stored(seq + append.records.len() as u64),
            append.sidecar.as_ref().map(ToString::to_string),
            status.as_str(),
            append.usage,
            active_ms,
            since,
            now,
            append.is_over,
        ])?;
    Ok(())
}

/// The threads of a session, with the records of those that are not over.
pub(super) fn rows(
    connection: &Connection,
    tenant: TenantId,
    session: i64,
) -> Result<Vec<ThreadRow>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT log_key, thread_id, agent_name, sidecar, record_seq, usage, status, is_over FROM logs
         WHERE session_key = ?1 AND thread_id IS NOT NULL ORDER BY log_key",
    )?;
    let rows = statement.query_map([session], |row| {
        let log: i64 = row.get(0)?;
        let status: String = row.get(6)?;
        let thread = ThreadRow {
            thread: ThreadId(raw(row, 1)?),
            agent_name: row.get(2)?,
            sidecar: json(row, 3)?,
            record_seq: number(row, 4)?,
            usage: row.get(5)?,
            is_running: status == Status::Running.as_str(),
            is_over: row.get(7)?,
            records: Vec::new(),
        };
        Ok((log, thread))
    })?;
    let mut threads = Vec::new();
    for row in rows {
        let (log, mut thread) = row?;
        if !thread.is_over {
            thread.records = records(connection, tenant, log)?;
        }
        threads.push(thread);
    }
    Ok(threads)
}

const SELECT: &str = "SELECT thread_id, agent_name, status, usage, active_ms, running_since, created_at,
    coalesce(updated_at, created_at), archived_at FROM logs";

fn read(row: &Row<'_>) -> rusqlite::Result<Thread> {
    let status: String = row.get(2)?;
    Ok(Thread {
        id: ThreadId(raw(row, 0)?),
        agent_name: row.get(1)?,
        status: Status::parse(&status).unwrap_or(Status::Idle),
        usage: json(row, 3)?,
        active_ms: number(row, 4)?,
        running_since: optional_time(row, 5)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        archived_at: optional_time(row, 8)?,
    })
}

fn list(connection: &Connection, tenant: TenantId, session: SessionId) -> Result<Vec<Thread>, DbError> {
    let (key, _) = sessions::key(connection, tenant, session)?;
    let sql = format!("{SELECT} WHERE session_key = ?1 AND thread_id IS NOT NULL ORDER BY log_key");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([key], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn archive(
    connection: &Connection,
    tenant: TenantId,
    session: SessionId,
    thread: ThreadId,
) -> Result<Thread, DbError> {
    let (key, _) = sessions::key(connection, tenant, session)?;
    let sql = format!("{SELECT} WHERE session_key = ?1 AND thread_id = ?2");
    let found = connection.prepare_cached(&sql)?.query_row(params![key, thread.0], read).optional()?;
    let found = found.ok_or_else(|| Refusal::not_found("thread", thread))?;
    let waits: Option<bool> = connection
        .prepare_cached("SELECT is_over FROM logs WHERE session_key = ?1 AND thread_id = ?2")?
        .query_row(params![key, thread.0], |row| row.get(0))
        .optional()?;
    if waits == Some(false) {
        let message = format!("The thread `{thread}` has work to do. Stop it with `user.interrupt` first.");
        return Err(Refusal::conflict(message).into());
    }
    if found.archived_at.is_some() {
        return Ok(found);
    }
    let now = Time::now();
    connection
        .prepare_cached(
            "UPDATE logs SET archived_at = ?3, updated_at = ?3 WHERE session_key = ?1 AND thread_id = ?2",
        )?
        .execute(params![key, thread.0, now.0])?;
    Ok(Thread { archived_at: Some(now), updated_at: now, ..found })
}

impl ThreadsDb for SqliteDb {
    fn threads(&self, tenant: TenantId, session: SessionId) -> DbFuture<'_, Vec<Thread>> {
        self.read(move |connection| list(connection, tenant, session))
    }

    fn archive_thread(
        &self,
        tenant: TenantId,
        session: SessionId,
        thread: ThreadId,
        done: Once<Thread>,
    ) -> DbFuture<'_, Done<Thread>> {
        self.write(move |connection| once(connection, done, || archive(connection, tenant, session, thread)))
    }
}
