//! Files.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::model::files::File;
use crate::model::ids::{FileId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    DbFuture, Done, FileQuery, FilesDb, FoundFile, ListedPage, NewFile, Once, UnusedFile,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, number, optional_raw, optional_time, raw, stored, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;
use crate::store::sqlite::sessions;

const SELECT: &str =
    "SELECT f.id, f.body, s.id, f.blob, f.created_at, f.expires_at, f.deleted_at, f.tenant_id
    FROM files f LEFT JOIN sessions s ON s.key = f.session_key";

fn read(row: &Row<'_>) -> rusqlite::Result<File> {
    Ok(File {
        id: FileId(raw(row, 0)?),
        body: json(row, 1)?,
        session: optional_raw(row, 2)?.map(SessionId),
        blob: row.get(3)?,
        created_at: time(row, 4)?,
        expires_at: optional_time(row, 5)?,
    })
}

/// Makes sure that a tenant has room for so many bytes more, in files, skills and memories.
pub(super) fn check_room(
    connection: &Connection,
    tenant: TenantId,
    more: u64,
    most: u64,
) -> Result<(), DbError> {
    let mut used = more;
    for sql in [
        "SELECT coalesce(sum(size), 0) FROM files WHERE tenant_id = ?1 AND deleted_at IS NULL",
        "SELECT coalesce(sum(size), 0) FROM skill_versions WHERE tenant_id = ?1 AND deleted_at IS NULL",
        "SELECT coalesce(sum(size), 0) FROM memory_versions WHERE tenant_id = ?1",
    ] {
        let sum = connection.prepare_cached(sql)?.query_row([tenant.0], |row| number(row, 0))?;
        used = used.saturating_add(sum);
    }
    if used > most {
        let problem = format!(
            "The files, skills and memories of this tenant would have more than {most} bytes together. Delete what is no longer needed."
        );
        return Err(Problem::whole(problem).with_code("storage_quota_exceeded").into());
    }
    Ok(())
}

fn create(connection: &Connection, new: NewFile) -> Result<File, DbError> {
    check_room(connection, new.tenant, new.body.size, new.quota)?;
    let key =
        new.session.map(|id| sessions::key(connection, new.tenant, id)).transpose()?.map(|(key, _)| key);
    let (now, blob) = (Time::now(), File::blob_name(new.id));
    let body = serde_json::to_string(&new.body).map_err(|error| DbError::Corrupt(error.to_string()))?;
    connection
        .prepare_cached(
            "INSERT INTO files (id, tenant_id, session_key, body, blob, created_at, expires_at, name, size)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            new.id.0,
            new.tenant.0,
            key,
            body,
            blob,
            now.0,
            new.expires_at.map(|time| time.0),
            new.body.filename,
            stored(new.body.size),
        ])?;
    Ok(File {
        id: new.id,
        body: new.body,
        session: new.session,
        blob,
        created_at: now,
        expires_at: new.expires_at,
    })
}

fn is_over(file: &File) -> bool {
    file.expires_at.is_some_and(|at| at <= Time::now())
}

fn find(connection: &Connection, tenant: TenantId, id: FileId) -> Result<FoundFile, DbError> {
    let sql = format!("{SELECT} WHERE f.id = ?2 AND f.tenant_id = ?1");
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![tenant.0, id.0], |row| Ok((read(row)?, optional_time(row, 6)?)))
        .optional()?;
    Ok(match found {
        None => FoundFile::Unknown,
        Some((file, _)) if is_over(&file) => FoundFile::Expired,
        Some((_, Some(_))) => FoundFile::Deleted,
        Some((file, None)) => FoundFile::There(file),
    })
}

fn linked(connection: &Connection, id: FileId) -> Result<Option<(TenantId, File)>, DbError> {
    let sql = format!("{SELECT} WHERE f.id = ?1 AND f.deleted_at IS NULL");
    let read = |row: &Row<'_>| Ok((TenantId(raw(row, 7)?), read(row)?));
    let found = connection.prepare_cached(&sql)?.query_row([id.0], read).optional()?;
    Ok(found.filter(|(_, file)| !is_over(file)))
}

fn list(connection: &Connection, query: &FileQuery) -> Result<ListedPage<File>, DbError> {
    let mut conditions = vec![
        ("f.deleted_at IS NULL".to_owned(), Vec::new()),
        ("(f.expires_at IS NULL OR f.expires_at > ?)".to_owned(), vec![Value::Integer(query.now.0)]),
    ];
    if let Some(name) = &query.name {
        conditions.push(("f.name = ?".to_owned(), vec![Value::Text(name.clone())]));
    }
    if let Some(session) = query.session {
        conditions.push(("s.id = ?".to_owned(), vec![Value::Blob(session.0.to_vec())]));
    }
    let list = List {
        select: SELECT,
        alias: "f",
        order: "id",
        find: "SELECT created_at, id FROM files WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, &query.list, read)
}

fn delete(connection: &Connection, tenant: TenantId, id: FileId) -> Result<(), DbError> {
    let deleted = connection
        .prepare_cached(
            "UPDATE files SET deleted_at = ?3 WHERE id = ?2 AND tenant_id = ?1 AND deleted_at IS NULL",
        )?
        .execute(params![tenant.0, id.0, Time::now().0])?;
    if deleted == 0 { Err(Refusal::not_found("file", id).into()) } else { Ok(()) }
}

fn unused(connection: &Connection, now: Time, limit: usize) -> Result<Vec<UnusedFile>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT tenant_id, id, blob FROM files WHERE blob <> '' AND (deleted_at IS NOT NULL OR expires_at <= ?1) LIMIT ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![now.0, limit], |row| {
        Ok(UnusedFile { tenant: TenantId(raw(row, 0)?), id: FileId(raw(row, 1)?), blob: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl FilesDb for SqliteDb {
    fn create_file(&self, new: NewFile, done: Once<File>) -> DbFuture<'_, Done<File>> {
        self.write(move |connection| once(connection, done, || create(connection, new)))
    }

    fn file(&self, tenant: TenantId, id: FileId) -> DbFuture<'_, FoundFile> {
        self.read(move |connection| find(connection, tenant, id))
    }

    fn linked_file(&self, id: FileId) -> DbFuture<'_, Option<(TenantId, File)>> {
        self.read(move |connection| linked(connection, id))
    }

    fn list_files(&self, query: FileQuery) -> DbFuture<'_, ListedPage<File>> {
        self.read(move |connection| list(connection, &query))
    }

    fn delete_file(&self, tenant: TenantId, id: FileId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || delete(connection, tenant, id)))
    }

    fn unused_files(&self, now: Time, limit: usize) -> DbFuture<'_, Vec<UnusedFile>> {
        self.read(move |connection| unused(connection, now, limit))
    }

    fn forget_content(&self, id: FileId) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE files SET blob = '', size = 0 WHERE id = ?1")?
                .execute([id.0])?;
            Ok(())
        })
    }
}
