//! The database in PostgreSQL, for one node or many. A use case is one statement or one short transaction at READ COMMITTED; what it
//! changes of a session it changes under the lock of the session's head.

mod append;
mod blobs;
mod columns;
mod connections;
mod drive;
mod heads;
mod lists;
mod nodes;
mod once;
mod operations;
mod recover;
mod resources;
mod sessions;
mod threads;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool, Transaction};
use futures::future::BoxFuture;

pub use blobs::PostgresBlobs;
pub use connections::{DatabaseUrl, DatabaseUrlError, migration_state};
pub use operations::Inspection;

use crate::store::error::DbError;
use crate::store::health::Health;

/// How long a statement or a transaction may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a read may take that looks at everything, for an operator.
const LONG_DEADLINE: Duration = Duration::from_secs(600);

/// The present moment by the clock of the database.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// A database on a server.
#[derive(Debug)]
pub struct PostgresDb {
    /// Appends have connections of their own, so that no list delays them.
    appends: Pool,
    pool: Pool,
    /// For the connection that listens.
    listen_url: DatabaseUrl,
    health: Arc<Health>,
}

impl PostgresDb {
    /// Connects and brings the schema up to date. Several nodes may do so at once. `listen_url` is the same database without a
    /// pooler in between.
    ///
    /// # Errors
    /// When the database cannot be reached, or its schema is too new.
    pub async fn open(url: &DatabaseUrl, listen_url: Option<&DatabaseUrl>) -> Result<Self, DbError> {
        let (pool, appends) = (connections::pool(url)?, connections::pool(url)?);
        let mut connection = checkout(&pool).await?;
        connections::migrate(&mut connection).await?;
        drop(connection);
        let listen_url = listen_url.unwrap_or(url).clone();
        Ok(Self { appends, pool, listen_url, health: Arc::new(Health::good()) })
    }

    /// How it is doing.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Where its blobs are kept.
    #[must_use]
    pub fn blobs(&self) -> PostgresBlobs {
        PostgresBlobs::new(self.pool.clone())
    }

    /// Does something in one transaction. What decides inside of it may be called once, so a transaction that failed is not tried
    /// again here; nothing of it is kept, or it is not known whether it was.
    fn write<T: Send + 'static>(
        &self,
        work: impl for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, DbError>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, DbError>> {
        Box::pin(async move {
            let mut connection = checkout(&self.pool).await?;
            let begun = Instant::now();
            let done = within(DEADLINE, transact(&mut connection, work)).await;
            self.keep(connection, &done, begun);
            done
        })
    }

    /// Reads. A read of several statements sees what is committed before each.
    fn read<T: Send + 'static>(
        &self,
        work: impl for<'a> FnOnce(&'a Object) -> BoxFuture<'a, Result<T, DbError>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, DbError>> {
        self.read_within(DEADLINE, work)
    }

    fn read_within<T: Send + 'static>(
        &self,
        deadline: Duration,
        work: impl for<'a> FnOnce(&'a Object) -> BoxFuture<'a, Result<T, DbError>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, DbError>> {
        Box::pin(async move {
            let connection = checkout(&self.pool).await?;
            let done = within(deadline, work(&connection)).await;
            give_back(connection, &done);
            done
        })
    }

    /// Counts a commit and gives its connection back.
    fn keep<T>(&self, connection: Object, done: &Result<T, DbError>, begun: Instant) {
        let is_fault = matches!(done, Err(DbError::Unavailable(_)));
        self.health.set_good(!is_fault);
        if done.is_ok() {
            let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.health.commits.fetch_add(1, Ordering::Relaxed);
            self.health.commit_micros.fetch_add(micros, Ordering::Relaxed);
        }
        give_back(connection, done);
    }
}

/// A connection that failed is closed: what it still does is not ours to wait for.
fn give_back<T>(connection: Object, done: &Result<T, DbError>) {
    if matches!(done, Err(DbError::Unavailable(_))) {
        drop(Object::take(connection));
    }
}

async fn checkout(pool: &Pool) -> Result<Object, DbError> {
    pool.get().await.map_err(|error| DbError::Unavailable(connections::describe_pool(&error)))
}

/// Ends what takes too long.
async fn within<T>(deadline: Duration, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    tokio::time::timeout(deadline, work)
        .await
        .unwrap_or_else(|_| Err(DbError::Unavailable(format!("no answer within {} s", deadline.as_secs()))))
}

async fn transact<T: Send + 'static>(
    connection: &mut Object,
    work: impl for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, DbError>> + Send + 'static,
) -> Result<T, DbError> {
    let transaction = connection.transaction().await?;
    match work(&transaction).await {
        Ok(done) => {
            transaction.commit().await?;
            Ok(done)
        }
        Err(error) => {
            transaction.rollback().await?;
            Err(error)
        }
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        connections::fault(&error)
    }
}
