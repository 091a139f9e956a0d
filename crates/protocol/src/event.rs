//! What a subscriber reads of a session, and what it may want besides. The same events come from a session in this process,
//! from one that another process drives, and from one on a server.

use std::sync::Arc;

use crate::elicitation::Elicitation;
use crate::messages::StreamMessage;
use crate::question::{ActionId, Question, Resolution};

/// What a subscriber reads.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A message.
    Message(Box<StreamMessage>),
    /// A piece of a reply.
    Partial {
        /// The JSON text of an Anthropic-shaped stream event.
        event: String,
        /// The `Agent` call this belongs to; none on the main thread.
        parent_tool_use_id: Option<String>,
    },
    /// A piece of a running tool's output.
    ToolOutput {
        /// The call.
        tool_use_id: String,
        /// The piece.
        text: String,
    },
    /// Something a person should know that no message carries.
    Warning(String),
    /// A question is open.
    Asked(Arc<Question>),
    /// A question is closed.
    Resolved {
        /// The question.
        action: ActionId,
        /// What became of it.
        resolution: Resolution,
    },
    /// An MCP server waits for input of a person.
    Elicited(Arc<Elicitation>),
    /// A server's question is closed: answered here or elsewhere, or taken back.
    ElicitationClosed {
        /// The question.
        elicitation_id: String,
    },
    /// Everything that was on record when the subscription began has been read.
    CaughtUp,
    /// The reader fell behind: this many events are not here. Messages of records among them are in the log.
    Lagged(u64),
    /// Nothing follows.
    Ended {
        /// Why, when that is not simply that the session is over.
        problem: Option<String>,
    },
}

/// What a subscriber or sink wants besides messages, warnings and questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Pieces of replies.
    pub partial: bool,
    /// The output of running tools.
    pub tool_output: bool,
    /// Whether the session is running, idle or waiting.
    pub session_state: bool,
    /// Every hook that is called. Those at the start of a session are always reported.
    pub hook_events: bool,
    /// True for a subscriber that answers questions: while it is subscribed, the session is attended.
    pub answers: bool,
    /// True for a subscriber that must not lose pieces of replies: one that is behind holds the driver up, in place of losing
    /// what it has not read.
    pub paced: bool,
}

impl Wants {
    /// What either of both wants.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            partial: self.partial || other.partial,
            tool_output: self.tool_output || other.tool_output,
            session_state: self.session_state || other.session_state,
            hook_events: self.hook_events || other.hook_events,
            answers: self.answers || other.answers,
            paced: self.paced || other.paced,
        }
    }
}
