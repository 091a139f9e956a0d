//! Threads of sessions: the logs of the agents that a session started. A seat appends to them in the same commit as to the
//! session's own log.

use serde_json::Value;

use crate::model::ids::{SessionId, TenantId, ThreadId};
use crate::model::thread::Thread;

use super::drive::{NewRecord, RecordRow};
use super::{DbFuture, Done, Once};

/// What a commit of a seat writes of a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadAppend {
    /// The thread.
    pub thread: ThreadId,
    /// The agent that runs in it, by its name in the session.
    pub agent_name: String,
    /// What is kept beside its log, when it is new.
    pub sidecar: Option<Value>,
    /// The last record that the seat knows to be stored.
    pub expected: u64,
    /// Records, in order.
    pub records: Vec<NewRecord>,
    /// True while it runs.
    pub is_running: bool,
    /// What it has used, as JSON.
    pub usage: String,
    /// True once its agent has come to its end.
    pub is_over: bool,
}

/// A thread as a seat takes it up.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// The thread.
    pub thread: ThreadId,
    /// The agent that runs in it, by its name in the session.
    pub agent_name: String,
    /// What is kept beside its log.
    pub sidecar: Value,
    /// The last record.
    pub record_seq: u64,
    /// What it has used, as JSON.
    pub usage: String,
    /// True while it runs.
    pub is_running: bool,
    /// True once its agent has come to its end.
    pub is_over: bool,
    /// Its records; none when it is over.
    pub records: Vec<RecordRow>,
}

/// Threads as the front sees them.
pub trait ThreadsDb {
    /// The threads that a session started, the oldest first.
    fn threads(&self, tenant: TenantId, session: SessionId) -> DbFuture<'_, Vec<Thread>>;
    /// Archives a thread that does not run.
    fn archive_thread(
        &self,
        tenant: TenantId,
        session: SessionId,
        thread: ThreadId,
        once: Once<Thread>,
    ) -> DbFuture<'_, Done<Thread>>;
}
