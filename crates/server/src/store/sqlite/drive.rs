//! Driving sessions: claiming them, appending to their logs and letting them rest. An append is one transaction, and an older
//! lease can append nothing.

use std::collections::HashMap;
use std::time::Duration;

use qoder_types::InboxEntry;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteDb;
use super::columns::{json, number, optional_raw, raw, stored};
use super::{heads, inputs, recover, sessions, threads};
use crate::model::event::Event;
use crate::model::ids::{EventId, NodeId, SessionId, TenantId};
use crate::model::outcome::Outcome;
use crate::model::refusal::Refusal;
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::{Head, running};
use crate::store::port::{
    Append, Appended, Claim, DbFuture, DriveDb, InboxRow, NewAction, NewRecord, RecordRow, Recovered, Rest,
    SeatRow, Stranded, UnusedWorkspace, WorkspaceChange,
};
use crate::store::record_parts;

pub(super) fn insert_records(
    connection: &Connection,
    tenant: TenantId,
    log: i64,
    records: &[NewRecord],
) -> Result<(), DbError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO records (log_key, seq, at, kind, body, refs, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut part = connection.prepare_cached("INSERT OR IGNORE INTO parts VALUES (?1, ?2, ?3)")?;
    for record in records {
        for (_, hash, body) in &record.parts {
            part.execute(params![tenant.0, hash, body])?;
        }
        let references = record_parts::references(record);
        insert.execute(params![
            log,
            stored(record.seq),
            record.at.0,
            record.kind,
            record.body,
            references,
            record.blob
        ])?;
    }
    Ok(())
}

/// The records of a log, in order.
pub(super) fn records(
    connection: &Connection,
    tenant: TenantId,
    log: i64,
) -> Result<Vec<RecordRow>, DbError> {
    let mut statement = connection
        .prepare_cached("SELECT seq, body, refs, blob FROM records WHERE log_key = ?1 ORDER BY seq")?;
    let mut rows = statement.query([log])?;
    let mut known: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (seq, body): (u64, Vec<u8>) = (number(row, 0)?, row.get(1)?);
        let references: Option<Vec<u8>> = row.get(2)?;
        let line = match references {
            None => body,
            Some(references) => {
                read_parts(connection, tenant, &references, &mut known)?;
                record_parts::assemble(&body, &references, &known)?
            }
        };
        found.push(RecordRow { seq, line, blob: row.get(3)? });
    }
    Ok(found)
}

/// Reads the parts that references name, unless they are known.
fn read_parts(
    connection: &Connection,
    tenant: TenantId,
    references: &[u8],
    known: &mut HashMap<Vec<u8>, Vec<u8>>,
) -> Result<(), DbError> {
    for hash in record_parts::hashes(references) {
        if known.contains_key(hash) {
            continue;
        }
        let part: Option<Vec<u8>> = connection
            .prepare_cached("SELECT body FROM parts WHERE tenant_id = ?1 AND sha256 = ?2")?
            .query_row(params![tenant.0, hash], |row| row.get(0))
            .optional()?;
        known.extend(part.map(|part| (hash.to_vec(), part)));
    }
    Ok(())
}

