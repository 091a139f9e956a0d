//! The one interface of a session for a front that does not care where the session is driven: in this process, by another
//! process on this machine, or on a server. Requests travel as [`HostRequest`]s, so that whatever a front can ask, a program
//! on a pipe can ask too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use qoder_types::Actor;
use qoder_types::record::{InputAdmitted, InputProblem};
use serde::Serialize;
use serde_json::Value;

use crate::answer_error::AnswerError;
use crate::control::HostRequest;
use crate::elicitation::ElicitationAnswer;
use crate::event::{SessionEvent, Wants};
use crate::question::{ActionId, Answer, Question};

/// A future on the heap, so that the trait can be used through a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a request was not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The session is over.
    #[error("the session has ended")]
    Ended,
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
    /// No model would take the message.
    #[error(transparent)]
    Input(#[from] InputProblem),
}

impl RequestError {
    /// It cannot be done, for this reason.
    pub fn refused(problem: impl std::fmt::Display) -> Self {
        Self::Refused(problem.to_string())
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ended => "session_ended",
            Self::Refused(_) => "request_refused",
            Self::Input(problem) => problem.code(),
        }
    }
}

/// What an interrupt left and took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InterruptReceipt {
    /// Inputs that still wait for their turn.
    pub still_queued: Vec<String>,
    /// Inputs that were dropped; an interrupt drops none.
    pub cancelled: Vec<String>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// A turn runs.
    Running,
    /// Nothing is owed.
    Idle,
    /// A question has to be answered before the turn continues.
    RequiresAction,
}

impl SessionState {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::RequiresAction => "requires_action",
        }
    }

    /// Reads the documented word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Running, Self::Idle, Self::RequiresAction].into_iter().find(|state| state.as_str() == word)
    }
}

/// What a session is doing at this moment.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Running, idle or waiting for an answer.
    pub state: SessionState,
    /// The questions that are open.
    pub questions: Vec<Arc<Question>>,
}

/// What a front that goes leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// A turn that runs is stopped and gets its result.
    EndTurn,
    /// What runs is stopped; the turn and its questions stay open, to be resumed and answered later.
    KeepTurnOpen,
}

/// The events of a session, for one reader. Dropping it ends the subscription.
pub trait EventStream: Send {
    /// The next event; waits for it. After [`SessionEvent::Ended`] it never completes.
    fn next(&mut self) -> BoxFuture<'_, SessionEvent>;

    /// The next event, if there is one.
    fn try_next(&mut self) -> Option<SessionEvent>;
}

/// A session, wherever it is driven.
pub trait SessionClient: Send + Sync {
    /// The session.
    fn session_id(&self) -> &str;

    /// Submits a message. It starts a turn, or waits for the one that runs; the same id again is the same message.
    fn submit(&self, input: InputAdmitted) -> BoxFuture<'_, Result<(), RequestError>>;

    /// Answers a question. The first answer counts; every other one learns which did.
    fn answer(&self, action: ActionId, answer: Answer) -> BoxFuture<'_, Result<(), AnswerError>>;

    /// Answers a question of an MCP server.
    fn answer_elicitation(
        &self,
        elicitation_id: String,
        answer: ElicitationAnswer,
    ) -> BoxFuture<'_, Result<(), RequestError>>;

    /// Has a request served; its answer is the one that travels.
    fn request(&self, request: HostRequest) -> BoxFuture<'_, Result<Value, RequestError>>;

    /// Subscribes: the messages of every record after number `after`, then those that follow, without gap or repeat.
    /// Without `after`, only what follows. Questions that are open come first.
    fn subscribe(&self, after: Option<u64>, wants: Wants) -> Box<dyn EventStream>;

    /// Subscribes to the conversation of an agent of the session, from its start. None when it cannot be read.
    fn subscribe_agent(&self, agent_id: &str) -> Option<Box<dyn EventStream>>;

    /// What the session is doing.
    fn view(&self) -> BoxFuture<'_, Result<SessionView, RequestError>>;

    /// Stops the turn that runs, if one does. Inputs that wait keep their place.
    fn interrupt(&self, by: Actor) -> BoxFuture<'_, Result<InterruptReceipt, RequestError>>;

    /// Leaves the session. One that this process drives ends, and everything of it is written when this completes; any other
    /// one is only left.
    fn close(&self, leave: Leave) -> BoxFuture<'_, ()>;
}
