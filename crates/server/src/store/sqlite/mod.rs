//! The database in SQLite: one file, one writer with group commit, a few readers. Everything that is committed is synced.

mod columns;
mod connections;
mod drive;
mod events;
mod heads;
mod inputs;
mod lists;
mod migrate;
mod nodes;
mod once;
mod operations;
mod recover;
mod resources;
mod sessions;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rusqlite::{Connection, ErrorCode};

pub use connections::Line;
pub use migrate::state as migration_state;

use self::connections::{DatabaseFile, Readers, Writer, pass};
use crate::store::error::DbError;
use crate::store::health::Health;

/// How long one process waits for another that writes.
const BUSY: Duration = Duration::from_secs(5);
/// Kilobytes of pages that the writer may keep.
const CACHE: i64 = 4_096;
/// The most bytes that stay in the log beside the database after it was written back.
const KEPT_LOG: i64 = 16 * 1024 * 1024;

/// A database in a file.
#[derive(Debug)]
pub struct SqliteDb {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    /// In simulations, what is between this node and the database.
    line: Option<Arc<dyn Line>>,
}

impl SqliteDb {
    /// Opens a database, making it if it is not there, and brings its schema up to date.
    ///
    /// # Errors
    /// When the file cannot be opened or written, or its schema is too new.
    pub fn open(path: &Path) -> Result<Self, DbError> {
        let mut connection = connect(path)?;
        migrate::apply(&mut connection)?;
        let readers = Readers::start(path)?;
        let writer = Writer::start(connection, Some(DatabaseFile::at(path)?))?;
        Ok(Self { path: path.to_path_buf(), writer, readers, line: None })
    }

    /// The same database over a line, for simulations.
    #[must_use]
    pub fn over(self, line: Arc<dyn Line>) -> Self {
        Self { line: Some(line), ..self }
    }

    /// How its writer is doing.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.writer.health)
    }

    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, DbError>> {
        match &self.line {
            None => self.writer.run(work),
            Some(line) => {
                let writer = self.writer.clone();
                pass(&**line, move || writer.run(work))
            }
        }
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, DbError>> {
        match &self.line {
            None => self.readers.run(work),
            Some(line) => {
                let readers = self.readers.clone();
                pass(&**line, move || readers.run(work))
            }
        }
    }
}

/// A connection that writes.
fn connect(path: &Path) -> Result<Connection, DbError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "journal_size_limit", KEPT_LOG)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
