//! Sessions as the front sees them.

pub(super) mod events;
mod inputs;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::columns::{
    json, number, optional_json, optional_raw, optional_time, raw, status, stored, text, time, uuid,
};
use super::lists::{Conditions, List, page};
use super::once::once;
use super::resources::{agents, deliveries, environments, memory_stores, runs, work_items};
use super::{NOW, PostgresDb, heads};
use crate::model::environment::Environment;
use crate::model::event::{Event, NewEvent};
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, DeploymentId, EnvironmentId, EventId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::run::Run;
use crate::model::session::{Session, SessionSecrets};
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::Head;
use crate::store::port::{
    AgentQuery, ChangeSession, CreateSession, DbFuture, Done, EventQuery, ListedPage, NewSessionRow, Once,
    PendingRow, SendInputs, Sent, SessionQuery, SessionRow, SessionsDb, StreamStart,
};

const SELECT: &str =
    "SELECT s.key, s.id, s.agent_id, s.agent_version, s.environment_id, s.title, s.metadata::text, s.body::text, s.sealed,
    s.created_at, s.updated_at, s.archived_at, h.status, h.usage::text, h.active_ms, h.running_since, h.last_at,
    h.stop_reason::text, s.deployment_id, h.outcomes::text
    FROM sessions s JOIN heads h ON h.session_key = s.key";

