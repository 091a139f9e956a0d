//! Values of the database as a whole, and its care.

mod inspect;
mod tokens;

use std::path::PathBuf;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::columns::{number, uuid};
use super::resources::{deliveries, work_items};
use super::{LONG_DEADLINE, NOW, PostgresDb, connections};

use crate::model::ids::TenantId;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    Counts, DbFuture, KEPT_ANSWER, MakeDataKey, NewToken, OperationsDb, TenantRow, TokenRow,
};
pub use inspect::Inspection;

/// Deleted sessions whose rows are removed in one transaction.
const CLEANED_TOGETHER: i64 = 20;

async fn meta_or(transaction: &Transaction<'_>, name: &str, make: &[u8]) -> Result<Vec<u8>, DbError> {
    let insert =
        transaction.prepare_cached("INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING").await?;
    transaction.execute(&insert, &[&name, &make]).await?;
    let select = transaction.prepare_cached("SELECT value FROM meta WHERE name = $1").await?;
    Ok(transaction.query_one(&select, &[&name]).await?.try_get(0)?)
}

async fn set_meta(transaction: &Transaction<'_>, name: &str, value: &[u8]) -> Result<(), DbError> {
    let sql = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&name, &value]).await?;
    Ok(())
}

/// Looks for logs with gaps. What PostgreSQL itself keeps is checked by its own tools.
async fn check(connection: &Object) -> Result<Vec<String>, DbError> {
    let sql =
        "SELECT h.session_key FROM heads h JOIN sessions s ON s.key = h.session_key AND s.deleted_at IS NULL
        WHERE h.record_seq <> (SELECT count(*) FROM records r WHERE r.log_key = h.session_key)
           OR h.event_seq <> (SELECT count(*) FROM events e WHERE e.session_key = h.session_key) LIMIT 20";
    let rows = connection.query(sql, &[]).await?;
    let gap = |row: &Row| Ok(format!("the log of session number {} has a gap", row.try_get::<_, i64>(0)?));
    rows.iter().map(gap).collect()
}

/// Removes the rows of sessions that were deleted, a few at a time, and answers that are too old. Several nodes may do so at once.
async fn clean(transaction: &Transaction<'_>, now: Time) -> Result<u64, DbError> {
    // What is kept of a workspace is removed first, because only the row says that it is there.
    let sql = "SELECT key FROM sessions s WHERE deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT FROM heads h WHERE h.session_key = s.key AND h.workspace IS NOT NULL)
        LIMIT $1 FOR UPDATE SKIP LOCKED";
    let rows = transaction.query(&transaction.prepare_cached(sql).await?, &[&CLEANED_TOGETHER]).await?;
    let keys = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    if !keys.is_empty() {
        for sql in [
            "DELETE FROM events WHERE session_key = ANY($1)",
            "DELETE FROM pending WHERE session_key = ANY($1)",
            "DELETE FROM inbox WHERE session_key = ANY($1)",
            "DELETE FROM session_memory_stores WHERE session_key = ANY($1)",
            "DELETE FROM heads WHERE session_key = ANY($1)",
            "DELETE FROM records WHERE log_key IN (SELECT log_key FROM logs WHERE session_key = ANY($1))",
            "DELETE FROM logs WHERE session_key = ANY($1)",
            "DELETE FROM sessions WHERE key = ANY($1)",
        ] {
            transaction.execute(&transaction.prepare_cached(sql).await?, &[&keys]).await?;
        }
    }
    let sql = "DELETE FROM idempotency WHERE (token_id, key) IN
        (SELECT token_id, key FROM idempotency WHERE created_at < $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)";
    let old = now.after(-KEPT_ANSWER).0;
    let answers = transaction.execute(&transaction.prepare_cached(sql).await?, &[&old]).await?;
    let uploads = clean_uploads(transaction, now).await?;
    let deliveries = deliveries::clean(transaction, now).await?;
    let items = work_items::clean(transaction, now).await?;
    Ok(keys.len() as u64 + answers + uploads + deliveries + items)
}

/// Removes content whose writer was killed before it was finished.
async fn clean_uploads(transaction: &Transaction<'_>, now: Time) -> Result<u64, DbError> {
    let sql = "WITH old AS (DELETE FROM blob_uploads WHERE begun_at < $1 RETURNING tenant_id, name)
        DELETE FROM blobs USING old WHERE blobs.tenant_id = old.tenant_id AND blobs.name = old.name";
    let old = now.after(-KEPT_ANSWER).0;
    Ok(transaction.execute(&transaction.prepare_cached(sql).await?, &[&old]).await?)
}

