//! Sessions as the front sees them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteDb;
use super::columns::{json, number, optional_json, optional_raw, optional_time, raw, status, stored, time};
use super::lists::{List, page};
use super::once::once;
use super::resources::{agents, deliveries, environments, memory_stores, runs, work_items};
use super::{events, heads, inputs};
use crate::model::event::{Event, NewEvent};
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, DeploymentId, EnvironmentId, EventId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::session::{Session, SessionSecrets};
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    AgentQuery, ChangeSession, CreateSession, DbFuture, Done, EventQuery, ListedPage, Once, PendingRow,
    SendInputs, Sent, SessionQuery, SessionRow, SessionsDb, StreamStart,
};

const SELECT: &str = "SELECT s.key, s.id, s.agent_id, s.agent_version, s.environment_id, s.title, s.metadata, s.body, s.sealed,
    s.created_at, s.updated_at, s.archived_at, h.status, h.usage, h.active_ms, h.running_since, h.last_at, h.stop_reason,
    s.deployment_id, h.outcomes
    FROM sessions s JOIN heads h ON h.session_key = s.key";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let session = Session {
        key: row.get(0)?,
        id: SessionId(raw(row, 1)?),
        agent_id: AgentId(raw(row, 2)?),
        agent_version: number(row, 3)?,
        environment_id: EnvironmentId(raw(row, 4)?),
        title: row.get(5)?,
        metadata: json(row, 6)?,
        body: json(row, 7)?,
        secrets: SessionSecrets::default(),
        created_at: time(row, 9)?,
        updated_at: time(row, 10)?,
        archived_at: optional_time(row, 11)?,
        status: status(row, 12)?,
        usage: json(row, 13)?,
        active_ms: number(row, 14)?,
        running_since: optional_time(row, 15)?,
        last_at: time(row, 16)?,
        deployment: optional_raw(row, 18)?.map(DeploymentId),
        outcomes: json(row, 19)?,
    };
    Ok(SessionRow { session, sealed: row.get(8)?, stop: optional_json(row, 17)? })
}

/// A session of a tenant.
pub(super) fn find(connection: &Connection, tenant: TenantId, id: SessionId) -> Result<SessionRow, DbError> {
    let sql = format!("{SELECT} WHERE s.id = ?2 AND s.tenant_id = ?1 AND s.deleted_at IS NULL");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read).optional()?;
    found.ok_or_else(|| Refusal::not_found("session", id).into())
}

/// A session of any tenant by its key.
pub(super) fn by_key(connection: &Connection, key: i64) -> Result<Option<SessionRow>, DbError> {
    let sql = format!("{SELECT} WHERE s.key = ?1 AND s.deleted_at IS NULL");
    Ok(connection.prepare_cached(&sql)?.query_row([key], read).optional()?)
}

/// What taking inputs depends on beside the head.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionState {
    pub(super) key: i64,
    pub(super) is_archived: bool,
    pub(super) is_self_hosted: bool,
}

/// The state of a session of a tenant.
pub(super) fn state(
    connection: &Connection,
    tenant: TenantId,
    id: SessionId,
) -> Result<SessionState, DbError> {
    let found = connection
        .prepare_cached(
            "SELECT key, archived_at IS NOT NULL, self_hosted FROM sessions
             WHERE id = ?2 AND tenant_id = ?1 AND deleted_at IS NULL",
        )?
        .query_row(params![tenant.0, id.0], |row| {
            Ok(SessionState { key: row.get(0)?, is_archived: row.get(1)?, is_self_hosted: row.get(2)? })
        })
        .optional()?;
    found.ok_or_else(|| Refusal::not_found("session", id).into())
}

/// The key of a session of a tenant, and whether it is archived.
pub(super) fn key(connection: &Connection, tenant: TenantId, id: SessionId) -> Result<(i64, bool), DbError> {
    state(connection, tenant, id).map(|state| (state.key, state.is_archived))
}