fn read(row: &Row) -> Result<SessionRow, DbError> {
    let session = Session {
        key: row.try_get(0)?,
        id: SessionId(raw(row, 1)?),
        agent_id: AgentId(raw(row, 2)?),
        agent_version: number(row, 3)?,
        environment_id: EnvironmentId(raw(row, 4)?),
        title: row.try_get(5)?,
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
    Ok(SessionRow { session, sealed: row.try_get(8)?, stop: optional_json(row, 17)? })
}

/// A session of a tenant.
pub(in crate::store::postgres) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: SessionId,
) -> Result<SessionRow, DbError> {
    let sql = format!("{SELECT} WHERE s.id = $2 AND s.tenant_id = $1 AND s.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("session", id))?)
}

/// A session of any tenant by its key.
pub(in crate::store::postgres) async fn by_key(
    client: &impl GenericClient,
    key: i64,
) -> Result<SessionRow, DbError> {
    let sql = format!("{SELECT} WHERE s.key = $1 AND s.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&key]).await?;
    read(&row.ok_or(DbError::Fenced(key))?)
}

/// What taking inputs depends on beside the head.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::postgres) struct SessionState {
    pub(in crate::store::postgres) key: i64,
    pub(in crate::store::postgres) is_archived: bool,
    pub(in crate::store::postgres) is_self_hosted: bool,
}

/// The state of a session of a tenant.
pub(in crate::store::postgres) async fn state(
    client: &impl GenericClient,
    tenant: TenantId,
    id: SessionId,
) -> Result<SessionState, DbError> {
    let sql = "SELECT key, archived_at IS NOT NULL, self_hosted FROM sessions
        WHERE id = $2 AND tenant_id = $1 AND deleted_at IS NULL";
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    let row = row.ok_or_else(|| Refusal::not_found("session", id))?;
    Ok(SessionState { key: row.try_get(0)?, is_archived: row.try_get(1)?, is_self_hosted: row.try_get(2)? })
}

/// The key of a session of a tenant, and whether it is archived.
pub(in crate::store::postgres) async fn key(
    client: &impl GenericClient,
    tenant: TenantId,
    id: SessionId,
) -> Result<(i64, bool), DbError> {
    state(client, tenant, id).await.map(|state| (state.key, state.is_archived))
}

async fn create(transaction: &Transaction<'_>, create: CreateSession) -> Result<(SessionRow, Sent), DbError> {
    let CreateSession { tenant, agent, agent_version, environment, make, inputs, sender, run } = create;
    let agent = agents::find(transaction, AgentQuery { tenant, id: agent, version: agent_version }).await?;
    if agent.archived_at.is_some() {
        let problem = format!("is `{}`, which is archived; use another agent", agent.id);
        return Err(Problem::field("agent", problem).with_code("agent_archived").into());
    }
    let environment = environments::hold(transaction, tenant, environment).await?;
    if environment.archived_at.is_some() {
        let problem = format!("is `{}`, which is archived; use another environment", environment.id);
        return Err(Problem::field("environment_id", problem).with_code("environment_archived").into());
    }
    let row = make(&agent, &environment)?;
    let agent = (agent.id, agent.version);
    let key = insert(transaction, tenant, &row, agent, &environment, run.as_ref()).await?;
    if let Some(run) = &run {
        runs::succeed(transaction, run, row.id).await?;
    }
    deliveries::notify(transaction, tenant, &Happening::new("session.created", row.id)).await?;
    let sent = match inputs {
        None => inputs::nothing_sent(key),
        Some((admit, actions)) => {
            let send = SendInputs { tenant, session: row.id, admit, actions, sender };
            inputs::send(transaction, send).await?
        }
    };
    Ok((by_key(transaction, key).await?, sent))
}

/// Inserts the rows of a session: its log, whose key is the session's, the session and its head.
async fn insert(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    row: &NewSessionRow,
    (agent, agent_version): (AgentId, u64),
    environment: &Environment,
    run: Option<&Run>,
) -> Result<i64, DbError> {
    let sql = format!("SELECT nextval(pg_get_serial_sequence('logs', 'log_key')), {NOW}");
    let statement = transaction.prepare_cached(&sql).await?;
    let made = transaction.query_one(&statement, &[]).await?;
    let (key, now): (i64, Time) = (made.try_get(0)?, time(&made, 1)?);
    let sql = "WITH l AS (INSERT INTO logs (log_key, session_key, created_at) OVERRIDING SYSTEM VALUE VALUES ($1, $1, $11)),
            h AS (INSERT INTO heads (session_key, status, last_at) VALUES ($1, $12, $11))
        INSERT INTO sessions (key, id, tenant_id, agent_id, agent_version, environment_id, title, metadata, body, sealed,
            created_at, updated_at, deployment_id, self_hosted)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::json, $9::text::json, $10, $11, $11, $13, $14)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &key,
                &uuid(row.id.0),
                &uuid(tenant.0),
                &uuid(agent.0),
                &stored(agent_version),
                &uuid(environment.id.0),
                &row.title,
                &text(&row.metadata)?,
                &text(&row.body)?,
                &row.sealed,
                &now.0,
                &Status::Idle.as_str(),
                &run.map(|run| uuid(run.deployment.0)),
                &environment.body.is_self_hosted(),
            ],
        )
        .await?;
    memory_stores::mount(transaction, key, &row.body).await?;
    if environment.body.is_self_hosted() {
        work_items::enqueue(transaction, key, false).await?;
    }
    Ok(key)
}

/// A session of a tenant, with its head locked: what is read of it stays until the transaction ends.
async fn lock(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: SessionId,
) -> Result<(SessionRow, Head), DbError> {
    let (key, _) = key(transaction, tenant, id).await?;
    let head = heads::lock(transaction, key).await?;
    Ok((find(transaction, tenant, id).await?, head))
}

async fn update(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: SessionId,
    change: ChangeSession,
) -> Result<(SessionRow, Vec<Event>), DbError> {
    let (before, mut head) = lock(transaction, tenant, id).await?;
    if before.session.archived_at.is_some() {
        return Err(Refusal::conflict("The session is archived and cannot be changed.").into());
    }
    let change = change(&before)?;
    let sql = "UPDATE sessions SET title = $2, metadata = $3::text::json, body = $4::text::json, sealed = $5,
        updated_at = $6 WHERE key = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &head.key,
                &change.title,
                &text(&change.metadata)?,
                &text(&change.body)?,
                &change.sealed,
                &head.now.0,
            ],
        )
        .await?;
    memory_stores::mount(transaction, head.key, &change.body).await?;
    let updated = change
        .updated
        .map(|body| NewEvent { body, ..NewEvent::new("session.updated", &serde_json::json!({})) });
    let events = heads::add(transaction, &mut head, updated.into_iter().collect()).await?;
    heads::save(transaction, &head).await?;
    Ok((by_key(transaction, head.key).await?, events))
}

