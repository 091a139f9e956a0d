//! The queue of work for self-hosted environments.

use crate::model::ids::{EnvironmentId, TenantId, WorkId};
use crate::model::metadata::Metadata;
use crate::model::refusal::Refusal;
use crate::model::work_items::{Beat, Beaten, Work, WorkStats};

use super::operations::TenantRow;
use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// Milliseconds for which a worker that polled counts as there.
pub(in crate::store) const POLLER_IS_THERE: i64 = 30_000;
/// Milliseconds for which an item that stopped is kept.
pub(in crate::store) const KEPT_WORK: i64 = 30 * 24 * 60 * 60 * 1000;

/// A work item, as a request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPlace {
    /// Whose.
    pub tenant: TenantId,
    /// Of which environment.
    pub environment: EnvironmentId,
    /// Which item.
    pub id: WorkId,
}

/// A worker that looks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollWork {
    /// Whose.
    pub tenant: TenantId,
    /// In which environment.
    pub environment: EnvironmentId,
    /// The worker, when it says who it is.
    pub worker: Option<String>,
    /// Milliseconds after which an item that another poll got and no one acknowledged is handed out again.
    pub reclaim: u64,
}

/// Changes what the owner wrote on an item.
pub type ChangeMetadata = Box<dyn FnOnce(&Metadata) -> Result<Metadata, Refusal> + Send>;

/// The queue of work.
pub trait WorkDb {
    /// Hands out the oldest item that no one has; an item whose lease is over is one of them.
    fn poll_work(&self, poll: PollWork) -> DbFuture<'_, Option<Work>>;
    /// A worker takes an item.
    fn acknowledge_work(&self, place: WorkPlace, once: Once<Work>) -> DbFuture<'_, Done<Work>>;
    /// A worker says that it is there.
    fn beat_work(&self, place: WorkPlace, beat: Beat) -> DbFuture<'_, (Work, Beaten)>;
    /// Stops an item. What its session still needs is queued anew.
    fn stop_work(&self, place: WorkPlace, force: bool, once: Once<Work>) -> DbFuture<'_, Done<Work>>;
    /// An item.
    fn work(&self, place: WorkPlace) -> DbFuture<'_, Work>;
    /// Changes what the owner wrote on an item.
    fn update_work(
        &self,
        place: WorkPlace,
        change: ChangeMetadata,
        once: Once<Work>,
    ) -> DbFuture<'_, Done<Work>>;
    /// Items of an environment.
    fn list_work(&self, environment: EnvironmentId, query: ListQuery) -> DbFuture<'_, ListedPage<Work>>;
    /// Numbers of the queue of an environment.
    fn work_stats(&self, environment: EnvironmentId) -> DbFuture<'_, WorkStats>;
    /// An item of any tenant, and the tenant: for the token that the item has.
    fn work_of_token(&self, id: WorkId) -> DbFuture<'_, Option<(Work, TenantRow)>>;
}
