//! What nodes need of the database: claiming sessions, appending to their logs, parking them, and taking over what others left.

use std::time::Duration;

use qoder_types::InboxEntry;

use crate::model::environment::EnvironmentBody;
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId, SessionId, TenantId, ThreadId};
use crate::model::outcome::Outcome;
use crate::model::status::{Status, StopReason};
use crate::model::time::Time;

use super::DbFuture;
use super::sessions::SessionRow;
use super::threads::{ThreadAppend, ThreadRow};

/// A log in the database.
pub type LogKey = i64;

/// The right to drive a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub key: i64,
    /// Grows with every lease; an older one can append nothing.
    pub fence: i64,
    /// The last record of its log.
    pub record_seq: u64,
    /// When its configuration last changed.
    pub configured_at: Time,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    /// Its number.
    pub seq: u64,
    /// Its line, without the newline.
    pub line: Vec<u8>,
    /// The blob that holds it; the line is empty until it was read.
    pub blob: Option<String>,
}

/// A record that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// Its number.
    pub seq: u64,
    /// When it was made.
    pub at: Time,
    /// Its type.
    pub kind: String,
    /// Its line, without the parts that are kept apart.
    pub body: Vec<u8>,
    /// The parts: where each belongs in the line, its hash and its bytes.
    pub parts: Vec<(u32, [u8; 32], Vec<u8>)>,
    /// The blob that holds the line, in place of the body.
    pub blob: Option<String>,
}

/// An entry of an inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxRow {
    /// Its place, from 1.
    pub seq: u64,
    /// The entry.
    pub entry: InboxEntry,
}

/// Everything that driving a session needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SeatRow {
    /// The session.
    pub session: SessionRow,
    /// Whose it is.
    pub tenant: TenantId,
    /// The tenant's key, sealed.
    pub data_key: Vec<u8>,
    /// Where its tools run.
    pub environment: EnvironmentBody,
    /// Its log.
    pub records: Vec<RecordRow>,
    /// The threads that it started, in order.
    pub threads: Vec<ThreadRow>,
    /// What was left for it, in order.
    pub inbox: Vec<InboxRow>,
    /// The number of the last entry that was ever left.
    pub inbox_seq: u64,
    /// What is known of its workspace.
    pub workspace: Option<String>,
    /// The data directory whose workspace has changes that are kept nowhere else.
    pub home: Option<NodeId>,
}

/// What is known of a session's workspace from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Which folder is the workspace, and what is kept of it.
    pub reference: String,
    /// The data directory whose workspace has changes that are kept nowhere else.
    pub home: Option<NodeId>,
}

/// The workspace of a session that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedWorkspace {
    /// The session.
    pub key: i64,
    /// The session, as clients name it.
    pub session: SessionId,
    /// Whose it was.
    pub tenant: TenantId,
}

/// An action that opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAction {
    /// The event that clients answer.
    pub event: EventId,
    /// The runtime's id of the call.
    pub call_id: String,
    /// `ask` or `custom`.
    pub kind: &'static str,
    /// The thread whose call it is; none for the session's own.
    pub thread: Option<ThreadId>,
}

/// Nothing is left to do: the session rests.
#[derive(Debug, Clone, PartialEq)]
pub struct Rest {
    /// The last inbox entry that was seen; with a newer one the session does not rest.
    pub seen: u64,
    /// Why it stopped.
    pub stop: StopReason,
    /// Events that report it.
    pub events: Vec<NewEvent>,
    /// True to give the lease back.
    pub releases: bool,
}

