//! Environments.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::deliveries;
use crate::model::environment::{Environment, EnvironmentBody};
use crate::model::happening::Happening;
use crate::model::ids::{EnvironmentId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{EnvironmentChange, ListQuery, ListedPage};
use crate::store::postgres::columns::{json, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};

const SELECT: &str =
    "SELECT e.id, e.created_at, e.updated_at, e.archived_at, e.body::text FROM environments e";

fn read(row: &Row) -> Result<Environment, DbError> {
    Ok(Environment {
        id: EnvironmentId(raw(row, 0)?),
        created_at: time(row, 1)?,
        updated_at: time(row, 2)?,
        archived_at: optional_time(row, 3)?,
        body: json(row, 4)?,
    })
}

async fn select(
    client: &impl GenericClient,
    tenant: TenantId,
    id: EnvironmentId,
    lock: &str,
) -> Result<Environment, DbError> {
    let sql = format!("{SELECT} WHERE e.tenant_id = $1 AND e.id = $2 AND e.deleted_at IS NULL {lock}");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("environment", id))?)
}

pub(in crate::store::postgres) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<Environment, DbError> {
    select(client, tenant, id, "").await
}

/// An environment that is neither archived nor deleted until the transaction ends.
pub(in crate::store::postgres) async fn hold(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<Environment, DbError> {
    select(transaction, tenant, id, "FOR SHARE").await
}

pub(super) async fn create(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    body: EnvironmentBody,
) -> Result<Environment, DbError> {
    let (id, now) = (EnvironmentId::random(), Time::now());
    let sql = "INSERT INTO environments VALUES ($1, $2, $3, $4::text::json, $5, $5, NULL, NULL)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&uuid(id.0), &uuid(tenant.0), &body.name, &text(&body)?, &now.0])
        .await?;
    deliveries::notify(transaction, tenant, &Happening::new("environment.created", id)).await?;
    Ok(Environment { id, created_at: now, updated_at: now, archived_at: None, body })
}

pub(super) async fn update(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: EnvironmentId,
    change: EnvironmentChange,
) -> Result<Environment, DbError> {
    let before = select(transaction, tenant, id, "FOR UPDATE").await?;
    let Some(body) = before.changed(change)? else { return Ok(before) };
    let now = Time::now();
    let sql = "UPDATE environments SET name = $2, body = $3::text::json, updated_at = $4 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &body.name, &text(&body)?, &now.0]).await?;
    deliveries::notify(transaction, tenant, &Happening::new("environment.updated", id)).await?;
    Ok(Environment { body, updated_at: now, ..before })
}

pub(super) async fn archive(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<Environment, DbError> {
    let mut environment = select(transaction, tenant, id, "FOR UPDATE").await?;
    if environment.archived_at.is_none() {
        let now = Time::now();
        let sql = "UPDATE environments SET archived_at = $2, updated_at = $2 WHERE id = $1";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&uuid(id.0), &now.0]).await?;
        environment.archived_at = Some(now);
        deliveries::notify(transaction, tenant, &Happening::new("environment.archived", id)).await?;
    }
    Ok(environment)
}

/// Sessions keep working in the environment that they were created with, so one that is in use stays.
pub(super) async fn delete(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<(), DbError> {
    let environment = select(transaction, tenant, id, "FOR UPDATE").await?;
    let sql = "SELECT FROM sessions WHERE environment_id = $1 AND deleted_at IS NULL AND archived_at IS NULL LIMIT 1";
    let statement = transaction.prepare_cached(sql).await?;
    if transaction.query_opt(&statement, &[&uuid(id.0)]).await?.is_some() {
        return Err(environment.in_use().into());
    }
    let statement =
        transaction.prepare_cached("UPDATE environments SET deleted_at = $2 WHERE id = $1").await?;
    transaction.execute(&statement, &[&uuid(id.0), &Time::now().0]).await?;
    deliveries::notify(transaction, tenant, &Happening::new("environment.deleted", id)).await
}

pub(super) async fn list(connection: &Object, query: &ListQuery) -> Result<ListedPage<Environment>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("e.deleted_at IS NULL");
    let list = List { select: SELECT, alias: "e", order: "id", table: "environments", conditions };
    page(connection, list, query, read).await
}
