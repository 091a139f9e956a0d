//! The port of the database: one method a use case. Each is one transaction, or one read. Both SQL kinds implement it; rules
//! that decide inside of a transaction are pure functions of `model` that are passed in.

mod deployments;
mod drive;
mod files;
mod memory;
mod nodes;
mod operations;
mod resources;
mod sessions;
mod skills;
mod threads;
mod vaults;
mod webhooks;
mod work_items;

use futures::future::BoxFuture;

pub use deployments::{
    DeploymentChange, DeploymentQuery, DeploymentRow, DeploymentsDb, DueRun, NewDeployment, NextDeployment,
    RunQuery,
};
pub use drive::{
    Append, Appended, Claim, DriveDb, InboxRow, LogKey, NewAction, NewRecord, RecordRow, Recovered, Rest,
    SeatRow, Stranded, UnusedWorkspace, WorkspaceChange,
};
pub use files::{FileQuery, FilesDb, FoundFile, NewFile, UnusedFile};
pub use memory::{MemoryChange, MemoryDb, MemoryStoreChange, MemoryVersionQuery};
pub use nodes::{Driver, Hint, Hints, LeaseRow, NodeRow, NodesDb};
pub use operations::{Counts, MakeDataKey, NewToken, OperationsDb, TenantRow, TokenRow};
pub use resources::{AgentChange, AgentQuery, EnvironmentChange, ListQuery, ListedPage, Place, ResourcesDb};
pub use sessions::{
    Admit, ChangeSession, CreateSession, EventQuery, MakeSession, NewSessionRow, PendingRow, SendInputs,
    Sender, Sent, SessionChange, SessionQuery, SessionRow, SessionsDb, StreamStart,
};
pub use skills::{NewSkillVersion, SkillQuery, SkillVersionQuery, SkillsDb, UnusedArchive};
pub use threads::{ThreadAppend, ThreadRow, ThreadsDb};
pub use vaults::{CredentialChange, CredentialQuery, CredentialRow, NewCredential, VaultChange, VaultsDb};
pub use webhooks::{ClaimDeliveries, DeliveryQuery, DueDelivery, EndpointChange, NewEndpoint, WebhooksDb};
pub use work_items::{ChangeMetadata, PollWork, WorkDb, WorkPlace};
pub(super) use work_items::{KEPT_WORK, POLLER_IS_THERE};

use super::error::DbError;

/// What a method of the port returns.
pub type DbFuture<'a, T> = BoxFuture<'a, Result<T, DbError>>;

/// A database.
pub trait Db:
    ResourcesDb
    + FilesDb
    + SkillsDb
    + VaultsDb
    + MemoryDb
    + ThreadsDb
    + WebhooksDb
    + DeploymentsDb
    + WorkDb
    + SessionsDb
    + DriveDb
    + NodesDb
    + OperationsDb
    + std::fmt::Debug
    + Send
    + Sync
{
}

impl<T> Db for T where
    T: ResourcesDb
        + FilesDb
        + SkillsDb
        + VaultsDb
        + MemoryDb
        + ThreadsDb
        + WebhooksDb
        + DeploymentsDb
        + WorkDb
        + SessionsDb
        + DriveDb
        + NodesDb
        + OperationsDb
        + std::fmt::Debug
        + Send
        + Sync
{
}

/// An answer as clients got it, kept for those who ask again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Milliseconds for which an answer is kept.
pub(super) const KEPT_ANSWER: i64 = 24 * 60 * 60 * 1000;

/// What makes a request count once: the token, the key that the client chose, and what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceKey {
    /// The token.
    pub token: String,
    /// The client's key.
    pub key: String,
    /// Identifies method, path, query and body.
    pub digest: Vec<u8>,
}

/// How an effect is answered, and whether it counts once. The answer is rendered inside of the transaction, so that the effect
/// and what a second request gets are kept together.
pub struct Once<T> {
    /// Set when the client chose a key.
    pub key: Option<OnceKey>,
    /// Renders the answer.
    pub render: Box<dyn FnOnce(&T) -> KeptAnswer + Send>,
}

impl<T> std::fmt::Debug for Once<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Once").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What an effect came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Done<T> {
    /// It happened now.
    Now(T, KeptAnswer),
    /// It happened before; this was the answer.
    Before(KeptAnswer),
}

impl<T> Done<T> {
    /// The answer.
    pub fn answer(self) -> KeptAnswer {
        match self {
            Self::Now(_, answer) | Self::Before(answer) => answer,
        }
    }
}
