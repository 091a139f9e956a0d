//! Files.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use crate::model::files::File;
use crate::model::ids::{FileId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    DbFuture, Done, FileQuery, FilesDb, FoundFile, ListedPage, NewFile, Once, UnusedFile,
};
use crate::store::postgres::columns::{
    json, number, optional_raw, optional_time, raw, stored, text, time, uuid,
};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;
use crate::store::postgres::{PostgresDb, sessions};

const SELECT: &str =
    "SELECT f.id, f.body::text, s.id, f.blob, f.created_at, f.expires_at, f.deleted_at, f.tenant_id
    FROM files f LEFT JOIN sessions s ON s.key = f.session_key";

fn read(row: &Row) -> Result<File, DbError> {
    Ok(File {
        id: FileId(raw(row, 0)?),
        body: json(row, 1)?,
        session: optional_raw(row, 2)?.map(SessionId),
        blob: row.try_get(3)?,
        created_at: time(row, 4)?,
        expires_at: optional_time(row, 5)?,
    })
}

/// Makes sure that a tenant has room for so many bytes more, in files, skills and memories. Of two that ask at the same time, the second waits for
/// the end of the first one's transaction.
pub(super) async fn check_room(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    more: u64,
    most: u64,
) -> Result<(), DbError> {
    let lock = transaction.prepare_cached("SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE").await?;
    transaction.query(&lock, &[&uuid(tenant.0)]).await?;
    let sql = "SELECT (SELECT coalesce(sum(size), 0) FROM files WHERE tenant_id = $1 AND deleted_at IS NULL)::bigint,
        (SELECT coalesce(sum(size), 0) FROM skill_versions WHERE tenant_id = $1 AND deleted_at IS NULL)::bigint,
        (SELECT coalesce(sum(size), 0) FROM memory_versions WHERE tenant_id = $1)::bigint";
    let statement = transaction.prepare_cached(sql).await?;
    let row = transaction.query_one(&statement, &[&uuid(tenant.0)]).await?;
    let mut used = more;
    for column in 0..3 {
        used = used.saturating_add(number(&row, column)?);
    }
    if used > most {
        let problem = format!(
            "The files, skills and memories of this tenant would have more than {most} bytes together. Delete what is no longer needed."
        );
        return Err(Problem::whole(problem).with_code("storage_quota_exceeded").into());
    }
    Ok(())
}

async fn create(transaction: &Transaction<'_>, new: NewFile) -> Result<File, DbError> {
    check_room(transaction, new.tenant, new.body.size, new.quota).await?;
    let key = match new.session {
        Some(id) => Some(sessions::key(transaction, new.tenant, id).await?.0),
        None => None,
    };
    let (now, blob) = (Time::now(), File::blob_name(new.id));
    let sql = "INSERT INTO files (id, tenant_id, session_key, body, blob, created_at, expires_at, name, size)
        VALUES ($1, $2, $3, $4::text::json, $5, $6, $7, $8, $9)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &uuid(new.id.0),
                &uuid(new.tenant.0),
                &key,
                &text(&new.body)?,
                &blob,
                &now.0,
                &new.expires_at.map(|time| time.0),
                &new.body.filename,
                &stored(new.body.size),
            ],
        )
        .await?;
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

async fn find(client: &impl GenericClient, tenant: TenantId, id: FileId) -> Result<FoundFile, DbError> {
    let statement = client.prepare_cached(&format!("{SELECT} WHERE f.id = $2 AND f.tenant_id = $1")).await?;
    let found = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    let Some(row) = found else { return Ok(FoundFile::Unknown) };
    let file = read(&row)?;
    Ok(match optional_time(&row, 6)? {
        _ if is_over(&file) => FoundFile::Expired,
        Some(_) => FoundFile::Deleted,
        None => FoundFile::There(file),
    })
}

async fn linked(connection: &Object, id: FileId) -> Result<Option<(TenantId, File)>, DbError> {
    let sql = format!("{SELECT} WHERE f.id = $1 AND f.deleted_at IS NULL");
    let statement = connection.prepare_cached(&sql).await?;
    let Some(row) = connection.query_opt(&statement, &[&uuid(id.0)]).await? else { return Ok(None) };
    let found = (TenantId(raw(&row, 7)?), read(&row)?);
    Ok(Some(found).filter(|(_, file)| !is_over(file)))
}

async fn list(connection: &Object, query: &FileQuery) -> Result<ListedPage<File>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("f.deleted_at IS NULL");
    conditions.with("(f.expires_at IS NULL OR f.expires_at > ?)", vec![Box::new(query.now.0)]);
    if let Some(name) = &query.name {
        conditions.with("f.name = ?", vec![Box::new(name.clone())]);
    }
    if let Some(session) = query.session {
        conditions.with("s.id = ?", vec![Box::new(uuid(session.0))]);
    }
    let list = List { select: SELECT, alias: "f", order: "id", table: "files", conditions };
    page(connection, list, &query.list, read).await
}

async fn delete(transaction: &Transaction<'_>, tenant: TenantId, id: FileId) -> Result<(), DbError> {
    let sql = "UPDATE files SET deleted_at = $3 WHERE id = $2 AND tenant_id = $1 AND deleted_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    let deleted = transaction.execute(&statement, &[&uuid(tenant.0), &uuid(id.0), &Time::now().0]).await?;
    if deleted == 0 { Err(Refusal::not_found("file", id).into()) } else { Ok(()) }
}

async fn unused(connection: &Object, now: Time, limit: usize) -> Result<Vec<UnusedFile>, DbError> {
    let sql = "SELECT tenant_id, id, blob FROM files
        WHERE blob <> '' AND (deleted_at IS NOT NULL OR expires_at <= $1) LIMIT $2";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&now.0, &stored(limit as u64)]).await?;
    let read = |row: &Row| {
        Ok(UnusedFile { tenant: TenantId(raw(row, 0)?), id: FileId(raw(row, 1)?), blob: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

async fn forget(transaction: &Transaction<'_>, id: FileId) -> Result<(), DbError> {
    let sql = "UPDATE files SET blob = '', size = 0 WHERE id = $1";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    Ok(())
}

impl FilesDb for PostgresDb {
    fn create_file(&self, new: NewFile, done: Once<File>) -> DbFuture<'_, Done<File>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, new))))
    }

    fn file(&self, tenant: TenantId, id: FileId) -> DbFuture<'_, FoundFile> {
        self.read(move |connection| Box::pin(find(connection, tenant, id)))
    }

    fn linked_file(&self, id: FileId) -> DbFuture<'_, Option<(TenantId, File)>> {
        self.read(move |connection| Box::pin(linked(connection, id)))
    }

    fn list_files(&self, query: FileQuery) -> DbFuture<'_, ListedPage<File>> {
        self.read(move |connection| Box::pin(async move { list(connection, &query).await }))
    }

    fn delete_file(&self, tenant: TenantId, id: FileId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| Box::pin(once(transaction, done, delete(transaction, tenant, id))))
    }

    fn unused_files(&self, now: Time, limit: usize) -> DbFuture<'_, Vec<UnusedFile>> {
        self.read(move |connection| Box::pin(unused(connection, now, limit)))
    }

    fn forget_content(&self, id: FileId) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(forget(transaction, id)))
    }
}
