//! Memory stores.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::deliveries;
use crate::model::happening::Happening;
use crate::model::ids::{MemoryStoreId, TenantId};
use crate::model::memory_store::{MemoryStore, MemoryStoreBody};
use crate::model::refusal::Refusal;
use crate::model::session::SessionBody;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ListQuery, ListedPage, MemoryStoreChange};
use crate::store::postgres::columns::{json, number, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};

const SELECT: &str = "SELECT s.id, s.body::text, s.created_at, s.updated_at, s.archived_at,
    (SELECT count(*) FROM memories m WHERE m.store_id = s.id AND m.deleted_at IS NULL),
    (SELECT coalesce(sum(v.size), 0) FROM memories m JOIN memory_versions v ON v.id = m.version_id
     WHERE m.store_id = s.id AND m.deleted_at IS NULL)::bigint
    FROM memory_stores s";

fn read(row: &Row) -> Result<MemoryStore, DbError> {
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

pub(super) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let sql = format!("{SELECT} WHERE s.tenant_id = $1 AND s.id = $2 AND s.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("memory store", id))?)
}

/// A store that no other transaction changes until this one ends; nor what is in it.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let sql = "SELECT FROM memory_stores WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.query(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    find(transaction, tenant, id).await
}

/// A store that can be changed, locked.
pub(super) async fn lock_open(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let store = lock(transaction, tenant, id).await?;
    if store.archived_at.is_some() {
        let message = format!("The memory store `{id}` is archived and cannot be changed.");
        return Err(Refusal::conflict(message).into());
    }
    Ok(store)
}

pub(super) async fn create(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    body: MemoryStoreBody,
) -> Result<MemoryStore, DbError> {
    let (id, now) = (MemoryStoreId::random(), Time::now());
    let sql = "INSERT INTO memory_stores (id, tenant_id, name, body, created_at, updated_at)
        VALUES ($1, $2, $3, $4::text::json, $5, $5)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&uuid(id.0), &uuid(tenant.0), &body.name, &text(&body)?, &now.0])
        .await?;
    deliveries::notify(transaction, tenant, &Happening::new("memory_store.created", id)).await?;
    Ok(MemoryStore { id, body, count: 0, size: 0, created_at: now, updated_at: now, archived_at: None })
}

pub(super) async fn update(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: MemoryStoreId,
    change: MemoryStoreChange,
) -> Result<MemoryStore, DbError> {
    let before = lock_open(transaction, tenant, id).await?;
    let body = change(&before)?;
    if body == before.body {
        return Ok(before);
    }
    let now = Time::now();
    let sql = "UPDATE memory_stores SET body = $2::text::json, name = $3, updated_at = $4 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &text(&body)?, &body.name, &now.0]).await?;
    Ok(MemoryStore { body, updated_at: now, ..before })
}

pub(super) async fn archive(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<MemoryStore, DbError> {
    let store = lock(transaction, tenant, id).await?;
    if store.archived_at.is_some() {
        return Ok(store);
    }
    let now = Time::now();
    let sql = "UPDATE memory_stores SET archived_at = $2, updated_at = $2 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &now.0]).await?;
    deliveries::notify(transaction, tenant, &Happening::new("memory_store.archived", id)).await?;
    Ok(MemoryStore { archived_at: Some(now), updated_at: now, ..store })
}

/// Nothing of what was in the store stays.
pub(super) async fn delete(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: MemoryStoreId,
) -> Result<(), DbError> {
    lock(transaction, tenant, id).await?;
    for sql in [
        "DELETE FROM memory_versions WHERE store_id = $1",
        "DELETE FROM memories WHERE store_id = $1",
        "DELETE FROM memory_stores WHERE id = $1",
    ] {
        transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    }
    deliveries::notify(transaction, tenant, &Happening::new("memory_store.deleted", id)).await
}

pub(super) async fn list(
    connection: &Object,
    query: ListQuery,
    name: Option<String>,
) -> Result<ListedPage<MemoryStore>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("s.deleted_at IS NULL");
    if let Some(name) = name {
        conditions.with("s.name = ?", vec![Box::new(name)]);
    }
    let list = List { select: SELECT, alias: "s", order: "id", table: "memory_stores", conditions };
    page(connection, list, &query, read).await
}

/// Keeps which stores a session has.
pub(in crate::store::postgres) async fn mount(
    transaction: &Transaction<'_>,
    session: i64,
    body: &SessionBody,
) -> Result<(), DbError> {
    let mounted = body.resources.iter().filter_map(|resource| resource.memory()?.id());
    let stores: Vec<uuid::Uuid> = mounted.map(|store| uuid(store.0)).collect();
    let sql = "DELETE FROM session_memory_stores WHERE session_key = $1 AND store_id <> ALL($2)";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&session, &stores]).await?;
    let sql = "INSERT INTO session_memory_stores SELECT $1, u.store FROM unnest($2::uuid[]) AS u (store)
        ON CONFLICT DO NOTHING";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&session, &stores]).await?;
    Ok(())
}
