//! The one writer of a SQLite database: a thread that takes everything that waits into one transaction, each piece of work in
//! a savepoint of its own, so that one sync serves many and one failure spoils no other.

use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::error::DbError;
use crate::store::health::Health;

/// The most pieces of work in one transaction.
const MOST_TOGETHER: usize = 256;

/// The file of a database. One that was removed, or replaced by a backup, while it is open would take everything that is written and
/// keep nothing of it.
#[derive(Debug)]
pub(in crate::store::sqlite) struct DatabaseFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl DatabaseFile {
    /// The file at this path.
    pub(in crate::store::sqlite) fn at(path: &Path) -> Result<Self, DbError> {
        Ok(Self { path: path.to_path_buf(), identity: identity(path)? })
    }

    fn check(&self) -> Result<(), DbError> {
        if identity(&self.path)? == self.identity {
            return Ok(());
        }
        Err(DbError::Unavailable("the file of the database was replaced; restart the server".to_owned()))
    }
}

fn identity(path: &Path) -> Result<(u64, u64), DbError> {
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino())),
        Err(error) => Err(DbError::Unavailable(format!("the file of the database: {error}"))),
    }
}

/// A piece of work.
trait Piece: Send {
    /// Does it; false when it has to be rolled back.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Delivers what it came to, once it is known whether the transaction was committed.
    fn deliver(self: Box<Self>, committed: Result<(), DbError>);
}

struct PieceOf<T, W> {
    work: Option<W>,
    done: Option<Result<T, DbError>>,
    sender: oneshot::Sender<Result<T, DbError>>,
}

impl<T, W> Piece for PieceOf<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, DbError> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return true };
        let done = catch_unwind(AssertUnwindSafe(|| work(connection)));
        let done =
            done.unwrap_or_else(|_| Err(DbError::Unavailable("internal error in a transaction".to_owned())));
        let keep = done.is_ok();
        self.done = Some(done);
        keep
    }

    fn deliver(self: Box<Self>, committed: Result<(), DbError>) {
        let not_begun = || Err(DbError::Unavailable("the transaction failed".to_owned()));
        let outcome = committed.and(self.done.unwrap_or_else(not_begun));
        // The one who asked may be gone.
        let _ = self.sender.send(outcome);
    }
}

/// Hands work to the thread.
#[derive(Debug, Clone)]
pub(in crate::store::sqlite) struct Writer {
    sender: Sender<Box<dyn Piece>>,
    pub(in crate::store::sqlite) health: Arc<Health>,
}

impl Writer {
    /// Starts the thread. It ends when the writer is dropped, after everything that was handed over.
    pub(in crate::store::sqlite) fn start(
        connection: Connection,
        file: Option<DatabaseFile>,
    ) -> Result<Self, DbError> {
        let (sender, receiver) = channel();
        let health = Arc::new(Health::good());
        let shared = Arc::clone(&health);
        std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || serve(&connection, file.as_ref(), &receiver, &shared))
            .map_err(|error| DbError::Unavailable(error.to_string()))?;
        Ok(Self { sender, health })
    }

    /// Has a piece of work done. It is handed over at once; the future waits for its commit.
    pub(in crate::store::sqlite) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, DbError>> {
        let (sender, receiver) = oneshot::channel();
        let piece = PieceOf { work: Some(work), done: None, sender };
        let gone = || DbError::Unavailable("the database is closed".to_owned());
        if self.sender.send(Box::new(piece)).is_err() {
            return std::future::ready(Err(gone())).boxed();
        }
        async move { receiver.await.unwrap_or_else(|_| Err(gone())) }.boxed()
    }
}

fn serve(
    connection: &Connection,
    file: Option<&DatabaseFile>,
    receiver: &Receiver<Box<dyn Piece>>,
    health: &Health,
) {
    while let Ok(first) = receiver.recv() {
        let mut together = vec![first];
        together.extend(std::iter::from_fn(|| receiver.try_recv().ok()).take(MOST_TOGETHER - 1));
        let begun = Instant::now();
        let there = file.map_or(Ok(()), DatabaseFile::check);
        let committed = there.and_then(|()| transact(connection, &mut together));
        health.set_good(committed.is_ok());
        if committed.is_ok() {
            let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            health.commits.fetch_add(1, Ordering::Relaxed);
            health.commit_micros.fetch_add(micros, Ordering::Relaxed);
        }
        for piece in together {
            piece.deliver(committed.clone());
        }
    }
}

/// Does pieces of work in one transaction.
fn transact(connection: &Connection, together: &mut [Box<dyn Piece>]) -> Result<(), DbError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = do_all(connection, together);
    let commit = || -> Result<(), DbError> {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    };
    let committed = done.and_then(|()| commit());
    if committed.is_err() && !connection.is_autocommit() {
        // The first fault is the one to report; a transaction that cannot be rolled back is gone with its connection.
        let _ = connection.execute_batch("ROLLBACK");
    }
    committed
}

fn do_all(connection: &Connection, together: &mut [Box<dyn Piece>]) -> Result<(), DbError> {
    for piece in together {
        connection.prepare_cached("SAVEPOINT piece")?.execute([])?;
        if !piece.run(connection) {
            connection.prepare_cached("ROLLBACK TO piece")?.execute([])?;
        }
        connection.prepare_cached("RELEASE piece")?.execute([])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> Writer {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (x INTEGER NOT NULL)").unwrap();
        Writer::start(connection, None).unwrap()
    }

    fn count(writer: &Writer) -> i64 {
        let counted = writer
            .run(|connection| Ok(connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?));
        futures::executor::block_on(counted).unwrap()
    }

    #[test]
    fn one_that_fails_or_panics_spoils_no_other() {
        let writer = writer();
        let insert = |value: i64| {
            writer.run(move |connection| Ok(connection.execute("INSERT INTO t VALUES (?1)", [value])?))
        };
        let good: Vec<_> = (0..50).map(insert).collect();
        let failed = writer.run(|connection| {
            connection.execute("INSERT INTO t VALUES (100)", [])?;
            Err::<(), _>(DbError::Corrupt("no".to_owned()))
        });
        let panicked = writer.run(|connection| -> Result<(), DbError> {
            connection.execute("INSERT INTO t VALUES (101)", [])?;
            panic!("on purpose");
        });
        let after = insert(50);
        assert_eq!(futures::executor::block_on(failed), Err(DbError::Corrupt("no".to_owned())));
        assert!(futures::executor::block_on(panicked).is_err());
        for done in good.into_iter().chain([after]) {
            assert_eq!(futures::executor::block_on(done), Ok(1));
        }
        assert_eq!(count(&writer), 51);
        assert!(writer.health.is_good());
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_takes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (x INTEGER NOT NULL)").unwrap();
        let writer = Writer::start(connection, Some(DatabaseFile::at(&path).unwrap())).unwrap();
        assert_eq!(count(&writer), 0);
        let moved = folder.path().join("moved.db");
        let write = || futures::executor::block_on(writer.run(|_| Ok(())));
        std::fs::rename(&path, &moved).unwrap();
        assert!(matches!(write(), Err(DbError::Unavailable(_))) && !writer.health.is_good());
        std::fs::copy(&moved, &path).unwrap();
        assert!(matches!(write(), Err(DbError::Unavailable(_))), "another file with its name");
        std::fs::rename(&moved, &path).unwrap();
        assert_eq!(write(), Ok(()), "its own is back");
    }
}