fn create(connection: &Connection, create: CreateSession) -> Result<(SessionRow, Sent), DbError> {
    let CreateSession { tenant, agent, agent_version, environment, make, inputs, sender, run } = create;
    let agent = agents::find(connection, AgentQuery { tenant, id: agent, version: agent_version })?;
    if agent.archived_at.is_some() {
        let problem = format!("is `{}`, which is archived; use another agent", agent.id);
        return Err(Problem::field("agent", problem).with_code("agent_archived").into());
    }
    let environment = environments::find(connection, tenant, environment)?;
    if environment.archived_at.is_some() {
        let problem = format!("is `{}`, which is archived; use another environment", environment.id);
        return Err(Problem::field("environment_id", problem).with_code("environment_archived").into());
    }
    let row = make(&agent, &environment)?;
    let now = Time::now();
    let metadata =
        serde_json::to_string(&row.metadata).map_err(|error| DbError::Corrupt(error.to_string()))?;
    let body = serde_json::to_string(&row.body).map_err(|error| DbError::Corrupt(error.to_string()))?;
    connection
        .prepare_cached("INSERT INTO logs (session_key, created_at) VALUES (0, ?1)")?
        .execute([now.0])?;
    let key = connection.last_insert_rowid();
    connection.prepare_cached("UPDATE logs SET session_key = log_key WHERE log_key = ?1")?.execute([key])?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (key, id, tenant_id, agent_id, agent_version, environment_id, title, metadata, body, sealed,
                created_at, updated_at, deployment_id, self_hosted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13)",
        )?
        .execute(params![
            key,
            row.id.0,
            tenant.0,
            agent.id.0,
            stored(agent.version),
            environment.id.0,
            row.title,
            metadata,
            body,
            row.sealed,
            now.0,
            run.as_ref().map(|run| run.deployment.0),
            environment.body.is_self_hosted(),
        ])?;
    if let Some(run) = run {
        runs::succeed(connection, &run, row.id)?;
    }
    memory_stores::mount(connection, key, &row.body)?;
    connection
        .prepare_cached("INSERT INTO heads (session_key, status, last_at) VALUES (?1, ?2, ?3)")?
        .execute(params![key, Status::Idle.as_str(), now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("session.created", row.id))?;
    if environment.body.is_self_hosted() {
        work_items::enqueue(connection, key, false)?;
    }
    let sent = match inputs {
        None => inputs::nothing_sent(key),
        Some((admit, actions)) => {
            let send = SendInputs { tenant, session: row.id, admit, actions, sender };
            inputs::send(connection, send)?
        }
    };
    let created = by_key(connection, key)?.ok_or(DbError::Fenced(key))?;
    Ok((created, sent))
}

fn update(
    connection: &Connection,
    tenant: TenantId,
    id: SessionId,
    change: ChangeSession,
) -> Result<(SessionRow, Vec<Event>), DbError> {
    let before = find(connection, tenant, id)?;
    let key = before.session.key;
    if before.session.archived_at.is_some() {
        return Err(Refusal::conflict("The session is archived and cannot be changed.").into());
    }
    let change = change(&before)?;
    let mut head = heads::find(connection, key)?;
    let metadata =
        serde_json::to_string(&change.metadata).map_err(|error| DbError::Corrupt(error.to_string()))?;
    let body = serde_json::to_string(&change.body).map_err(|error| DbError::Corrupt(error.to_string()))?;
    connection
        .prepare_cached(
            "UPDATE sessions SET title = ?2, metadata = ?3, body = ?4, sealed = ?5, updated_at = ?6 WHERE key = ?1",
        )?
        .execute(params![key, change.title, metadata, body, change.sealed, head.now.0])?;
    memory_stores::mount(connection, key, &change.body)?;
    let updated = change
        .updated
        .map(|body| NewEvent { body, ..NewEvent::new("session.updated", &serde_json::json!({})) });
    let events = heads::add(connection, &mut head, updated.into_iter().collect())?;
    heads::save(connection, &head)?;
    let after = by_key(connection, key)?.ok_or(DbError::Fenced(key))?;
    Ok((after, events))
}

