//! Memories and their versions. A change of a memory writes a version first, which the memory then names.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{files, memory_stores};
use crate::model::ids::{MemoryId, MemoryStoreId, MemoryVersionId, TenantId, hex};
use crate::model::memories::{Actor, Memory, MemoryUpdate, MemoryVersion, NewMemory, Operation, digest};
use crate::model::memory_path::above;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ListedPage, MemoryChange, MemoryVersionQuery};
use crate::store::sqlite::columns::{json, number, optional_json, optional_time, raw, stored, time};
use crate::store::sqlite::lists::{List, page};

/// The most memories of a store.
const MOST_MEMORIES: u64 = 2_000;

const MEMORY: &str =
    "SELECT m.id, m.store_id, m.version_id, m.path, v.sha256, v.size, m.metadata, m.created_at,
    m.updated_at, v.content FROM memories m JOIN memory_versions v ON v.id = m.version_id";
const VERSION: &str =
    "SELECT v.id, v.memory_id, v.store_id, v.operation, v.path, v.content, v.sha256, v.created_by,
    v.created_at, v.redacted_at, v.redacted_by FROM memory_versions v";

fn content(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn read_memory(row: &Row<'_>, with_content: bool) -> rusqlite::Result<Memory> {
    Ok(Memory {
        id: MemoryId(raw(row, 0)?),
        store: MemoryStoreId(raw(row, 1)?),
        version: MemoryVersionId(raw(row, 2)?),
        path: row.get(3)?,
        sha256: hex(&row.get::<_, Vec<u8>>(4)?),
        size: number(row, 5)?,
        metadata: json(row, 6)?,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        content: if with_content { content(row, 9)? } else { None },
    })
}

fn read_version(row: &Row<'_>) -> rusqlite::Result<MemoryVersion> {
    Ok(MemoryVersion {
        id: MemoryVersionId(raw(row, 0)?),
        memory: MemoryId(raw(row, 1)?),
        store: MemoryStoreId(raw(row, 2)?),
        operation: row.get(3)?,
        path: row.get(4)?,
        content: content(row, 5)?,
        sha256: row.get::<_, Option<Vec<u8>>>(6)?.map(|hash| hex(&hash)),
        created_by: json(row, 7)?,
        created_at: time(row, 8)?,
        redacted_at: optional_time(row, 9)?,
        redacted_by: optional_json(row, 10)?,
    })
}

pub(super) fn find(
    connection: &Connection,
    tenant: TenantId,
    store: MemoryStoreId,
    id: MemoryId,
) -> Result<Memory, DbError> {
    memory_stores::find(connection, tenant, store)?;
    let sql = format!("{MEMORY} WHERE m.store_id = ?1 AND m.id = ?2 AND m.deleted_at IS NULL");
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![store.0, id.0], |row| read_memory(row, true))
        .optional()?;
    found.ok_or_else(|| Refusal::not_found("memory", id).into())
}

pub(super) fn list(
    connection: &Connection,
    tenant: TenantId,
    store: MemoryStoreId,
    prefix: &str,
    with_content: bool,
) -> Result<Vec<Memory>, DbError> {
    memory_stores::find(connection, tenant, store)?;
    let sql = format!(
        "{MEMORY} WHERE m.store_id = ?1 AND m.deleted_at IS NULL AND substr(m.path, 1, length(?2)) = ?2 ORDER BY m.path"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![store.0, prefix], |row| read_memory(row, with_content))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A path is free when no other memory has it, or one above or below it.
fn check_path(
    connection: &Connection,
    store: MemoryStoreId,
    path: &str,
    own: Option<MemoryId>,
) -> Result<(), DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, path FROM memories WHERE store_id = ?1 AND deleted_at IS NULL AND id <> ?3
         AND (path = ?2 OR substr(path, 1, length(?2) + 1) = ?2 || '/') LIMIT 1",
    )?;
    let own = own.map_or([0; 16], |own| own.0);
    let mut find = |path: &str, below: bool| {
        let found = statement
            .query_row(params![store.0, path, own], |row| {
                Ok((MemoryId(raw(row, 0)?), row.get::<_, String>(1)?))
            })
            .optional()?;
        Ok::<_, DbError>(found.filter(|(_, found)| below || found == path))
    };
    let mut taken = find(path, true)?;
    for folder in above(path) {
        taken = match taken {
            Some(taken) => Some(taken),
            None => find(folder, false)?,
        };
    }
    match taken {
        None => Ok(()),
        Some((id, found)) => {
            let message = format!("The path `{path}` is taken by the memory `{id}` at `{found}`.");
            Err(Refusal::Conflict { message, code: Some("memory_path_conflict_error") }.into())
        }
    }
}