/// Takes a session from the node that drives it, and drops what is left for it.
async fn cut_off(transaction: &Transaction<'_>, mut head: Head) -> Result<Time, DbError> {
    head.cut_off();
    heads::close_actions(transaction, head.key, head.now).await?;
    heads::drop_inbox(transaction, head.key).await?;
    heads::save(transaction, &head).await?;
    Ok(head.now)
}

async fn archive(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: SessionId,
) -> Result<SessionRow, DbError> {
    let (row, head) = lock(transaction, tenant, id).await?;
    if row.session.archived_at.is_some() {
        return Ok(row);
    }
    let now = cut_off(transaction, head).await?;
    work_items::end(transaction, row.session.key, false).await?;
    let sql = "UPDATE sessions SET archived_at = $2, updated_at = $2 WHERE key = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&row.session.key, &now.0]).await?;
    deliveries::notify(transaction, tenant, &Happening::new("session.archived", id)).await?;
    by_key(transaction, row.session.key).await
}

async fn delete(transaction: &Transaction<'_>, tenant: TenantId, id: SessionId) -> Result<i64, DbError> {
    let (row, head) = lock(transaction, tenant, id).await?;
    let now = cut_off(transaction, head).await?;
    work_items::end(transaction, row.session.key, true).await?;
    let statement = transaction.prepare_cached("UPDATE sessions SET deleted_at = $2 WHERE key = $1").await?;
    transaction.execute(&statement, &[&row.session.key, &now.0]).await?;
    deliveries::notify(transaction, tenant, &Happening::new("session.deleted", id)).await?;
    Ok(row.session.key)
}

/// Deletes sessions that rest since before a time and wait for nothing.
async fn delete_stale(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    before: Time,
    limit: usize,
) -> Result<Vec<(i64, SessionId)>, DbError> {
    let statement = transaction
        .prepare_cached(
            "SELECT s.key, s.id FROM sessions s JOIN heads h ON h.session_key = s.key
             WHERE s.tenant_id = $1 AND s.deleted_at IS NULL AND h.last_at < $2 AND h.status IN ('idle', 'terminated')
                 AND h.lease_node IS NULL AND h.wake_at IS NULL
                 AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.session_key = s.key AND p.closed_at IS NULL)
             ORDER BY s.key LIMIT $3 FOR UPDATE OF h SKIP LOCKED",
        )
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = transaction.query(&statement, &[&uuid(tenant.0), &before.0, &limit]).await?;
    let mut stale = Vec::new();
    for row in rows {
        let id = SessionId(raw(&row, 1)?);
        delete(transaction, tenant, id).await?;
        stale.push((row.try_get(0)?, id));
    }
    Ok(stale)
}

async fn list(connection: &Object, query: &SessionQuery) -> Result<ListedPage<SessionRow>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("s.deleted_at IS NULL");
    if let Some(agent) = query.agent {
        conditions.with("s.agent_id = ?", vec![Box::new(uuid(agent.0))]);
    }
    if let Some(version) = query.agent_version {
        conditions.with("s.agent_version = ?", vec![Box::new(stored(version))]);
    }
    if let Some(deployment) = query.deployment {
        conditions.with("s.deployment_id = ?", vec![Box::new(uuid(deployment.0))]);
    }
    if let Some(store) = query.memory_store {
        let sql =
            "EXISTS (SELECT FROM session_memory_stores m WHERE m.session_key = s.key AND m.store_id = ?)";
        conditions.with(sql, vec![Box::new(uuid(store.0))]);
    }
    if !query.statuses.is_empty() {
        let words: Vec<&'static str> = query.statuses.iter().map(|status| status.as_str()).collect();
        conditions.with("h.status = ANY(?)", vec![Box::new(words)]);
    }
    let list = List { select: SELECT, alias: "s", order: "key", table: "sessions", conditions };
    page(connection, list, &query.list, read).await
}

