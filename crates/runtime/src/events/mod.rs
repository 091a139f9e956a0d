//! What a session reports while it is driven, and who gets it. A [`Sink`] takes events as they happen, before the effect
//! that they announce; any number of them may be attached to the session's [`Hub`]. A sink that fails to take an event
//! stops the drive; the turn stays open and can be resumed.

mod answering;
pub(crate) mod hook_outlet;
mod hub;
mod notice;
mod questions;
mod state;

use futures::future::BoxFuture;
use qoder_protocol::messages::StreamMessage;
use qoder_protocol::{ActionId, Question, Resolution};
use tokio::sync::mpsc;

pub use answering::Answering;
pub use hub::{AttachedSink, Hub};
pub use notice::{Notice, NoticeKind};
pub use qoder_protocol::{AnswerError, Wants};
pub(crate) use questions::Barrier;
pub use questions::{AnswerSender, ArrivedAnswer, Asking, Receipt};
pub(crate) use state::emit_state;

/// One event.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A message in its documented shape.
    Message(&'a StreamMessage),
    /// A piece of a reply.
    Partial {
        /// The JSON text of an Anthropic-shaped stream event.
        event: &'a str,
        /// The `Agent` call this belongs to; none on the main thread.
        parent_tool_use_id: Option<&'a str>,
    },
    /// A piece of a running tool's output.
    ToolOutput {
        /// The call.
        tool_use_id: &'a str,
        /// The piece.
        text: &'a str,
    },
    /// Something a person should know that no message carries.
    Warning(&'a str),
    /// A question is open. The first answer that arrives counts.
    Asked(&'a Asking),
    /// A question is closed.
    Resolved {
        /// The question.
        action: &'a ActionId,
        /// What became of it.
        resolution: &'a Resolution,
    },
}

/// Takes the events of a session.
pub trait Sink: Send + Sync {
    /// What it wants to get.
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// Takes an event.
    ///
    /// # Errors
    /// When it can no longer be passed on; the drive stops.
    fn take(&self, event: Event<'_>) -> std::io::Result<()>;
    /// True while it answers questions.
    fn answers(&self) -> bool {
        false
    }
    /// Completes when the reader behind it has kept up. The driver waits for it between steps and takes what arrives
    /// meanwhile; an event that comes anyway is taken.
    fn ready(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    /// True when `ready` would complete at once; asked often.
    fn is_ready(&self) -> bool {
        true
    }
    /// Nothing follows: what was held back is given.
    ///
    /// # Errors
    /// When it cannot be passed on.
    fn end(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Where a driver's events leave: the session's hub, or for an agent the outlet of its parent with a mark on everything.
pub(crate) trait Outlet: Send + Sync {
    /// What those behind it want to get.
    fn wants(&self) -> Wants;
    /// See [`Sink::ready`].
    fn ready(&self) -> BoxFuture<'static, ()>;
    /// See [`Sink::is_ready`].
    fn is_ready(&self) -> bool;
    /// Passes an event on.
    fn emit(&self, event: Event<'_>) -> std::io::Result<()>;
    /// True while an answerer is attached.
    fn has_answerer(&self) -> bool;
    /// Completes when no answerer is attached.
    fn unattended(&self) -> BoxFuture<'static, ()>;
    /// Opens questions: answers to them arrive at `arrivals` from now on, also before they are put to anyone.
    fn open(&self, questions: Vec<Question>, arrivals: &mpsc::UnboundedSender<ArrivedAnswer>);
    /// Completes when every answer that other processes have left by now was taken to its question.
    fn take_left_answers(&self) -> BoxFuture<'static, ()>;
    /// Puts an open question to every answerer.
    fn ask(&self, action: ActionId) -> std::io::Result<()>;
    /// Closes a question. Answers that come later learn what became of it.
    fn resolve(&self, action: ActionId, resolution: Resolution) -> std::io::Result<()>;
    /// Informs a late answerer what became of the question.
    fn refuse(&self, action: ActionId, late: ArrivedAnswer);
}
