//! Sessions and their events in the database, as the front sees them.

use crate::model::admission::{Action, Admission, Head};
use crate::model::agent_view::AgentVersion;
use crate::model::environment::Environment;
use crate::model::event::Event;
use crate::model::ids::{
    AgentId, DeploymentId, EnvironmentId, EventId, MemoryStoreId, NodeId, SessionId, TenantId, ThreadId,
};
use crate::model::metadata::Metadata;
use crate::model::refusal::Refusal;
use crate::model::run::Run;
use crate::model::session::{Session, SessionBody};
use crate::model::status::{Status, StopReason};
use crate::model::time::Time;

use super::drive::Claim;
use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// A session that is about to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSessionRow {
    /// Its id.
    pub id: SessionId,
    /// For people.
    pub title: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// The rest.
    pub body: SessionBody,
    /// What is sealed of it.
    pub sealed: Option<Vec<u8>>,
}

/// Makes the row of a session from its agent and environment.
pub type MakeSession = Box<dyn FnOnce(&AgentVersion, &Environment) -> Result<NewSessionRow, Refusal> + Send>;

/// Takes the inputs of a request.
pub type Admit = Box<dyn FnOnce(Head, &[Action]) -> Result<Admission, Refusal> + Send>;

/// Who sends inputs, and where the session may be driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Who it is, as records name it.
    pub by: String,
    /// The token.
    pub token: String,
    /// A node that has room for the session.
    pub node: Option<NodeId>,
}

/// The creation of a session.
pub struct CreateSession {
    /// Whose.
    pub tenant: TenantId,
    /// Its agent.
    pub agent: AgentId,
    /// The agent's version; the latest without it.
    pub agent_version: Option<u64>,
    /// Its environment.
    pub environment: EnvironmentId,
    /// Makes its row.
    pub make: MakeSession,
    /// Takes what it begins with, when it begins with something.
    pub inputs: Option<(Admit, Vec<EventId>)>,
    /// Who creates it.
    pub sender: Sender,
    /// The run of a deployment that ends with it.
    pub run: Option<Run>,
}

/// A session, with what is sealed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// The session; its secrets are not opened.
    pub session: Session,
    /// What is sealed of it.
    pub sealed: Option<Vec<u8>>,
    /// Why it stopped last.
    pub stop: Option<StopReason>,
}

/// Inputs that a client sends.
pub struct SendInputs {
    /// Whose session.
    pub tenant: TenantId,
    /// Which session.
    pub session: SessionId,
    /// Decides what is taken.
    pub admit: Admit,
    /// The actions that the inputs name.
    pub actions: Vec<EventId>,
    /// Who sends them.
    pub sender: Sender,
}

/// What sending inputs came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The session.
    pub key: i64,
    /// The stored event of each input, in order.
    pub inputs: Vec<Event>,
    /// Every event that is new, in order.
    pub events: Vec<Event>,
    /// The lease, when the offered node got it.
    pub claim: Option<Claim>,
    /// The node that drives the session and has to look into its inbox.
    pub leased_by: Option<NodeId>,
    /// True when a node has to take the session up.
    pub is_due: bool,
}

/// What a change of a session writes.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionChange {
    /// For people.
    pub title: Option<String>,
    /// What the owner wrote on it.
    pub metadata: Metadata,
    /// The rest.
    pub body: SessionBody,
    /// What is sealed of it.
    pub sealed: Option<Vec<u8>>,
    /// The fields of `session.updated`, when it is reported.
    pub updated: Option<String>,
}

/// Makes the change of a session from what it is.
pub type ChangeSession = Box<dyn FnOnce(&SessionRow) -> Result<SessionChange, Refusal> + Send>;

/// Which sessions are listed.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// Of this agent.
    pub agent: Option<AgentId>,
    /// Of this version of it.
    pub agent_version: Option<u64>,
    /// With this memory store.
    pub memory_store: Option<MemoryStoreId>,
    /// Created by this deployment.
    pub deployment: Option<DeploymentId>,
    /// In one of these states.
    pub statuses: Vec<Status>,
}

/// Which events of a session are listed.
#[derive(Debug, Clone, PartialEq)]
pub struct EventQuery {
    /// Whose.
    pub tenant: TenantId,
    /// Of which session.
    pub session: SessionId,
    /// Of this thread of it; what the session shows without it.
    pub thread: Option<ThreadId>,
    /// Behind this event.
    pub after: Option<EventId>,
    /// Before this event.
    pub before: Option<EventId>,
    /// The most events.
    pub limit: usize,
    /// The newest first.
    pub descending: bool,
    /// Of one of these types.
    pub kinds: Vec<String>,
    /// Processed at this time or later.
    pub from: Option<Time>,
    /// Processed at this time or earlier.
    pub to: Option<Time>,
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamStart {
    /// The session.
    pub key: i64,
    /// The last event that the reader has.
    pub after: u64,
}

/// An action that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRow {
    /// The session.
    pub session: SessionId,
    /// The event that clients answer.
    pub event: EventId,
    /// `ask` or `custom`.
    pub kind: String,
    /// Since when.
    pub asked_at: Time,
}

/// Sessions and their events.
pub trait SessionsDb {
    /// Creates a session.
    fn create_session(
        &self,
        create: CreateSession,
        once: Once<(SessionRow, Sent)>,
    ) -> DbFuture<'_, Done<(SessionRow, Sent)>>;
    /// A session.
    fn session(&self, tenant: TenantId, id: SessionId) -> DbFuture<'_, SessionRow>;
    /// Sessions.
    fn list_sessions(&self, query: SessionQuery) -> DbFuture<'_, ListedPage<SessionRow>>;
    /// Changes a session.
    fn update_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        change: ChangeSession,
        once: Once<(SessionRow, Vec<Event>)>,
    ) -> DbFuture<'_, Done<(SessionRow, Vec<Event>)>>;
    /// Archives a session: it takes no more events, and a node that drives it is cut off.
    fn archive_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        once: Once<SessionRow>,
    ) -> DbFuture<'_, Done<SessionRow>>;
    /// Deletes a session. Answers with its key.
    fn delete_session(&self, tenant: TenantId, id: SessionId, once: Once<i64>) -> DbFuture<'_, Done<i64>>;
    /// Deletes sessions of a tenant that rest since before this and wait for nothing. Answers with them.
    fn delete_stale(
        &self,
        tenant: TenantId,
        before: Time,
        limit: usize,
    ) -> DbFuture<'_, Vec<(i64, SessionId)>>;
    /// Takes inputs into a session.
    fn send_inputs(&self, send: SendInputs, once: Once<Sent>) -> DbFuture<'_, Done<Sent>>;
    /// Stops the turn of a session. True when there is one to stop.
    fn cancel_session(&self, send: SendInputs, once: Once<(Sent, bool)>) -> DbFuture<'_, Done<(Sent, bool)>>;
    /// Events of a session.
    fn list_events(&self, query: EventQuery) -> DbFuture<'_, ListedPage<Event>>;
    /// Where a stream begins that continues behind `last`; without it, behind the newest event.
    fn stream_start(
        &self,
        tenant: TenantId,
        session: SessionId,
        last: Option<EventId>,
    ) -> DbFuture<'_, StreamStart>;
    /// Events of a session in order, behind a place. `None` when the session was deleted.
    fn events_after(&self, key: i64, after: u64, limit: usize) -> DbFuture<'_, Option<Vec<Event>>>;
    /// Actions of a tenant that are open, the oldest first.
    fn pending(&self, tenant: TenantId, limit: usize) -> DbFuture<'_, Vec<PendingRow>>;
}
