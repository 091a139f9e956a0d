//! Values of the database as a whole, and its care.

mod tokens;

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags, params};

use super::columns::number;
use super::resources::{deliveries, work_items};
use crate::model::ids::TenantId;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    Counts, DbFuture, KEPT_ANSWER, MakeDataKey, NewToken, OperationsDb, TenantRow, TokenRow,
};
use crate::store::sqlite::{SqliteDb, migrate};

/// Pages that a copy takes at a time, and how long it then lets others write.
const COPIED_PAGES: i32 = 1_024;
const COPY_PAUSE: Duration = Duration::from_millis(2);
/// Deleted sessions whose rows are removed in one transaction.
const CLEANED_TOGETHER: i64 = 20;

fn meta_or(connection: &Connection, name: &str, make: &[u8]) -> Result<Vec<u8>, DbError> {
    connection.prepare_cached("INSERT OR IGNORE INTO meta VALUES (?1, ?2)")?.execute(params![name, make])?;
    let mut select = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(select.query_row([name], |row| row.get(0))?)
}

fn check(connection: &Connection) -> Result<Vec<String>, DbError> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found: Vec<String> = rows.collect::<Result<_, _>>()?;
    found.retain(|line| line != "ok");
    let gaps = "SELECT h.session_key FROM heads h
        WHERE h.record_seq <> (SELECT count(*) FROM records r WHERE r.log_key = h.session_key)
           OR h.event_seq <> (SELECT count(*) FROM events e WHERE e.session_key = h.session_key) LIMIT 20";
    let mut statement = connection.prepare(gaps)?;
    for key in statement.query_map([], |row| row.get::<_, i64>(0))? {
        found.push(format!("the log of session number {} has a gap", key?));
    }
    Ok(found)
}

/// Removes the rows of sessions that were deleted, a few at a time, and answers that are too old.
fn clean(connection: &Connection, now: Time) -> Result<u64, DbError> {
    let keys: Vec<i64> = connection
        .prepare_cached(
            "SELECT key FROM sessions s WHERE deleted_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.session_key = s.key AND h.workspace IS NOT NULL)
             LIMIT ?1",
        )?
        .query_map([CLEANED_TOGETHER], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for key in &keys {
        for table in ["events", "pending", "inbox", "inbox_replies", "session_memory_stores", "heads"] {
            let sql = format!("DELETE FROM {table} WHERE session_key = ?1");
            connection.prepare_cached(&sql)?.execute([key])?;
        }
        for table in ["records", "notes"] {
            let sql = format!(
                "DELETE FROM {table} WHERE log_key IN (SELECT log_key FROM logs WHERE session_key = ?1)"
            );
            connection.prepare_cached(&sql)?.execute([key])?;
        }
        connection.prepare_cached("DELETE FROM logs WHERE session_key = ?1")?.execute([key])?;
        connection.prepare_cached("DELETE FROM sessions WHERE key = ?1")?.execute([key])?;
    }
    let old = now.after(-KEPT_ANSWER);
    let answers =
        connection.prepare_cached("DELETE FROM idempotency WHERE created_at < ?1")?.execute([old.0])?;
    let deliveries = deliveries::clean(connection, now)?;
    let items = work_items::clean(connection, now)?;
    Ok(keys.len() as u64 + answers as u64 + deliveries as u64 + items as u64)
}

fn counts(connection: &Connection) -> Result<Counts, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT status, count(*) FROM heads GROUP BY status
         UNION ALL SELECT 'quarantined', count(*) FROM heads WHERE quarantined_at IS NOT NULL
         UNION ALL SELECT 'pending', count(*) FROM pending WHERE closed_at IS NULL",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, number(row, 1)?)))?;
    let sessions = rows.collect::<Result<_, _>>()?;
    let now = Time::now();
    let age = |sql: &str| -> Result<u64, DbError> {
        let since: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(since.and_then(|since| u64::try_from(now.0 - since).ok()).unwrap_or(0))
    };
    Ok(Counts {
        sessions,
        due_micros: age("SELECT min(wake_at) FROM heads
            WHERE wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL")?,
        pending_micros: age("SELECT min(asked_at) FROM pending WHERE closed_at IS NULL")?,
        file_bytes: connection
            .prepare_cached("SELECT coalesce(sum(size), 0) FROM files WHERE blob <> ''")?
            .query_row([], |row| number(row, 0))?,
    })
}

impl OperationsDb for SqliteDb {
    fn meta_or(&self, name: &'static str, make: Vec<u8>) -> DbFuture<'_, Vec<u8>> {
        self.write(move |connection| meta_or(connection, name, &make))
    }

    fn set_meta(&self, name: &'static str, value: Vec<u8>) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
                .execute(params![name, value])?;
            Ok(())
        })
    }

    fn create_token(&self, token: NewToken, make_key: MakeDataKey) -> DbFuture<'_, TokenRow> {
        self.write(move |connection| tokens::create(connection, &token, make_key))
    }

    fn token(&self, id: String) -> DbFuture<'_, Option<TokenRow>> {
        self.read(move |connection| tokens::find(connection, &id))
    }

    fn list_tokens(&self) -> DbFuture<'_, Vec<TokenRow>> {
        self.read(tokens::list)
    }

    fn revoke_token(&self, id: String) -> DbFuture<'_, bool> {
        self.write(move |connection| tokens::revoke(connection, &id))
    }

    fn touch_tokens(&self, used: Vec<(String, Time)>) -> DbFuture<'_, ()> {
        self.write(move |connection| tokens::touch(connection, &used))
    }

    fn list_tenants(&self) -> DbFuture<'_, Vec<TenantRow>> {
        self.read(tokens::tenants)
    }

    fn set_data_keys(&self, keys: Vec<(TenantId, Vec<u8>)>) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            let mut update = connection.prepare_cached("UPDATE tenants SET data_key = ?2 WHERE id = ?1")?;
            for (tenant, key) in &keys {
                update.execute(params![tenant.0, key])?;
            }
            Ok(())
        })
    }

    fn probe(&self) -> DbFuture<'_, ()> {
        self.write(|connection| {
            let row = params!["probe", Time::now().0.to_be_bytes()];
            connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?.execute(row)?;
            Ok(())
        })
    }

    fn schema(&self) -> DbFuture<'_, u32> {
        self.read(migrate::version)
    }

    fn check(&self) -> DbFuture<'_, Vec<String>> {
        self.read(check)
    }

    fn backup(&self, to: PathBuf) -> DbFuture<'_, ()> {
        let from = self.path.clone();
        Box::pin(async move {
            let copied = tokio::task::spawn_blocking(move || -> Result<(), DbError> {
                let source = Connection::open_with_flags(&from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                source.busy_timeout(super::BUSY)?;
                let mut target = Connection::open(&to)?;
                Backup::new(&source, &mut target)?.run_to_completion(COPIED_PAGES, COPY_PAUSE, None)?;
                // A copy is one file, whatever the original is.
                target.pragma_update(None, "journal_mode", "delete")?;
                Ok(())
            });
            copied.await.unwrap_or_else(|error| Err(DbError::Unavailable(error.to_string())))
        })
    }

    fn clean(&self, now: Time) -> DbFuture<'_, u64> {
        self.write(move |connection| clean(connection, now))
    }

    fn counts(&self) -> DbFuture<'_, Counts> {
        self.read(counts)
    }
}
