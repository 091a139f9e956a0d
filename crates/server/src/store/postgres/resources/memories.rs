//! Memories and their versions. A change of a memory writes a version first, which the memory then names. Changes of a store wait for
//! each other.

use deadpool_postgres::{GenericClient, Object, Transaction};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use super::{files, memory_stores};
use crate::model::ids::{MemoryId, MemoryStoreId, MemoryVersionId, TenantId, hex};
use crate::model::memories::{Actor, Memory, MemoryUpdate, MemoryVersion, NewMemory, Operation, digest};
use crate::model::memory_path::above;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ListedPage, MemoryChange, MemoryVersionQuery};
use crate::store::postgres::columns::{
    json, number, optional_json, optional_time, raw, stored, text, time, uuid,
};
use crate::store::postgres::lists::{Conditions, List, page};

/// The most memories of a store.
const MOST_MEMORIES: u64 = 2_000;

const MEMORY: &str =
    "SELECT m.id, m.store_id, m.version_id, m.path, v.sha256, v.size, m.metadata::text, m.created_at,
    m.updated_at, v.content FROM memories m JOIN memory_versions v ON v.id = m.version_id";
const VERSION: &str =
    "SELECT v.id, v.memory_id, v.store_id, v.operation, v.path, v.content, v.sha256, v.created_by,
    v.created_at, v.redacted_at, v.redacted_by FROM memory_versions v";

fn content(row: &Row, column: usize) -> Result<Option<String>, DbError> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

fn read_memory(row: &Row, with_content: bool) -> Result<Memory, DbError> {
    Ok(Memory {
        id: MemoryId(raw(row, 0)?),
        store: MemoryStoreId(raw(row, 1)?),
        version: MemoryVersionId(raw(row, 2)?),
        path: row.try_get(3)?,
        sha256: hex(row.try_get(4)?),
        size: number(row, 5)?,
        metadata: json(row, 6)?,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        content: if with_content { content(row, 9)? } else { None },
    })
}

fn read_version(row: &Row) -> Result<MemoryVersion, DbError> {
    Ok(MemoryVersion {
        id: MemoryVersionId(raw(row, 0)?),
        memory: MemoryId(raw(row, 1)?),
        store: MemoryStoreId(raw(row, 2)?),
        operation: row.try_get(3)?,
        path: row.try_get(4)?,
        content: content(row, 5)?,
        sha256: row.try_get::<_, Option<&[u8]>>(6)?.map(hex),
        created_by: json(row, 7)?,
        created_at: time(row, 8)?,
        redacted_at: optional_time(row, 9)?,
        redacted_by: optional_json(row, 10)?,
    })
}

pub(super) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    store: MemoryStoreId,
    id: MemoryId,
) -> Result<Memory, DbError> {
    memory_stores::find(client, tenant, store).await?;
    let sql = format!("{MEMORY} WHERE m.store_id = $1 AND m.id = $2 AND m.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(store.0), &uuid(id.0)]).await?;
    read_memory(&row.ok_or_else(|| Refusal::not_found("memory", id))?, true)
}

pub(super) async fn list(
    connection: &Object,
    tenant: TenantId,
    store: MemoryStoreId,
    prefix: String,
    with_content: bool,
) -> Result<Vec<Memory>, DbError> {
    memory_stores::find(connection, tenant, store).await?;
    let sql = format!(
        "{MEMORY} WHERE m.store_id = $1 AND m.deleted_at IS NULL AND starts_with(m.path, $2) ORDER BY m.path COLLATE \"C\""
    );
    let statement = connection.prepare_cached(&sql).await?;
    let rows = connection.query(&statement, &[&uuid(store.0), &prefix]).await?;
    rows.iter().map(|row| read_memory(row, with_content)).collect()
}

/// A path is free when no other memory has it, or one above or below it.
async fn check_path(
    transaction: &Transaction<'_>,
    store: MemoryStoreId,
    path: &str,
    own: Option<MemoryId>,
) -> Result<(), DbError> {
    let sql = "SELECT id, path FROM memories WHERE store_id = $1 AND deleted_at IS NULL AND id <> $3
        AND (path = $2 OR starts_with(path, $2 || '/') OR path = ANY($4)) LIMIT 1";
    let statement = transaction.prepare_cached(sql).await?;
    let own = uuid(own.map_or([0; 16], |own| own.0));
    let folders: Vec<String> = above(path).map(str::to_owned).collect();
    let Some(row) = transaction.query_opt(&statement, &[&uuid(store.0), &path, &own, &folders]).await? else {
        return Ok(());
    };
    let (id, found): (MemoryId, String) = (MemoryId(raw(&row, 0)?), row.try_get(1)?);
    let message = format!("The path `{path}` is taken by the memory `{id}` at `{found}`.");
    Err(Refusal::Conflict { message, code: Some("memory_path_conflict_error") }.into())
}

/// What a version is made of.
struct NewVersion<'a> {
    memory: MemoryId,
    operation: Operation,
    path: &'a str,
    content: Option<&'a str>,
}

