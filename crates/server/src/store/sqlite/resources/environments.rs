//! Environments.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::deliveries;
use crate::model::environment::{Environment, EnvironmentBody};
use crate::model::happening::Happening;
use crate::model::ids::{EnvironmentId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{EnvironmentChange, ListQuery, ListedPage};
use crate::store::sqlite::columns::{json, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};

const SELECT: &str = "SELECT e.id, e.created_at, e.updated_at, e.archived_at, e.body FROM environments e";

fn read(row: &Row<'_>) -> rusqlite::Result<Environment> {
    Ok(Environment {
        id: EnvironmentId(raw(row, 0)?),
        created_at: time(row, 1)?,
        updated_at: time(row, 2)?,
        archived_at: optional_time(row, 3)?,
        body: json(row, 4)?,
    })
}

pub(in crate::store::sqlite) fn find(
    connection: &Connection,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<Environment, DbError> {
    let sql = format!("{SELECT} WHERE e.tenant_id = ?1 AND e.id = ?2 AND e.deleted_at IS NULL");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read).optional()?;
    found.ok_or_else(|| Refusal::not_found("environment", id).into())
}

pub(super) fn create(
    connection: &Connection,
    tenant: TenantId,
    body: EnvironmentBody,
) -> Result<Environment, DbError> {
    let (id, now) = (EnvironmentId::random(), Time::now());
    connection
        .prepare_cached("INSERT INTO environments VALUES (?1, ?2, ?3, ?4, ?5, ?5, NULL, NULL)")?
        .execute(params![id.0, tenant.0, body.name, text(&body)?, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("environment.created", id))?;
    Ok(Environment { id, created_at: now, updated_at: now, archived_at: None, body })
}

pub(super) fn update(
    connection: &Connection,
    tenant: TenantId,
    id: EnvironmentId,
    change: EnvironmentChange,
) -> Result<Environment, DbError> {
    let before = find(connection, tenant, id)?;
    let Some(body) = before.changed(change)? else { return Ok(before) };
    let now = Time::now();
    connection
        .prepare_cached("UPDATE environments SET name = ?2, body = ?3, updated_at = ?4 WHERE id = ?1")?
        .execute(params![id.0, body.name, text(&body)?, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("environment.updated", id))?;
    Ok(Environment { body, updated_at: now, ..before })
}

pub(super) fn archive(
    connection: &Connection,
    tenant: TenantId,
    id: EnvironmentId,
) -> Result<Environment, DbError> {
    let mut environment = find(connection, tenant, id)?;
    if environment.archived_at.is_none() {
        let now = Time::now();
        connection
            .prepare_cached("UPDATE environments SET archived_at = ?2, updated_at = ?2 WHERE id = ?1")?
            .execute(params![id.0, now.0])?;
        environment.archived_at = Some(now);
        deliveries::notify(connection, tenant, &Happening::new("environment.archived", id))?;
    }
    Ok(environment)
}

/// Sessions keep working in the environment that they were created with, so one that is in use stays.
pub(super) fn delete(connection: &Connection, tenant: TenantId, id: EnvironmentId) -> Result<(), DbError> {
    let environment = find(connection, tenant, id)?;
    let used: Option<i64> = connection
        .prepare_cached(
            "SELECT key FROM sessions WHERE environment_id = ?1 AND deleted_at IS NULL AND archived_at IS NULL LIMIT 1",
        )?
        .query_row([id.0], |row| row.get(0))
        .optional()?;
    if used.is_some() {
        return Err(environment.in_use().into());
    }
    connection
        .prepare_cached("UPDATE environments SET deleted_at = ?2 WHERE id = ?1")?
        .execute(params![id.0, Time::now().0])?;
    deliveries::notify(connection, tenant, &Happening::new("environment.deleted", id))
}

pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<ListedPage<Environment>, DbError> {
    let list = List {
        select: SELECT,
        alias: "e",
        order: "id",
        find: "SELECT created_at, id FROM environments WHERE tenant_id = ?1 AND id = ?2",
        conditions: vec![("e.deleted_at IS NULL".to_owned(), Vec::new())],
    };
    page(connection, list, query, read)
}

fn text(body: &EnvironmentBody) -> Result<String, DbError> {
    serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))
}