/// What a version is made of.
struct NewVersion<'a> {
    memory: MemoryId,
    operation: Operation,
    path: &'a str,
    content: Option<&'a str>,
}

fn insert_version(
    connection: &Connection,
    change: &MemoryChange,
    new: &NewVersion<'_>,
    now: Time,
) -> Result<MemoryVersionId, DbError> {
    let id = MemoryVersionId::random();
    let size = new.content.map_or(0, |content| content.len() as u64);
    if size > 0 {
        files::check_room(connection, change.tenant, size, change.quota)?;
    }
    let hash = new.content.map(|content| <sha2::Sha256 as sha2::Digest>::digest(content).to_vec());
    connection
        .prepare_cached(
            "INSERT INTO memory_versions (id, memory_id, store_id, operation, path, content, sha256, created_by, created_at,
                tenant_id, size) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            id.0,
            new.memory.0,
            change.store.0,
            new.operation.as_str(),
            new.path,
            new.content.map(str::as_bytes),
            hash,
            change.by.view().to_string(),
            now.0,
            change.tenant.0,
            stored(size),
        ])?;
    Ok(id)
}

fn text(metadata: &crate::model::metadata::Metadata) -> Result<String, DbError> {
    serde_json::to_string(metadata).map_err(|error| DbError::Corrupt(error.to_string()))
}