async fn insert_version(
    transaction: &Transaction<'_>,
    change: &MemoryChange,
    new: &NewVersion<'_>,
    now: Time,
) -> Result<MemoryVersionId, DbError> {
    let id = MemoryVersionId::random();
    let size = new.content.map_or(0, |content| content.len() as u64);
    if size > 0 {
        files::check_room(transaction, change.tenant, size, change.quota).await?;
    }
    let hash = new.content.map(|content| Sha256::digest(content).to_vec());
    let sql =
        "INSERT INTO memory_versions (id, memory_id, store_id, operation, path, content, sha256, created_by,
            created_at, tenant_id, size) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &uuid(id.0),
                &uuid(new.memory.0),
                &uuid(change.store.0),
                &new.operation.as_str(),
                &new.path,
                &new.content.map(str::as_bytes),
                &hash,
                &change.by.view().to_string(),
                &now.0,
                &uuid(change.tenant.0),
                &stored(size),
            ],
        )
        .await?;
    Ok(id)
}

pub(super) async fn create(
    transaction: &Transaction<'_>,
    change: MemoryChange,
    new: NewMemory,
) -> Result<Memory, DbError> {
    let store = memory_stores::lock_open(transaction, change.tenant, change.store).await?;
    if store.count >= MOST_MEMORIES {
        let message = format!("A memory store has at most {MOST_MEMORIES} memories. Delete some of them.");
        return Err(Refusal::conflict(message).into());
    }
    check_path(transaction, change.store, &new.path, None).await?;
    let (id, now) = (MemoryId::random(), Time::now());
    let content = Some(new.content.as_str());
    let version = NewVersion { memory: id, operation: Operation::Created, path: &new.path, content };
    let version = insert_version(transaction, &change, &version, now).await?;
    let sql = "INSERT INTO memories (id, store_id, path, version_id, created_at, updated_at, metadata)
        VALUES ($1, $2, $3, $4, $5, $5, $6::text::json)";
    let statement = transaction.prepare_cached(sql).await?;
    let (key, store) = (uuid(id.0), uuid(change.store.0));
    transaction
        .execute(&statement, &[&key, &store, &new.path, &uuid(version.0), &now.0, &text(&new.metadata)?])
        .await?;
    Ok(Memory {
        id,
        store: change.store,
        version,
        sha256: digest(&new.content),
        size: new.content.len() as u64,
        path: new.path,
        content: Some(new.content),
        metadata: new.metadata,
        created_at: now,
        updated_at: now,
    })
}

