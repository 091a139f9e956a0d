//! The port of storage: a store owns the logs of sessions and of their agents, the right to append to them, their inboxes
//! and their blobs. Its obligations are tested by `qoder_testkit::StoreConformance`.

use std::time::SystemTime;

use qoder_core::ports::LogStore;
use qoder_types::InboxEntry;
use serde_json::Value;

use crate::error::StoreError;
use crate::inbox::{InboxError, SessionInbox, Ticket};
use crate::jsonl::line::Line;
use crate::layout::SessionPaths;
use crate::lease::Holder;

/// Names a session, or an agent's session within it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The main session.
    pub session: String,
    /// The agents on the way from the main session to this one; none for the main session itself.
    pub agents: Vec<String>,
}

impl SessionKey {
    /// The main session `id`.
    #[must_use]
    pub fn main(id: impl Into<String>) -> Self {
        Self { session: id.into(), agents: Vec::new() }
    }

    /// The agent `id` that this session, or agent, has started.
    #[must_use]
    pub fn agent(&self, id: impl Into<String>) -> Self {
        let mut key = self.clone();
        key.agents.push(id.into());
        key
    }

    /// The id of the session, or of the agent.
    #[must_use]
    pub fn id(&self) -> &str {
        self.agents.last().unwrap_or(&self.session)
    }
}

/// What happens when another process holds the lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Take {
    /// [`StoreError::Locked`].
    #[default]
    IfFree,
    /// It loses the lease: its next append fails with [`LogStoreError::Fenced`].
    ///
    /// [`LogStoreError::Fenced`]: qoder_core::ports::LogStoreError::Fenced
    Over,
}

/// A session that is open for appending. Dropping the log gives the lease back.
pub struct OpenSession {
    /// Takes records.
    pub log: Box<dyn LogStore>,
    /// What others leave for the session.
    pub inbox: Box<dyn SessionInbox>,
    /// Number of the last record.
    pub last_seq: u64,
}

impl std::fmt::Debug for OpenSession {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OpenSession").field("last_seq", &self.last_seq).finish_non_exhaustive()
    }
}

/// What a list says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Its id.
    pub id: String,
    /// When it was last written.
    pub modified: SystemTime,
    /// Its title, where one was given.
    pub title: Option<String>,
    /// Its first prompt.
    pub first_prompt: Option<String>,
    /// Who drives it now.
    pub holder: Option<Holder>,
}

/// Keeps sessions.
///
/// Contract: what was appended is read back in order, record by record equal. One lease at a time may append; an older
/// one gets `Fenced`. Entries of an inbox stay until they are settled. Calls may block for the time of a few disk or
/// database operations; none waits for another process to end.
pub trait SessionStore: std::fmt::Debug + Send + Sync {
    /// Opens a session for appending, creating it if it is not there. Every line that is in it goes to `visit`.
    fn open(
        &self,
        key: &SessionKey,
        take: Take,
        visit: &mut dyn FnMut(Line),
    ) -> Result<OpenSession, StoreError>;
    /// Reads a session without taking its lease; answers with the number of the last record.
    fn read(&self, key: &SessionKey, visit: &mut dyn FnMut(Line)) -> Result<u64, StoreError>;
    /// The main sessions, the last written first.
    fn list(&self) -> Result<Vec<StoredSession>, StoreError>;
    /// Who holds the lease of a session, and since when; `None` when it is free.
    fn holder(&self, key: &SessionKey) -> Result<Option<Holder>, StoreError>;
    /// Leaves an entry in the inbox of a session. Needs no lease.
    fn leave(&self, key: &SessionKey, entry: &InboxEntry) -> Result<Ticket, InboxError>;
    /// Appends a line without number, such as a title. Needs no lease.
    fn note(&self, key: &SessionKey, line: &Value) -> Result<(), StoreError>;
    /// Keeps content beside the log; answers with its name. The same content has the same name.
    fn put_blob(&self, key: &SessionKey, content: &[u8]) -> Result<String, StoreError>;
    /// Reads content that was kept; `None` when no content has this name.
    fn blob(&self, key: &SessionKey, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// Keeps what is known of an agent beside its log. It is durable when this returns.
    fn write_sidecar(&self, key: &SessionKey, sidecar: &Value) -> Result<(), StoreError>;
    /// What is known of an agent beside its log; `None` when that is missing or cannot be read.
    fn sidecar(&self, key: &SessionKey) -> Result<Option<Value>, StoreError>;
    /// The agents that the session, or agent, has started, in the order of their ids: those with a log or a sidecar.
    fn children(&self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError>;
    /// Deletes a session whose lease is free, with everything beside it.
    fn delete(&self, key: &SessionKey) -> Result<(), StoreError>;
    /// The files in which the session is kept, for those that show its log to people and programs; most stores have none.
    fn files(&self, _key: &SessionKey) -> Option<SessionPaths> {
        None
    }
    /// True when a session can be opened again after the process has ended.
    fn outlives_process(&self) -> bool {
        true
    }
}