fn claim(
    connection: &Connection,
    node: NodeId,
    most: usize,
) -> Result<(Vec<Claim>, Vec<Recovered>), DbError> {
    let mut due = connection.prepare_cached(
        "SELECT session_key FROM heads
         WHERE wake_at IS NOT NULL AND wake_at <= ?1 AND lease_node IS NULL AND quarantined_at IS NULL
         ORDER BY wake_at LIMIT ?2",
    )?;
    let keys: Vec<i64> = due
        .query_map(params![Time::now().0, stored(most as u64)], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let (mut claims, mut recovered) = (Vec::new(), Vec::new());
    for key in keys {
        let mut head = heads::find(connection, key)?;
        if let Some(events) = recover::give_up(connection, &mut head)? {
            recovered.push(Recovered { key, events });
            continue;
        }
        head.lease_to(node);
        if head.status == Status::Rescheduling {
            head.become_status(Status::Running);
            let events = heads::add(connection, &mut head, vec![running()])?;
            recovered.push(Recovered { key, events });
        }
        heads::save(connection, &head)?;
        claims.push(heads::claim(connection, &head)?);
    }
    Ok((claims, recovered))
}

fn seat(connection: &Connection, key: i64) -> Result<SeatRow, DbError> {
    let session = sessions::by_key(connection, key)?.ok_or(DbError::Fenced(key))?;
    let (tenant, data_key, environment) = connection
        .prepare_cached(
            "SELECT t.id, t.data_key, e.body FROM sessions s JOIN tenants t ON t.id = s.tenant_id
             JOIN environments e ON e.id = s.environment_id WHERE s.key = ?1",
        )?
        .query_row([key], |row| Ok((TenantId(raw(row, 0)?), row.get(1)?, json(row, 2)?)))?;
    let head = heads::find(connection, key)?;
    let (workspace, home) = connection
        .prepare_cached("SELECT workspace, home_node FROM heads WHERE session_key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, optional_raw(row, 1)?.map(NodeId))))?;
    Ok(SeatRow {
        session,
        tenant,
        data_key,
        environment,
        records: records(connection, tenant, key)?,
        threads: threads::rows(connection, tenant, key)?,
        inbox: inbox_after(connection, key, 0)?,
        inbox_seq: head.inbox_seq,
        workspace,
        home,
    })
}

fn keep_workspace(connection: &Connection, key: i64, change: &WorkspaceChange) -> Result<(), DbError> {
    connection
        .prepare_cached("UPDATE heads SET workspace = ?2, home_node = ?3 WHERE session_key = ?1")?
        .execute(params![key, change.reference, change.home.map(|home| home.0)])?;
    Ok(())
}

fn unused_workspaces(
    connection: &Connection,
    before: Time,
    limit: usize,
) -> Result<Vec<UnusedWorkspace>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT s.key, s.id, s.tenant_id FROM sessions s JOIN heads h ON h.session_key = s.key
         WHERE s.deleted_at < ?1 AND h.workspace IS NOT NULL LIMIT ?2",
    )?;
    let rows = statement.query_map(params![before.0, stored(limit as u64)], |row| {
        let (session, tenant) = (SessionId(raw(row, 1)?), TenantId(raw(row, 2)?));
        Ok(UnusedWorkspace { key: row.get(0)?, session, tenant })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn inbox_after(connection: &Connection, key: i64, seen: u64) -> Result<Vec<InboxRow>, DbError> {
    let mut statement = connection
        .prepare_cached("SELECT seq, body FROM inbox WHERE session_key = ?1 AND seq > ?2 ORDER BY seq")?;
    let rows = statement.query_map(params![key, stored(seen)], |row| {
        let body: Vec<u8> = row.get(1)?;
        Ok((number(row, 0)?, body))
    })?;
    let mut entries = Vec::new();
    for row in rows {
        let (seq, body) = row?;
        let entry: InboxEntry = serde_json::from_slice(&body)
            .map_err(|error| DbError::Corrupt(format!("an inbox entry: {error}")))?;
        entries.push(InboxRow { seq, entry });
    }
    Ok(entries)
}

fn append(connection: &Connection, append: Append) -> Result<Appended, DbError> {
    let key = append.key;
    let mut head = heads::find(connection, key)?;
    if head.fence != append.fence || head.record_seq != append.expected {
        return Err(DbError::Fenced(key));
    }
    insert_records(connection, append.tenant, key, &append.records)?;
    head.record_seq += append.records.len() as u64;
    for thread in &append.threads {
        threads::append(connection, &head, append.tenant, thread)?;
    }
    let mut events = Vec::new();
    if append.begins && head.status == Status::Idle {
        head.become_status(Status::Running);
        events.extend(heads::add(connection, &mut head, vec![running()])?);
    }
    events.extend(heads::add(connection, &mut head, append.events)?);
    open_actions(connection, &head, append.tenant, append.actions, &events)?;
    mark_processed(connection, &head, &append.processed)?;
    if append.taken > 0 {
        connection
            .prepare_cached("DELETE FROM inbox WHERE session_key = ?1 AND seq <= ?2")?
            .execute(params![key, stored(append.taken)])?;
    }
    if let Some(usage) = append.usage {
        head.usage = usage;
    }
    if let Some(outcomes) = append.outcomes {
        head.outcomes = outcomes;
    }
    if let Some(change) = &append.workspace {
        keep_workspace(connection, key, change)?;
    }
    if append.is_progress {
        head.attempts = 0;
    }
    let (rests, inbox) = match append.rest {
        None => (false, Vec::new()),
        Some(rest) if rest.seen == head.inbox_seq => {
            events.extend(let_rest(connection, &mut head, rest)?);
            (true, Vec::new())
        }
        Some(rest) => (false, inbox_after(connection, key, rest.seen)?),
    };
    heads::save(connection, &head)?;
    Ok(Appended { events, rests, inbox, inbox_seq: head.inbox_seq })
}

fn let_rest(connection: &Connection, head: &mut Head, rest: Rest) -> Result<Vec<Event>, DbError> {
    if head.rest(rest.stop, rest.releases) {
        heads::add(connection, head, rest.events)
    } else {
        Ok(Vec::new())
    }
}

fn open_actions(
    connection: &Connection,
    head: &Head,
    tenant: TenantId,
    actions: Vec<NewAction>,
    events: &[Event],
) -> Result<(), DbError> {
    let placed = actions.into_iter().map(|action| {
        let seq =
            events.iter().find(|event| event.id == action.event).map_or(head.event_seq, |event| event.seq);
        (action, seq)
    });
    inputs::open_actions(connection, head, tenant, &placed.collect::<Vec<_>>())
}

fn mark_processed(connection: &Connection, head: &Head, ids: &[EventId]) -> Result<(), DbError> {
    let mut update = connection.prepare_cached(
        "UPDATE events SET processed_at = ?3 WHERE session_key = ?1 AND id = ?2 AND processed_at IS NULL",
    )?;
    for id in ids {
        update.execute(params![head.key, id.0, head.now.0])?;
    }
    Ok(())
}

fn export(connection: &Connection, id: SessionId) -> Result<(TenantId, Vec<RecordRow>), DbError> {
    let found: Option<(i64, [u8; 16])> = connection
        .prepare_cached("SELECT key, tenant_id FROM sessions WHERE id = ?1")?
        .query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (key, tenant) = found.ok_or_else(|| Refusal::not_found("session", id))?;
    Ok((TenantId(tenant), records(connection, TenantId(tenant), key)?))
}

impl DriveDb for SqliteDb {
    fn claim(&self, node: NodeId, most: usize) -> DbFuture<'_, (Vec<Claim>, Vec<Recovered>)> {
        self.write(move |connection| claim(connection, node, most))
    }

    fn seat(&self, key: i64) -> DbFuture<'_, SeatRow> {
        self.read(move |connection| seat(connection, key))
    }

    fn append(&self, commit: Append) -> DbFuture<'_, Appended> {
        self.write(move |connection| append(connection, commit))
    }

    fn inbox_after(&self, key: i64, seen: u64) -> DbFuture<'_, Vec<InboxRow>> {
        self.read(move |connection| inbox_after(connection, key, seen))
    }

    fn outcomes(&self, key: i64) -> DbFuture<'_, Vec<Outcome>> {
        self.read(move |connection| Ok(heads::find(connection, key)?.outcomes))
    }

    fn release(&self, key: i64, fence: i64, failed: bool) -> DbFuture<'_, Vec<Event>> {
        self.write(move |connection| recover::release(connection, key, fence, failed))
    }

    fn fail(&self, key: i64, fence: i64, error: String) -> DbFuture<'_, Vec<Event>> {
        self.write(move |connection| recover::fail(connection, key, fence, &error))
    }

    fn void_leases(&self, node: NodeId) -> DbFuture<'_, Vec<Recovered>> {
        self.write(move |connection| recover::void_leases(connection, node))
    }

    fn unused_workspaces(&self, before: Time, limit: usize) -> DbFuture<'_, Vec<UnusedWorkspace>> {
        self.read(move |connection| unused_workspaces(connection, before, limit))
    }

    fn forget_workspace(&self, key: i64) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE heads SET workspace = NULL, home_node = NULL WHERE session_key = ?1")?
                .execute([key])?;
            Ok(())
        })
    }

    fn next_due(&self, _: NodeId) -> DbFuture<'_, Option<Duration>> {
        self.read(move |connection| {
            let sql = "SELECT min(wake_at) FROM heads
                WHERE wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL";
            let due: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(due.map(|due| Duration::from_millis(Time(due).since(Time::now()))))
        })
    }

    fn quarantined(&self) -> DbFuture<'_, Vec<Stranded>> {
        self.read(recover::quarantined)
    }

    fn release_quarantined(&self, id: SessionId) -> DbFuture<'_, bool> {
        self.write(move |connection| recover::release_quarantined(connection, id))
    }

    fn export(&self, id: SessionId) -> DbFuture<'_, (TenantId, Vec<RecordRow>)> {
        self.read(move |connection| export(connection, id))
    }
}