pub(super) async fn update(
    transaction: &Transaction<'_>,
    change: MemoryChange,
    id: MemoryId,
    update: MemoryUpdate,
) -> Result<Memory, DbError> {
    memory_stores::lock_open(transaction, change.tenant, change.store).await?;
    let before = find(transaction, change.tenant, change.store, id).await?;
    MemoryUpdate::check(update.expected.as_deref(), &before)?;
    let path = update.path.clone().unwrap_or_else(|| before.path.clone());
    let content = update.content.clone().or_else(|| before.content.clone()).unwrap_or_default();
    let metadata = update.metadata(&before.metadata)?;
    let is_same = path == before.path && Some(&content) == before.content.as_ref();
    if is_same && metadata == before.metadata {
        return Ok(before);
    }
    if path != before.path {
        check_path(transaction, change.store, &path, Some(id)).await?;
    }
    let now = Time::now();
    let version = if is_same {
        before.version
    } else {
        let content = Some(content.as_str());
        let version = NewVersion { memory: id, operation: Operation::Modified, path: &path, content };
        insert_version(transaction, &change, &version, now).await?
    };
    let sql = "UPDATE memories SET path = $2, version_id = $3, updated_at = $4, metadata = $5::text::json WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&uuid(id.0), &path, &uuid(version.0), &now.0, &text(&metadata)?])
        .await?;
    Ok(Memory {
        version,
        path,
        sha256: digest(&content),
        size: content.len() as u64,
        content: Some(content),
        metadata,
        updated_at: now,
        ..before
    })
}

pub(super) async fn delete(
    transaction: &Transaction<'_>,
    change: MemoryChange,
    id: MemoryId,
    expected: Option<String>,
) -> Result<(), DbError> {
    memory_stores::lock(transaction, change.tenant, change.store).await?;
    let before = find(transaction, change.tenant, change.store, id).await?;
    MemoryUpdate::check(expected.as_deref(), &before)?;
    let now = Time::now();
    let version = NewVersion { memory: id, operation: Operation::Deleted, path: &before.path, content: None };
    let version = insert_version(transaction, &change, &version, now).await?;
    let sql = "UPDATE memories SET deleted_at = $2, version_id = $3 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &now.0, &uuid(version.0)]).await?;
    Ok(())
}

pub(super) async fn find_version(
    client: &impl GenericClient,
    tenant: TenantId,
    store: MemoryStoreId,
    id: MemoryVersionId,
) -> Result<MemoryVersion, DbError> {
    memory_stores::find(client, tenant, store).await?;
    let statement = client.prepare_cached(&format!("{VERSION} WHERE v.store_id = $1 AND v.id = $2")).await?;
    let row = client.query_opt(&statement, &[&uuid(store.0), &uuid(id.0)]).await?;
    read_version(&row.ok_or_else(|| Refusal::not_found("memory version", id))?)
}

pub(super) async fn list_versions(
    connection: &Object,
    query: MemoryVersionQuery,
) -> Result<ListedPage<MemoryVersion>, DbError> {
    memory_stores::find(connection, query.list.tenant, query.store).await?;
    let mut conditions = Conditions::default();
    conditions.with("v.store_id = ?", vec![Box::new(uuid(query.store.0))]);
    if let Some(memory) = query.memory {
        conditions.with("v.memory_id = ?", vec![Box::new(uuid(memory.0))]);
    }
    if let Some(operation) = query.operation {
        conditions.with("v.operation = ?", vec![Box::new(operation.as_str())]);
    }
    for by in &query.by {
        conditions.with("v.created_by = ?", vec![Box::new(Actor::view(by).to_string())]);
    }
    let list = List { select: VERSION, alias: "v", order: "id", table: "memory_versions", conditions };
    page(connection, list, &query.list, read_version).await
}

pub(super) async fn redact(
    transaction: &Transaction<'_>,
    change: MemoryChange,
    id: MemoryVersionId,
) -> Result<MemoryVersion, DbError> {
    memory_stores::lock(transaction, change.tenant, change.store).await?;
    let version = find_version(transaction, change.tenant, change.store, id).await?;
    if version.redacted_at.is_some() {
        return Ok(version);
    }
    let sql = "SELECT FROM memories WHERE version_id = $1 AND deleted_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    if transaction.query_opt(&statement, &[&uuid(id.0)]).await?.is_some() {
        let message = format!(
            "`{id}` is the version that the memory `{}` has. Change or delete the memory, then redact it.",
            version.memory
        );
        return Err(Refusal::conflict(message).into());
    }
    let sql =
        "UPDATE memory_versions SET path = NULL, content = NULL, sha256 = NULL, size = 0, redacted_at = $2,
        redacted_by = $3 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    let (now, by) = (Time::now(), change.by.view().to_string());
    transaction.execute(&statement, &[&uuid(id.0), &now.0, &by]).await?;
    find_version(transaction, change.tenant, change.store, id).await
}