async fn pending(connection: &Object, tenant: TenantId, limit: usize) -> Result<Vec<PendingRow>, DbError> {
    let sql =
        "SELECT s.id, p.event_id, p.kind, p.asked_at FROM pending p JOIN sessions s ON s.key = p.session_key
        WHERE p.tenant_id = $1 AND p.closed_at IS NULL ORDER BY p.asked_at LIMIT $2";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&uuid(tenant.0), &stored(limit as u64)]).await?;
    let read = |row: &Row| {
        Ok(PendingRow {
            session: SessionId(raw(row, 0)?),
            event: EventId(raw(row, 1)?),
            kind: row.try_get(2)?,
            asked_at: time(row, 3)?,
        })
    };
    rows.iter().map(read).collect()
}

impl SessionsDb for PostgresDb {
    fn create_session(
        &self,
        new: CreateSession,
        done: Once<(SessionRow, Sent)>,
    ) -> DbFuture<'_, Done<(SessionRow, Sent)>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, new))))
    }

    fn session(&self, tenant: TenantId, id: SessionId) -> DbFuture<'_, SessionRow> {
        self.read(move |connection| Box::pin(find(connection, tenant, id)))
    }

    fn list_sessions(&self, query: SessionQuery) -> DbFuture<'_, ListedPage<SessionRow>> {
        self.read(move |connection| Box::pin(async move { list(connection, &query).await }))
    }

    fn update_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        change: ChangeSession,
        done: Once<(SessionRow, Vec<Event>)>,
    ) -> DbFuture<'_, Done<(SessionRow, Vec<Event>)>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update(transaction, tenant, id, change)))
        })
    }

    fn archive_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        done: Once<SessionRow>,
    ) -> DbFuture<'_, Done<SessionRow>> {
        self.write(move |transaction| Box::pin(once(transaction, done, archive(transaction, tenant, id))))
    }

    fn delete_session(&self, tenant: TenantId, id: SessionId, done: Once<i64>) -> DbFuture<'_, Done<i64>> {
        self.write(move |transaction| Box::pin(once(transaction, done, delete(transaction, tenant, id))))
    }

    fn delete_stale(
        &self,
        tenant: TenantId,
        before: Time,
        limit: usize,
    ) -> DbFuture<'_, Vec<(i64, SessionId)>> {
        self.write(move |transaction| Box::pin(delete_stale(transaction, tenant, before, limit)))
    }

    fn send_inputs(&self, send: SendInputs, done: Once<Sent>) -> DbFuture<'_, Done<Sent>> {
        self.write(move |transaction| Box::pin(once(transaction, done, inputs::send(transaction, send))))
    }

    fn cancel_session(&self, send: SendInputs, done: Once<(Sent, bool)>) -> DbFuture<'_, Done<(Sent, bool)>> {
        self.write(move |transaction| Box::pin(once(transaction, done, inputs::cancel(transaction, send))))
    }

    fn list_events(&self, query: EventQuery) -> DbFuture<'_, ListedPage<Event>> {
        self.read(move |connection| Box::pin(async move { events::list(connection, &query).await }))
    }

    fn stream_start(
        &self,
        tenant: TenantId,
        session: SessionId,
        last: Option<EventId>,
    ) -> DbFuture<'_, StreamStart> {
        self.read(move |connection| Box::pin(events::start(connection, tenant, session, last)))
    }

    fn events_after(&self, key: i64, after: u64, limit: usize) -> DbFuture<'_, Option<Vec<Event>>> {
        self.read(move |connection| Box::pin(events::after(connection, key, after, limit)))
    }

    fn pending(&self, tenant: TenantId, limit: usize) -> DbFuture<'_, Vec<PendingRow>> {
        self.read(move |connection| Box::pin(pending(connection, tenant, limit)))
    }
}
