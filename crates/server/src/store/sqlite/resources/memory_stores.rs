//! Memory stores.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::deliveries;
use crate::model::happening::Happening;
use crate::model::ids::{MemoryStoreId, TenantId};
use crate::model::memory_store::{MemoryStore, MemoryStoreBody};
use crate::model::refusal::Refusal;
use crate::model::session::SessionBody;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ListQuery, ListedPage, MemoryStoreChange};
use crate::store::sqlite::columns::{json, number, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};

const SELECT: &str = "SELECT s.id, s.body, s.created_at, s.updated_at, s.archived_at,
    (SELECT count(*) FROM memories m WHERE m.store_id = s.id AND m.deleted_at IS NULL),
    (SELECT coalesce(sum(v.size), 0) FROM memories m JOIN memory_versions v ON v.id = m.version_id
     WHERE m.store_id = s.id AND m.deleted_at IS NULL)
    FROM memory_stores s";

fn read(row: &Row<'_>) -> rusqlite::Result<MemoryStore> {
    Ok(MemoryStore {
        id: MemoryStoreId(raw(row, 0)?),
        body: json(row, 1)?,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        archived_at: optional_time(row, 4)?,
        count: number(row, 5)?,
        size: number(row, 6)?,
    })
}

fn text(body: &MemoryStoreBody) -> Result<String, DbError> {
    serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))
}

pub(super) fn find(
    connection: &Connection,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let sql = format!("{SELECT} WHERE s.tenant_id = ?1 AND s.id = ?2 AND s.deleted_at IS NULL");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read).optional()?;
    found.ok_or_else(|| Refusal::not_found("memory store", id).into())
}

/// A store that can be changed.
pub(super) fn find_open(
    connection: &Connection,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let store = find(connection, tenant, id)?;
    if store.archived_at.is_some() {
        let message = format!("The memory store `{id}` is archived and cannot be changed.");
        return Err(Refusal::conflict(message).into());
    }
    Ok(store)
}

pub(super) fn create(
    connection: &Connection,
    tenant: TenantId,
    body: MemoryStoreBody,
) -> Result<MemoryStore, DbError> {
    let (id, now) = (MemoryStoreId::random(), Time::now());
    connection
        .prepare_cached(
            "INSERT INTO memory_stores (id, tenant_id, name, body, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        )?
        .execute(params![id.0, tenant.0, body.name, text(&body)?, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("memory_store.created", id))?;
    Ok(MemoryStore { id, body, count: 0, size: 0, created_at: now, updated_at: now, archived_at: None })
}

pub(super) fn update(
    connection: &Connection,
    tenant: TenantId,
    id: MemoryStoreId,
    change: MemoryStoreChange,
) -> Result<MemoryStore, DbError> {
    let before = find_open(connection, tenant, id)?;
    let body = change(&before)?;
    if body == before.body {
        return Ok(before);
    }
    let now = Time::now();
    connection
        .prepare_cached("UPDATE memory_stores SET body = ?2, name = ?3, updated_at = ?4 WHERE id = ?1")?
        .execute(params![id.0, text(&body)?, body.name, now.0])?;
    Ok(MemoryStore { body, updated_at: now, ..before })
}

pub(super) fn archive(
    connection: &Connection,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let store = find(connection, tenant, id)?;
    if store.archived_at.is_some() {
        return Ok(store);
    }
    let now = Time::now();
    connection
        .prepare_cached("UPDATE memory_stores SET archived_at = ?2, updated_at = ?2 WHERE id = ?1")?
        .execute(params![id.0, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("memory_store.archived", id))?;
    Ok(MemoryStore { archived_at: Some(now), updated_at: now, ..store })
}

/// Nothing of what was in the store stays.
pub(super) fn delete(connection: &Connection, tenant: TenantId, id: MemoryStoreId) -> Result<(), DbError> {
    find(connection, tenant, id)?;
    for sql in [
        "DELETE FROM memory_versions WHERE store_id = ?1",
        "DELETE FROM memories WHERE store_id = ?1",
        "DELETE FROM memory_stores WHERE id = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([id.0])?;
    }
    deliveries::notify(connection, tenant, &Happening::new("memory_store.deleted", id))
}

pub(super) fn list(
    connection: &Connection,
    query: &ListQuery,
    name: Option<String>,
) -> Result<ListedPage<MemoryStore>, DbError> {
    let mut conditions = vec![("s.deleted_at IS NULL".to_owned(), Vec::new())];
    conditions.extend(name.map(|name| ("s.name = ?".to_owned(), vec![Value::Text(name)])));
    let list = List {
        select: SELECT,
        alias: "s",
        order: "id",
        find: "SELECT created_at, id FROM memory_stores WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, query, read)
}

/// Keeps which stores a session has.
pub(in crate::store::sqlite) fn mount(
    connection: &Connection,
    session: i64,
    body: &SessionBody,
) -> Result<(), DbError> {
    connection
        .prepare_cached("DELETE FROM session_memory_stores WHERE session_key = ?1")?
        .execute([session])?;
    for store in body.resources.iter().filter_map(|resource| resource.memory()?.id()) {
        connection
            .prepare_cached("INSERT INTO session_memory_stores (session_key, store_id) VALUES (?1, ?2)")?
            .execute(params![session, store.0])?;
    }
    Ok(())
}