pub(super) fn create(
    connection: &Connection,
    change: &MemoryChange,
    new: NewMemory,
) -> Result<Memory, DbError> {
    let store = memory_stores::find_open(connection, change.tenant, change.store)?;
    if store.count >= MOST_MEMORIES {
        let message = format!("A memory store has at most {MOST_MEMORIES} memories. Delete some of them.");
        return Err(Refusal::conflict(message).into());
    }
    check_path(connection, change.store, &new.path, None)?;
    let (id, now) = (MemoryId::random(), Time::now());
    let content = Some(new.content.as_str());
    let version = NewVersion { memory: id, operation: Operation::Created, path: &new.path, content };
    let version = insert_version(connection, change, &version, now)?;
    connection
        .prepare_cached(
            "INSERT INTO memories (id, store_id, path, version_id, created_at, updated_at, metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
        )?
        .execute(params![id.0, change.store.0, new.path, version.0, now.0, text(&new.metadata)?])?;
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

pub(super) fn update(
    connection: &Connection,
    change: &MemoryChange,
    id: MemoryId,
    update: &MemoryUpdate,
) -> Result<Memory, DbError> {
    memory_stores::find_open(connection, change.tenant, change.store)?;
    let before = find(connection, change.tenant, change.store, id)?;
    MemoryUpdate::check(update.expected.as_deref(), &before)?;
    let path = update.path.clone().unwrap_or_else(|| before.path.clone());
    let content = update.content.clone().or_else(|| before.content.clone()).unwrap_or_default();
    let metadata = update.metadata(&before.metadata)?;
    let is_same = path == before.path && Some(&content) == before.content.as_ref();
    if is_same && metadata == before.metadata {
        return Ok(before);
    }
    if path != before.path {
        check_path(connection, change.store, &path, Some(id))?;
    }
    let now = Time::now();
    let version = if is_same {
        before.version
    } else {
        let content = Some(content.as_str());
        let version = NewVersion { memory: id, operation: Operation::Modified, path: &path, content };
        insert_version(connection, change, &version, now)?
    };
    connection
        .prepare_cached(
            "UPDATE memories SET path = ?2, version_id = ?3, updated_at = ?4, metadata = ?5 WHERE id = ?1",
        )?
        .execute(params![id.0, path, version.0, now.0, text(&metadata)?])?;
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

pub(super) fn delete(
    connection: &Connection,
    change: &MemoryChange,
    id: MemoryId,
    expected: Option<&str>,
) -> Result<(), DbError> {
    let before = find(connection, change.tenant, change.store, id)?;
    MemoryUpdate::check(expected, &before)?;
    let now = Time::now();
    let version = NewVersion { memory: id, operation: Operation::Deleted, path: &before.path, content: None };
    let version = insert_version(connection, change, &version, now)?;
    connection
        .prepare_cached("UPDATE memories SET deleted_at = ?2, version_id = ?3 WHERE id = ?1")?
        .execute(params![id.0, now.0, version.0])?;
    Ok(())
}

pub(super) fn find_version(
    connection: &Connection,
    tenant: TenantId,
    store: MemoryStoreId,
    id: MemoryVersionId,
) -> Result<MemoryVersion, DbError> {
    memory_stores::find(connection, tenant, store)?;
    let sql = format!("{VERSION} WHERE v.store_id = ?1 AND v.id = ?2");
    let found =
        connection.prepare_cached(&sql)?.query_row(params![store.0, id.0], read_version).optional()?;
    found.ok_or_else(|| Refusal::not_found("memory version", id).into())
}

pub(super) fn list_versions(
    connection: &Connection,
    query: &MemoryVersionQuery,
) -> Result<ListedPage<MemoryVersion>, DbError> {
    memory_stores::find(connection, query.list.tenant, query.store)?;
    let mut conditions = vec![("v.store_id = ?".to_owned(), vec![Value::Blob(query.store.0.to_vec())])];
    if let Some(memory) = query.memory {
        conditions.push(("v.memory_id = ?".to_owned(), vec![Value::Blob(memory.0.to_vec())]));
    }
    if let Some(operation) = query.operation {
        conditions.push(("v.operation = ?".to_owned(), vec![Value::Text(operation.as_str().to_owned())]));
    }
    for by in &query.by {
        conditions.push(("v.created_by = ?".to_owned(), vec![Value::Text(Actor::view(by).to_string())]));
    }
    let list = List {
        select: VERSION,
        alias: "v",
        order: "id",
        find: "SELECT created_at, id FROM memory_versions WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, &query.list, read_version)
}

pub(super) fn redact(
    connection: &Connection,
    change: &MemoryChange,
    id: MemoryVersionId,
) -> Result<MemoryVersion, DbError> {
    let version = find_version(connection, change.tenant, change.store, id)?;
    if version.redacted_at.is_some() {
        return Ok(version);
    }
    let current: Option<i64> = connection
        .prepare_cached("SELECT 1 FROM memories WHERE version_id = ?1 AND deleted_at IS NULL")?
        .query_row([id.0], |row| row.get(0))
        .optional()?;
    if current.is_some() {
        let message = format!(
            "`{id}` is the version that the memory `{}` has. Change or delete the memory, then redact it.",
            version.memory
        );
        return Err(Refusal::conflict(message).into());
    }
    let now = Time::now();
    connection
        .prepare_cached(
            "UPDATE memory_versions SET path = NULL, content = NULL, sha256 = NULL, size = 0, redacted_at = ?2,
                redacted_by = ?3 WHERE id = ?1",
        )?
        .execute(params![id.0, now.0, change.by.view().to_string()])?;
    find_version(connection, change.tenant, change.store, id)
}