/// Takes a session from the node that drives it, and drops what is left for it.
fn cut_off(connection: &Connection, key: i64) -> Result<Time, DbError> {
    let mut head = heads::find(connection, key)?;
    head.cut_off();
    heads::close_actions(connection, key, head.now)?;
    connection.prepare_cached("DELETE FROM inbox WHERE session_key = ?1")?.execute([key])?;
    heads::save(connection, &head)?;
    Ok(head.now)
}

fn archive(connection: &Connection, tenant: TenantId, id: SessionId) -> Result<SessionRow, DbError> {
    let row = find(connection, tenant, id)?;
    if row.session.archived_at.is_some() {
        return Ok(row);
    }
    let now = cut_off(connection, row.session.key)?;
    work_items::end(connection, row.session.key, false)?;
    connection
        .prepare_cached("UPDATE sessions SET archived_at = ?2, updated_at = ?2 WHERE key = ?1")?
        .execute(params![row.session.key, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("session.archived", id))?;
    by_key(connection, row.session.key)?.ok_or(DbError::Fenced(row.session.key))
}

fn delete(connection: &Connection, tenant: TenantId, id: SessionId) -> Result<i64, DbError> {
    let (key, _) = key(connection, tenant, id)?;
    let now = cut_off(connection, key)?;
    work_items::end(connection, key, true)?;
    connection
        .prepare_cached("UPDATE sessions SET deleted_at = ?2 WHERE key = ?1")?
        .execute(params![key, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("session.deleted", id))?;
    Ok(key)
}

/// Deletes sessions that rest since before a time and wait for nothing.
fn delete_stale(
    connection: &Connection,
    tenant: TenantId,
    before: Time,
    limit: usize,
) -> Result<Vec<(i64, SessionId)>, DbError> {
    let mut select = connection.prepare_cached(
        "SELECT s.key, s.id FROM sessions s JOIN heads h ON h.session_key = s.key
         WHERE s.tenant_id = ?1 AND s.deleted_at IS NULL AND h.last_at < ?2 AND h.status IN ('idle', 'terminated')
             AND h.lease_node IS NULL AND h.wake_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.session_key = s.key AND p.closed_at IS NULL)
         ORDER BY s.key LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select
        .query_map(params![tenant.0, before.0, limit], |row| Ok((row.get(0)?, SessionId(raw(row, 1)?))))?;
    let stale: Vec<(i64, SessionId)> = rows.collect::<Result<_, _>>()?;
    for (_, id) in &stale {
        delete(connection, tenant, *id)?;
    }
    Ok(stale)
}

fn list(connection: &Connection, query: &SessionQuery) -> Result<ListedPage<SessionRow>, DbError> {
    let mut conditions = vec![("s.deleted_at IS NULL".to_owned(), Vec::new())];
    if let Some(agent) = query.agent {
        conditions.push(("s.agent_id = ?".to_owned(), vec![Value::Blob(agent.0.to_vec())]));
    }
    if let Some(version) = query.agent_version {
        conditions.push(("s.agent_version = ?".to_owned(), vec![Value::Integer(stored(version))]));
    }
    if let Some(deployment) = query.deployment {
        conditions.push(("s.deployment_id = ?".to_owned(), vec![Value::Blob(deployment.0.to_vec())]));
    }
    if let Some(store) = query.memory_store {
        let sql =
            "EXISTS (SELECT 1 FROM session_memory_stores m WHERE m.session_key = s.key AND m.store_id = ?)";
        conditions.push((sql.to_owned(), vec![Value::Blob(store.0.to_vec())]));
    }
    if !query.statuses.is_empty() {
        let marks = vec!["?"; query.statuses.len()].join(", ");
        let words = query.statuses.iter().map(|status| Value::Text(status.as_str().to_owned())).collect();
        conditions.push((format!("h.status IN ({marks})"), words));
    }
    let list = List {
        select: SELECT,
        alias: "s",
        order: "key",
        find: "SELECT created_at, key FROM sessions WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, &query.list, read)
}

fn pending(connection: &Connection, tenant: TenantId, limit: usize) -> Result<Vec<PendingRow>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT s.id, p.event_id, p.kind, p.asked_at FROM pending p JOIN sessions s ON s.key = p.session_key
         WHERE p.tenant_id = ?1 AND p.closed_at IS NULL ORDER BY p.asked_at LIMIT ?2",
    )?;
    let rows = statement.query_map(params![tenant.0, stored(limit as u64)], |row| {
        Ok(PendingRow {
            session: SessionId(raw(row, 0)?),
            event: EventId(raw(row, 1)?),
            kind: row.get(2)?,
            asked_at: time(row, 3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl SessionsDb for SqliteDb {
    fn create_session(
        &self,
        new: CreateSession,
        done: Once<(SessionRow, Sent)>,
    ) -> DbFuture<'_, Done<(SessionRow, Sent)>> {
        self.write(move |connection| once(connection, done, || create(connection, new)))
    }

    fn session(&self, tenant: TenantId, id: SessionId) -> DbFuture<'_, SessionRow> {
        self.read(move |connection| find(connection, tenant, id))
    }

    fn list_sessions(&self, query: SessionQuery) -> DbFuture<'_, ListedPage<SessionRow>> {
        self.read(move |connection| list(connection, &query))
    }

    fn update_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        change: ChangeSession,
        done: Once<(SessionRow, Vec<Event>)>,
    ) -> DbFuture<'_, Done<(SessionRow, Vec<Event>)>> {
        self.write(move |connection| once(connection, done, || update(connection, tenant, id, change)))
    }

    fn archive_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        done: Once<SessionRow>,
    ) -> DbFuture<'_, Done<SessionRow>> {
        self.write(move |connection| once(connection, done, || archive(connection, tenant, id)))
    }

    fn delete_session(&self, tenant: TenantId, id: SessionId, done: Once<i64>) -> DbFuture<'_, Done<i64>> {
        self.write(move |connection| once(connection, done, || delete(connection, tenant, id)))
    }

    fn delete_stale(
        &self,
        tenant: TenantId,
        before: Time,
        limit: usize,
    ) -> DbFuture<'_, Vec<(i64, SessionId)>> {
        self.write(move |connection| delete_stale(connection, tenant, before, limit))
    }

    fn send_inputs(&self, send: SendInputs, done: Once<Sent>) -> DbFuture<'_, Done<Sent>> {
        self.write(move |connection| once(connection, done, || inputs::send(connection, send)))
    }

    fn cancel_session(&self, send: SendInputs, done: Once<(Sent, bool)>) -> DbFuture<'_, Done<(Sent, bool)>> {
        self.write(move |connection| once(connection, done, || inputs::cancel(connection, send)))
    }

    fn list_events(&self, query: EventQuery) -> DbFuture<'_, ListedPage<Event>> {
        self.read(move |connection| events::list(connection, &query))
    }

    fn stream_start(
        &self,
        tenant: TenantId,
        session: SessionId,
        last: Option<EventId>,
    ) -> DbFuture<'_, StreamStart> {
        self.read(move |connection| events::start(connection, tenant, session, last))
    }

    fn events_after(&self, key: i64, after: u64, limit: usize) -> DbFuture<'_, Option<Vec<Event>>> {
        self.read(move |connection| events::after(connection, key, after, limit))
    }

    fn pending(&self, tenant: TenantId, limit: usize) -> DbFuture<'_, Vec<PendingRow>> {
        self.read(move |connection| pending(connection, tenant, limit))
    }
}
