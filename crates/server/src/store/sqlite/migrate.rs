//! Applies migrations, inside of one transaction that only one process has at a time.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::migrations::{MigrationState, SQLITE};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   BLOB NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT";

/// The newest schema that this program knows.
pub(super) fn known() -> u32 {
    SQLITE.last().map_or(0, |migration| migration.number)
}

/// How far the database in a file is, without changing it.
///
/// # Errors
/// When the file cannot be read.
pub fn state(path: &Path) -> Result<MigrationState, DbError> {
    let known = known();
    if !path.exists() {
        return Ok(MigrationState { found: 0, known });
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(super::BUSY)?;
    Ok(MigrationState { found: version(&connection)?, known })
}

/// The schema that a database has.
pub(super) fn version(connection: &Connection) -> Result<u32, DbError> {
    let exists = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'", [], |_| Ok(()))
        .optional()?;
    if exists.is_none() {
        return Ok(0);
    }
    Ok(connection.query_row("SELECT coalesce(max(number), 0) FROM migrations", [], |row| row.get(0))?)
}

/// Brings a database up to date. One that is newer by a single step is left as it is: that step was made so that this
/// program still works on it.
pub(super) fn apply(connection: &mut Connection) -> Result<(), DbError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLE)?;
    let found = version(&transaction)?;
    if found > known() + 1 {
        return Err(DbError::Schema { found, known: known() });
    }
    for migration in SQLITE {
        let applied: Option<Vec<u8>> = transaction
            .query_row("SELECT checksum FROM migrations WHERE number = ?1", [migration.number], |row| {
                row.get(0)
            })
            .optional()?;
        match applied {
            Some(checksum) if checksum == migration.checksum() => {}
            Some(_) => {
                let problem =
                    format!("migration {} was made by another version of this program", migration.number);
                return Err(DbError::Corrupt(problem));
            }
            None => {
                transaction.execute_batch(migration.sql)?;
                let row = params![migration.number, migration.name, migration.checksum(), Time::now().0];
                transaction.execute("INSERT INTO migrations VALUES (?1, ?2, ?3, ?4)", row)?;
            }
        }
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_start_on_an_empty_database_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.db");
        let started: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || super::super::SqliteDb::open(&path).map(drop))
            })
            .collect();
        for thread in started {
            thread.join().unwrap().unwrap();
        }
        assert_eq!(state(&path).unwrap(), MigrationState { found: known(), known: known() });
    }

    #[test]
    fn a_database_of_another_making_or_too_new_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.db");
        drop(super::super::SqliteDb::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        let add = |number: u32| {
            let row = params![number, "later", vec![1_u8], 0];
            connection.execute("INSERT INTO migrations VALUES (?1, ?2, ?3, ?4)", row).unwrap();
        };
        add(known() + 1);
        assert!(super::super::SqliteDb::open(&path).is_ok(), "one step newer still works");
        add(known() + 2);
        let error = super::super::SqliteDb::open(&path).unwrap_err();
        assert_eq!(error, DbError::Schema { found: known() + 2, known: known() });
        connection.execute("DELETE FROM migrations WHERE number > 1", []).unwrap();
        connection.execute("UPDATE migrations SET checksum = x'00'", []).unwrap();
        assert!(matches!(super::super::SqliteDb::open(&path), Err(DbError::Corrupt(_))));
        std::fs::write(folder.path().join("junk.db"), "this is not a database, but it is long enough")
            .unwrap();
        assert!(super::super::SqliteDb::open(&folder.path().join("junk.db")).is_err());
    }
}
