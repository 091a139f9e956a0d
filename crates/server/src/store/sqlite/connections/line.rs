//! The way from a node to its database and back, as a simulation makes it: late, lost, or held up. What was sent arrives also when
//! the one who sent it no longer waits.

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::store::error::DbError;

/// What happens to requests on their way, and to answers on theirs.
pub trait Line: std::fmt::Debug + Send + Sync {
    /// Completes when a request reaches the database; fails when it never does.
    fn there(&self) -> BoxFuture<'static, Result<(), DbError>>;
    /// Completes when its answer is back; fails when it is lost.
    fn back(&self) -> BoxFuture<'static, Result<(), DbError>>;
}

/// Has a request done over a line. The database itself takes no time.
pub(in crate::store::sqlite) fn pass<T: Send + 'static>(
    line: &dyn Line,
    run: impl FnOnce() -> BoxFuture<'static, Result<T, DbError>> + Send + 'static,
) -> BoxFuture<'static, Result<T, DbError>> {
    let (there, back) = (line.there(), line.back());
    let sent = tokio::spawn(async move {
        there.await?;
        let done = futures::executor::block_on(run());
        back.await?;
        done
    });
    async move { sent.await.unwrap_or_else(|error| Err(DbError::Unavailable(error.to_string()))) }.boxed()
}