async fn counts(connection: &Object) -> Result<Counts, DbError> {
    let sql = "SELECT status, count(*) FROM heads GROUP BY status
        UNION ALL SELECT 'quarantined', count(*) FROM heads WHERE quarantined_at IS NOT NULL
        UNION ALL SELECT 'pending', count(*) FROM pending WHERE closed_at IS NULL";
    let rows = connection.query(&connection.prepare_cached(sql).await?, &[]).await?;
    let sessions =
        rows.iter().map(|row| Ok((row.try_get(0)?, number(row, 1)?))).collect::<Result<_, DbError>>()?;
    let sql = format!(
        "SELECT greatest(coalesce({NOW} - (SELECT min(wake_at) FROM heads
                WHERE wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL), 0), 0),
            greatest(coalesce({NOW} - (SELECT min(asked_at) FROM pending WHERE closed_at IS NULL), 0), 0),
            (SELECT coalesce(sum(size), 0)::bigint FROM files WHERE blob <> '')"
    );
    let row = connection.query_one(&connection.prepare_cached(&sql).await?, &[]).await?;
    Ok(Counts {
        sessions,
        due_micros: number(&row, 0)?,
        pending_micros: number(&row, 1)?,
        file_bytes: number(&row, 2)?,
    })
}

impl OperationsDb for PostgresDb {
    fn meta_or(&self, name: &'static str, make: Vec<u8>) -> DbFuture<'_, Vec<u8>> {
        self.write(move |transaction| Box::pin(async move { meta_or(transaction, name, &make).await }))
    }

    fn set_meta(&self, name: &'static str, value: Vec<u8>) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(async move { set_meta(transaction, name, &value).await }))
    }

    fn create_token(&self, token: NewToken, make_key: MakeDataKey) -> DbFuture<'_, TokenRow> {
        self.write(move |transaction| {
            Box::pin(async move { tokens::create(transaction, &token, make_key).await })
        })
    }

    fn token(&self, id: String) -> DbFuture<'_, Option<TokenRow>> {
        self.read(move |connection| Box::pin(async move { tokens::find(connection, &id).await }))
    }

    fn list_tokens(&self) -> DbFuture<'_, Vec<TokenRow>> {
        self.read(|connection| Box::pin(tokens::list(connection)))
    }

    fn revoke_token(&self, id: String) -> DbFuture<'_, bool> {
        self.write(move |transaction| Box::pin(async move { tokens::revoke(transaction, &id).await }))
    }

    fn touch_tokens(&self, used: Vec<(String, Time)>) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(tokens::touch(transaction, used)))
    }

    fn list_tenants(&self) -> DbFuture<'_, Vec<TenantRow>> {
        self.read(|connection| Box::pin(tokens::tenants(connection)))
    }

    fn set_data_keys(&self, keys: Vec<(TenantId, Vec<u8>)>) -> DbFuture<'_, ()> {
        self.write(move |transaction| {
            Box::pin(async move {
                let sql = "UPDATE tenants SET data_key = $2 WHERE id = $1";
                let update = transaction.prepare_cached(sql).await?;
                for (tenant, key) in &keys {
                    transaction.execute(&update, &[&uuid(tenant.0), key]).await?;
                }
                Ok(())
            })
        })
    }

    fn probe(&self) -> DbFuture<'_, ()> {
        self.write(|transaction| {
            Box::pin(async move { set_meta(transaction, "probe", &Time::now().0.to_be_bytes()).await })
        })
    }

    fn schema(&self) -> DbFuture<'_, u32> {
        self.read(|connection| {
            Box::pin(async move {
                let client: &tokio_postgres::Client = connection;
                connections::version(client).await
            })
        })
    }

    fn check(&self) -> DbFuture<'_, Vec<String>> {
        self.read_within(LONG_DEADLINE, |connection| Box::pin(check(connection)))
    }

    fn backup(&self, _: PathBuf) -> DbFuture<'_, ()> {
        let message = "PostgreSQL is backed up with its own tools, such as pg_dump or pg_basebackup.";
        Box::pin(std::future::ready(Err(Refusal::conflict(message).into())))
    }

    fn clean(&self, now: Time) -> DbFuture<'_, u64> {
        self.write(move |transaction| Box::pin(clean(transaction, now)))
    }

    fn counts(&self) -> DbFuture<'_, Counts> {
        self.read(|connection| Box::pin(counts(connection)))
    }
}
