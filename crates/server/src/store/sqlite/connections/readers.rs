//! The readers of a SQLite database: a few threads with a connection each. A read sees one state of the database and holds it
//! no longer than it takes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use crate::store::error::DbError;

/// How many there are.
const COUNT: usize = 4;
/// Kilobytes of pages that each may keep.
const CACHE: i64 = 1_024;

type Work = Box<dyn FnOnce(&Connection) + Send>;

/// Hands reads to the threads.
#[derive(Debug, Clone)]
pub(in crate::store::sqlite) struct Readers(Sender<Work>);

impl Readers {
    /// Starts the threads. They end when the readers are dropped.
    pub(in crate::store::sqlite) fn start(path: &Path) -> Result<Self, DbError> {
        let (sender, receiver) = channel::<Work>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..COUNT {
            let connection = connect(path)?;
            let receiver = Arc::clone(&receiver);
            std::thread::Builder::new()
                .name(format!("sqlite-reader-{number}"))
                .spawn(move || serve(&connection, &receiver))
                .map_err(|error| DbError::Unavailable(error.to_string()))?;
        }
        Ok(Self(sender))
    }

    /// Has something read.
    pub(in crate::store::sqlite) fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, DbError>> {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            let done = catch_unwind(AssertUnwindSafe(|| whole(connection, read)));
            let done =
                done.unwrap_or_else(|_| Err(DbError::Unavailable("internal error in a read".to_owned())));
            // The one who asked may be gone.
            let _ = sender.send(done);
        });
        let gone = || DbError::Unavailable("the database is closed".to_owned());
        if self.0.send(work).is_err() {
            return std::future::ready(Err(gone())).boxed();
        }
        async move { receiver.await.unwrap_or_else(|_| Err(gone())) }.boxed()
    }
}

/// Several statements see one state.
fn whole<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, DbError>,
) -> Result<T, DbError> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let done = read(connection);
    connection.prepare_cached("ROLLBACK")?.execute([])?;
    done
}

fn connect(path: &Path) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(super::super::BUSY)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn serve(connection: &Connection, receiver: &Mutex<Receiver<Work>>) {
    loop {
        let work = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = work else { return };
        work(connection);
        if !connection.is_autocommit() {
            // A read that panicked has left its transaction open.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
}
