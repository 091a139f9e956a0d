//! Agents and their versions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{deliveries, environments};
use crate::model::agent::AgentBody;
use crate::model::agent_view::AgentVersion;
use crate::model::environment::{Environment, EnvironmentBody};
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, EnvironmentId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    AgentChange, AgentQuery, DbFuture, Done, EnvironmentChange, ListQuery, ListedPage, Once, ResourcesDb,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, number, optional_time, raw, stored, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

const SELECT: &str = "SELECT a.id, v.version, a.created_at, v.created_at, a.archived_at, v.body
    FROM agents a JOIN agent_versions v ON v.agent_id = a.id";

fn read(row: &Row<'_>) -> rusqlite::Result<AgentVersion> {
    Ok(AgentVersion {
        id: AgentId(raw(row, 0)?),
        version: number(row, 1)?,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        archived_at: optional_time(row, 4)?,
        body: json(row, 5)?,
    })
}

/// A version of an agent.
pub(in crate::store::sqlite) fn find(
    connection: &Connection,
    query: AgentQuery,
) -> Result<AgentVersion, DbError> {
    let sql =
        format!("{SELECT} WHERE a.tenant_id = ?1 AND a.id = ?2 AND v.version = coalesce(?3, a.head_version)");
    let version = query.version.map(stored);
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![query.tenant.0, query.id.0, version], read)
        .optional()?;
    found.ok_or_else(|| {
        let missing = match query.version {
            Some(version) => format!("{} (version {version})", query.id),
            None => query.id.to_string(),
        };
        Refusal::not_found("agent", missing).into()
    })
}

fn insert_version(
    connection: &Connection,
    id: AgentId,
    version: u64,
    body: &AgentBody,
    now: Time,
) -> Result<(), DbError> {
    let text = serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))?;
    connection.prepare_cached("INSERT INTO agent_versions VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        id.0,
        stored(version),
        now.0,
        text
    ])?;
    Ok(())
}

fn create(connection: &Connection, tenant: TenantId, body: AgentBody) -> Result<AgentVersion, DbError> {
    let (id, now) = (AgentId::random(), Time::now());
    connection
        .prepare_cached("INSERT INTO agents VALUES (?1, ?2, ?3, 1, ?4, ?4, NULL)")?
        .execute(params![id.0, tenant.0, body.name, now.0])?;
    insert_version(connection, id, 1, &body, now)?;
    deliveries::notify(connection, tenant, &Happening::new("agent.created", id))?;
    Ok(AgentVersion { id, version: 1, created_at: now, updated_at: now, archived_at: None, body })
}

fn update(
    connection: &Connection,
    query: AgentQuery,
    expected: Option<u64>,
    change: AgentChange,
) -> Result<AgentVersion, DbError> {
    let before = find(connection, query)?;
    let Some(body) = before.changed(expected, change)? else { return Ok(before) };
    let (version, now) = (before.version + 1, Time::now());
    insert_version(connection, before.id, version, &body, now)?;
    connection
        .prepare_cached("UPDATE agents SET name = ?2, head_version = ?3, updated_at = ?4 WHERE id = ?1")?
        .execute(params![before.id.0, body.name, stored(version), now.0])?;
    deliveries::notify(connection, query.tenant, &Happening::new("agent.updated", before.id))?;
    Ok(AgentVersion { version, updated_at: now, body, ..before })
}

fn archive(connection: &Connection, query: AgentQuery) -> Result<AgentVersion, DbError> {
    let mut agent = find(connection, query)?;
    if agent.archived_at.is_none() {
        let now = Time::now();
        connection
            .prepare_cached("UPDATE agents SET archived_at = ?2, updated_at = ?2 WHERE id = ?1")?
            .execute(params![agent.id.0, now.0])?;
        agent.archived_at = Some(now);
        deliveries::notify(connection, query.tenant, &Happening::new("agent.archived", agent.id))?;
    }
    Ok(agent)
}

fn list(connection: &Connection, query: &ListQuery) -> Result<ListedPage<AgentVersion>, DbError> {
    let list = List {
        select: SELECT,
        alias: "a",
        order: "id",
        find: "SELECT created_at, id FROM agents WHERE tenant_id = ?1 AND id = ?2",
        conditions: vec![("v.version = a.head_version".to_owned(), Vec::new())],
    };
    page(connection, list, query, read)
}

fn versions(
    connection: &Connection,
    query: AgentQuery,
    after: Option<u64>,
    limit: usize,
) -> Result<ListedPage<AgentVersion>, DbError> {
    find(connection, query)?;
    let sql = format!("{SELECT} WHERE a.id = ?1 AND v.version < ?2 ORDER BY v.version DESC LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let before = after.map_or(i64::MAX, stored);
    let rows = statement.query_map(params![query.id.0, before, stored(limit as u64 + 1)], read)?;
    let mut items = rows.collect::<Result<Vec<_>, _>>()?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(ListedPage { items, has_more, has_before: after.is_some() })
}

impl ResourcesDb for SqliteDb {
    fn create_agent(
        &self,
        tenant: TenantId,
        body: AgentBody,
        done: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>> {
        self.write(move |connection| once(connection, done, || create(connection, tenant, body)))
    }

    fn agent(&self, query: AgentQuery) -> DbFuture<'_, AgentVersion> {
        self.read(move |connection| find(connection, query))
    }

    fn update_agent(
        &self,
        tenant: TenantId,
        id: AgentId,
        expected: Option<u64>,
        change: AgentChange,
        done: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>> {
        let query = AgentQuery { tenant, id, version: None };
        self.write(move |connection| once(connection, done, || update(connection, query, expected, change)))
    }

    fn archive_agent(
        &self,
        tenant: TenantId,
        id: AgentId,
        done: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>> {
        let query = AgentQuery { tenant, id, version: None };
        self.write(move |connection| once(connection, done, || archive(connection, query)))
    }

    fn list_agents(&self, query: ListQuery) -> DbFuture<'_, ListedPage<AgentVersion>> {
        self.read(move |connection| list(connection, &query))
    }

    fn list_agent_versions(
        &self,
        tenant: TenantId,
        id: AgentId,
        after: Option<u64>,
        limit: usize,
    ) -> DbFuture<'_, ListedPage<AgentVersion>> {
        let query = AgentQuery { tenant, id, version: None };
        self.read(move |connection| versions(connection, query, after, limit))
    }

    fn create_environment(
        &self,
        tenant: TenantId,
        body: EnvironmentBody,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |connection| {
            once(connection, done, || environments::create(connection, tenant, body))
        })
    }

    fn environment(&self, tenant: TenantId, id: EnvironmentId) -> DbFuture<'_, Environment> {
        self.read(move |connection| environments::find(connection, tenant, id))
    }

    fn update_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        change: EnvironmentChange,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |connection| {
            once(connection, done, || environments::update(connection, tenant, id, change))
        })
    }

    fn archive_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |connection| once(connection, done, || environments::archive(connection, tenant, id)))
    }

    fn delete_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || environments::delete(connection, tenant, id)))
    }

    fn list_environments(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Environment>> {
        self.read(move |connection| environments::list(connection, &query))
    }
}
