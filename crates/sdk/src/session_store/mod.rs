//! External session stores: what a store must offer, and the way to hand one around. A store holds copies of session
//! logs, so that another host can resume a session; local logs are written all the same. Entries are opaque JSON
//! objects, which a store returns equal and in the order in which they were appended.

mod fork;
mod memory;
mod reading;

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use fork::fork_entries;
pub use memory::InMemorySessionStore;
pub(crate) use reading::{answer, load_log, project_key, stored_sessions, stored_subpaths, without_repeats};

/// Which log: that of a session or, with `subpath`, that of an agent it has started.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The project, made from its canonical path.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// `None` is the session's own log; else that of an agent, such as `subagents/agent-a1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
}

impl SessionKey {
    /// The key of a session's own log.
    #[must_use]
    pub fn new(project_key: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self { project_key: project_key.into(), session_id: session_id.into(), subpath: None }
    }

    /// The key of a log of the same session.
    #[must_use]
    pub fn with_subpath(&self, subpath: impl Into<String>) -> Self {
        Self { subpath: Some(subpath.into()), ..self.clone() }
    }

    /// The key for an error message.
    pub(crate) fn describe(&self) -> String {
        match &self.subpath {
            None => format!("the session {}", self.session_id),
            Some(subpath) => format!("the session {} ({subpath})", self.session_id),
        }
    }
}

/// A line of a log: a JSON object with a `type`, and mostly with a `uuid`.
pub type SessionStoreEntry = Value;

/// A session of a project, with the time of its last change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStoreListEntry {
    /// The session.
    pub session_id: String,
    /// When its own log was last appended to, in milliseconds since 1970.
    pub mtime: u64,
}

/// Why a store did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionStoreError {
    /// The store has left this method out.
    #[error("this session store has no {0}")]
    LeftOut(&'static str),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
}

impl SessionStoreError {
    /// A failure, in words for people.
    pub fn failed(problem: impl std::fmt::Display) -> Self {
        Self::Failed(problem.to_string())
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeftOut(_) => "session_store_left_out",
            Self::Failed(_) => "session_store_failed",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::LeftOut(_) => "implement the method, or do without what needs it",
            Self::Failed(_) => "check that the store can be reached; the local log has what the store lacks",
        }
    }
}

impl From<std::io::Error> for SessionStoreError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<serde_json::Error> for SessionStoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error)
    }
}

/// What methods of a store return.
pub type StoreResult<T> = Result<T, SessionStoreError>;

/// A place for copies of session logs. `append` and `load` are required; what a store leaves out is said on each method.
/// Methods can be written as `async fn`.
///
/// ```
/// use qoder_agent_sdk::{SessionKey, SessionStore, SessionStoreEntry, StoreResult};
///
/// struct Nowhere;
///
/// impl SessionStore for Nowhere {
///     async fn append(&self, _key: &SessionKey, _entries: &[SessionStoreEntry]) -> StoreResult<()> {
///         Ok(())
///     }
///
///     async fn load(&self, _key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
///         Ok(None)
///     }
/// }
/// # let _ = qoder_agent_sdk::QoderAgentOptions::new().session_store(Nowhere);
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Adds entries to the end of a log. The same entry may arrive twice; readers recognise it by its `uuid`.
    fn append(
        &self,
        key: &SessionKey,
        entries: &[SessionStoreEntry],
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// All entries of a log in order; `None` when there is no such log.
    fn load(
        &self,
        key: &SessionKey,
    ) -> impl Future<Output = StoreResult<Option<Vec<SessionStoreEntry>>>> + Send;

    /// The sessions of a project. Without it, `continue_conversation` and lists are errors.
    fn list_sessions(
        &self,
        project_key: &str,
    ) -> impl Future<Output = StoreResult<Vec<SessionStoreListEntry>>> + Send {
        let _ = project_key;
        std::future::ready(Err(SessionStoreError::LeftOut("list_sessions")))
    }

    /// The subpaths of a session. Without it, the logs of agents are not restored.
    fn list_subkeys(&self, key: &SessionKey) -> impl Future<Output = StoreResult<Vec<String>>> + Send {
        let _ = key;
        std::future::ready(Err(SessionStoreError::LeftOut("list_subkeys")))
    }

    /// Deletes a log; that of a session takes its subpaths along. Without it, deleting does nothing.
    fn delete(&self, key: &SessionKey) -> impl Future<Output = StoreResult<()>> + Send {
        let _ = key;
        std::future::ready(Err(SessionStoreError::LeftOut("delete")))
    }
}

/// When entries are handed over to the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionStoreFlush {
    /// Before the result of a turn, or when many wait.
    #[default]
    Batched,
    /// Each at once.
    Eager,
}

/// A store whose type does not matter; clones are the same store.
#[derive(Clone)]
pub struct SharedSessionStore(Arc<dyn AnyStore>);

impl SharedSessionStore {
    /// Shares a store.
    pub fn new(store: impl SessionStore) -> Self {
        Self(Arc::new(store))
    }
}

impl std::fmt::Debug for SharedSessionStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SharedSessionStore")
    }
}

/// The methods of a store as a table can hold them.
trait AnyStore: Send + Sync {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> BoxFuture<'a, StoreResult<()>>;
    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<Option<Vec<Value>>>>;
    fn list_sessions<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, StoreResult<Vec<SessionStoreListEntry>>>;
    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<Vec<String>>>;
    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<()>>;
}

impl<S: SessionStore> AnyStore for S {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> BoxFuture<'a, StoreResult<()>> {
        SessionStore::append(self, key, entries).boxed()
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<Option<Vec<Value>>>> {
        SessionStore::load(self, key).boxed()
    }

    fn list_sessions<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, StoreResult<Vec<SessionStoreListEntry>>> {
        SessionStore::list_sessions(self, project_key).boxed()
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<Vec<String>>> {
        SessionStore::list_subkeys(self, key).boxed()
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, StoreResult<()>> {
        SessionStore::delete(self, key).boxed()
    }
}

impl SessionStore for SharedSessionStore {
    async fn append(&self, key: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        self.0.append(key, entries).await
    }

    async fn load(&self, key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        self.0.load(key).await
    }

    async fn list_sessions(&self, project_key: &str) -> StoreResult<Vec<SessionStoreListEntry>> {
        self.0.list_sessions(project_key).await
    }

    async fn list_subkeys(&self, key: &SessionKey) -> StoreResult<Vec<String>> {
        self.0.list_subkeys(key).await
    }

    async fn delete(&self, key: &SessionKey) -> StoreResult<()> {
        self.0.delete(key).await
    }
}
