//! Agents and their versions.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

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
use crate::store::postgres::PostgresDb;
use crate::store::postgres::columns::{json, number, optional_time, raw, stored, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;

const SELECT: &str = "SELECT a.id, v.version, a.created_at, v.created_at, a.archived_at, v.body::text
    FROM agents a JOIN agent_versions v ON v.agent_id = a.id";

fn read(row: &Row) -> Result<AgentVersion, DbError> {
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
pub(in crate::store::postgres) async fn find(
    client: &impl GenericClient,
    query: AgentQuery,
) -> Result<AgentVersion, DbError> {
    let sql =
        format!("{SELECT} WHERE a.tenant_id = $1 AND a.id = $2 AND v.version = coalesce($3, a.head_version)");
    let version = query.version.map(stored);
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(query.tenant.0), &uuid(query.id.0), &version]).await?;
    let row = row.ok_or_else(|| {
        let missing = match query.version {
            Some(version) => format!("{} (version {version})", query.id),
            None => query.id.to_string(),
        };
        Refusal::not_found("agent", missing)
    })?;
    read(&row)
}

/// The latest version of an agent, whose row no other transaction changes until this one ends.
async fn lock(transaction: &Transaction<'_>, query: AgentQuery) -> Result<AgentVersion, DbError> {
    let sql = "SELECT FROM agents WHERE tenant_id = $1 AND id = $2 FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.query(&statement, &[&uuid(query.tenant.0), &uuid(query.id.0)]).await?;
    find(transaction, query).await
}

async fn insert_version(
    transaction: &Transaction<'_>,
    id: AgentId,
    version: u64,
    body: &AgentBody,
    now: Time,
) -> Result<(), DbError> {
    let sql = "INSERT INTO agent_versions VALUES ($1, $2, $3, $4::text::json)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &stored(version), &now.0, &text(body)?]).await?;
    Ok(())
}

async fn create(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    body: AgentBody,
) -> Result<AgentVersion, DbError> {
    let (id, now) = (AgentId::random(), Time::now());
    let sql = "INSERT INTO agents VALUES ($1, $2, $3, 1, $4, $4, NULL)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &uuid(tenant.0), &body.name, &now.0]).await?;
    insert_version(transaction, id, 1, &body, now).await?;
    deliveries::notify(transaction, tenant, &Happening::new("agent.created", id)).await?;
    Ok(AgentVersion { id, version: 1, created_at: now, updated_at: now, archived_at: None, body })
}

async fn update(
    transaction: &Transaction<'_>,
    query: AgentQuery,
    expected: Option<u64>,
    change: AgentChange,
) -> Result<AgentVersion, DbError> {
    let before = lock(transaction, query).await?;
    let Some(body) = before.changed(expected, change)? else { return Ok(before) };
    let (version, now) = (before.version + 1, Time::now());
    insert_version(transaction, before.id, version, &body, now).await?;
    let sql = "UPDATE agents SET name = $2, head_version = $3, updated_at = $4 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(before.id.0), &body.name, &stored(version), &now.0]).await?;
    deliveries::notify(transaction, query.tenant, &Happening::new("agent.updated", before.id)).await?;
    Ok(AgentVersion { version, updated_at: now, body, ..before })
}

async fn archive(transaction: &Transaction<'_>, query: AgentQuery) -> Result<AgentVersion, DbError> {
    let mut agent = lock(transaction, query).await?;
    if agent.archived_at.is_none() {
        let now = Time::now();
        let sql = "UPDATE agents SET archived_at = $2, updated_at = $2 WHERE id = $1";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&uuid(agent.id.0), &now.0]).await?;
        agent.archived_at = Some(now);
        deliveries::notify(transaction, query.tenant, &Happening::new("agent.archived", agent.id)).await?;
    }
    Ok(agent)
}

async fn list(connection: &Object, query: &ListQuery) -> Result<ListedPage<AgentVersion>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("v.version = a.head_version");
    let list = List { select: SELECT, alias: "a", order: "id", table: "agents", conditions };
    page(connection, list, query, read).await
}

async fn versions(
    connection: &Object,
    query: AgentQuery,
    after: Option<u64>,
    limit: usize,
) -> Result<ListedPage<AgentVersion>, DbError> {
    find(connection, query).await?;
    let sql = format!("{SELECT} WHERE a.id = $1 AND v.version < $2 ORDER BY v.version DESC LIMIT $3");
    let before = after.map_or(i64::MAX, stored);
    let statement = connection.prepare_cached(&sql).await?;
    let rows = connection.query(&statement, &[&uuid(query.id.0), &before, &stored(limit as u64 + 1)]).await?;
    let mut items = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(ListedPage { items, has_more, has_before: after.is_some() })
}

impl ResourcesDb for PostgresDb {
    fn create_agent(
        &self,
        tenant: TenantId,
        body: AgentBody,
        done: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, tenant, body))))
    }

    fn agent(&self, query: AgentQuery) -> DbFuture<'_, AgentVersion> {
        self.read(move |connection| Box::pin(find(connection, query)))
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
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update(transaction, query, expected, change)))
        })
    }

    fn archive_agent(
        &self,
        tenant: TenantId,
        id: AgentId,
        done: Once<AgentVersion>,
    ) -> DbFuture<'_, Done<AgentVersion>> {
        let query = AgentQuery { tenant, id, version: None };
        self.write(move |transaction| Box::pin(once(transaction, done, archive(transaction, query))))
    }

    fn list_agents(&self, query: ListQuery) -> DbFuture<'_, ListedPage<AgentVersion>> {
        self.read(move |connection| Box::pin(async move { list(connection, &query).await }))
    }

    fn list_agent_versions(
        &self,
        tenant: TenantId,
        id: AgentId,
        after: Option<u64>,
        limit: usize,
    ) -> DbFuture<'_, ListedPage<AgentVersion>> {
        let query = AgentQuery { tenant, id, version: None };
        self.read(move |connection| Box::pin(versions(connection, query, after, limit)))
    }

    fn create_environment(
        &self,
        tenant: TenantId,
        body: EnvironmentBody,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, environments::create(transaction, tenant, body)))
        })
    }

    fn environment(&self, tenant: TenantId, id: EnvironmentId) -> DbFuture<'_, Environment> {
        self.read(move |connection| Box::pin(environments::find(connection, tenant, id)))
    }

    fn update_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        change: EnvironmentChange,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, environments::update(transaction, tenant, id, change)))
        })
    }

    fn archive_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        done: Once<Environment>,
    ) -> DbFuture<'_, Done<Environment>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, environments::archive(transaction, tenant, id)))
        })
    }

    fn delete_environment(
        &self,
        tenant: TenantId,
        id: EnvironmentId,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, environments::delete(transaction, tenant, id)))
        })
    }

    fn list_environments(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Environment>> {
        self.read(move |connection| Box::pin(async move { environments::list(connection, &query).await }))
    }
}
