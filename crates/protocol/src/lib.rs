//! What is said at a front: messages, control requests, questions with their answers, and the interface of a session. Plain
//! data and pure functions; every front reads and writes these types, whether bytes cross a pipe or not.

mod answer_error;
mod client;
pub mod control;
mod elicitation;
mod event;
pub mod messages;
mod project;
mod question;

pub use answer_error::AnswerError;
pub use client::{
    BoxFuture, EventStream, InterruptReceipt, Leave, RequestError, SessionClient, SessionState, SessionView,
};
pub use elicitation::{Elicitation, ElicitationAction, ElicitationAnswer};
pub use event::{SessionEvent, Wants};
pub use project::{Projector, denial_text};
/// Nouns of the interface.
pub use qoder_types::record::{InputAdmitted, InputProblem};
pub use qoder_types::{
    Actor, AskKind, Behavior, Message, PermissionMode, PermissionUpdate, RuleValue, UpdateDestination,
};
pub use question::{ActionId, Answer, CallPlace, Question, Resolution, decision_reason_type};