/// One commit of a seat.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The session.
    pub key: i64,
    /// The session, as clients name it.
    pub session: SessionId,
    /// Its tenant.
    pub tenant: TenantId,
    /// The lease.
    pub fence: i64,
    /// The last record that the seat knows to be stored.
    pub expected: u64,
    /// Records, in order.
    pub records: Vec<NewRecord>,
    /// What happened in threads.
    pub threads: Vec<ThreadAppend>,
    /// Events, in order.
    pub events: Vec<NewEvent>,
    /// Actions that open with these events.
    pub actions: Vec<NewAction>,
    /// What the session works or worked towards, when that changes.
    pub outcomes: Option<Vec<Outcome>>,
    /// True when a turn begins with it.
    pub begins: bool,
    /// Queued inputs that are processed now.
    pub processed: Vec<EventId>,
    /// Inbox entries up to this one are on record.
    pub taken: u64,
    /// What the session has used, as JSON, when it changed.
    pub usage: Option<String>,
    /// What is known of the workspace, when that changes.
    pub workspace: Option<WorkspaceChange>,
    /// True when the session got on: a reply, a result, the end of a turn.
    pub is_progress: bool,
    /// Set when nothing is left to do.
    pub rest: Option<Rest>,
    /// True when it was tried before and it is not known whether that counts.
    pub is_repeated: bool,
}

/// What a commit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The stored events.
    pub events: Vec<Event>,
    /// True when the session rests.
    pub rests: bool,
    /// What was left meanwhile, when it does not rest although it was to.
    pub inbox: Vec<InboxRow>,
    /// The number of the last entry that was ever left.
    pub inbox_seq: u64,
}

/// A session whose node is gone, as far as it was taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// The session.
    pub key: i64,
    /// Events that report it.
    pub events: Vec<Event>,
}

/// A session that needs an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The session.
    pub id: SessionId,
    /// Since when.
    pub at: Time,
    /// What it is doing.
    pub status: Status,
}

/// What nodes need of the database.
pub trait DriveDb {
    /// Takes up to `most` sessions that are due. Sessions that killed their node too often are quarantined instead.
    fn claim(&self, node: NodeId, most: usize) -> DbFuture<'_, (Vec<Claim>, Vec<Recovered>)>;
    /// Everything that driving a claimed session needs.
    fn seat(&self, key: i64) -> DbFuture<'_, SeatRow>;
    /// Commits what a seat did.
    fn append(&self, append: Append) -> DbFuture<'_, Appended>;
    /// What a session works or worked towards, in order.
    fn outcomes(&self, key: i64) -> DbFuture<'_, Vec<Outcome>>;
    /// What was left for a session behind this entry.
    fn inbox_after(&self, key: i64, seen: u64) -> DbFuture<'_, Vec<InboxRow>>;
    /// Gives a lease back without a rest: the session is due again. `failed` counts an attempt; otherwise none is counted.
    fn release(&self, key: i64, fence: i64, failed: bool) -> DbFuture<'_, Vec<Event>>;
    /// Ends the work of a session with an error: its inbox is dropped and it is idle.
    fn fail(&self, key: i64, fence: i64, error: String) -> DbFuture<'_, Vec<Event>>;
    /// Voids the leases of nodes that are gone; their sessions are due. With SQLite every node but this one is gone.
    fn void_leases(&self, node: NodeId) -> DbFuture<'_, Vec<Recovered>>;
    /// How long until the next session is due that this node may take, by the clock of the database.
    fn next_due(&self, node: NodeId) -> DbFuture<'_, Option<Duration>>;
    /// Workspaces of sessions that were deleted before this time.
    fn unused_workspaces(&self, before: Time, limit: usize) -> DbFuture<'_, Vec<UnusedWorkspace>>;
    /// Nothing is kept of a session's workspace any longer.
    fn forget_workspace(&self, key: i64) -> DbFuture<'_, ()>;
    /// Sessions that are quarantined.
    fn quarantined(&self) -> DbFuture<'_, Vec<Stranded>>;
    /// Lets a quarantined session continue. False when it is not quarantined.
    fn release_quarantined(&self, id: SessionId) -> DbFuture<'_, bool>;
    /// The log of a session and whose it is, for the operator.
    fn export(&self, id: SessionId) -> DbFuture<'_, (TenantId, Vec<RecordRow>)>;
}
