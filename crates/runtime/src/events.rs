//! What a front hears while a session is driven. Messages follow records; partial replies and tool output are
//! ephemeral. A host that fails to take an event stops the drive; the turn stays open and can be resumed.

use futures::future::BoxFuture;
use qoder_types::wire::StreamMessage;
use qoder_types::{Decision, PermissionUpdate};
use serde_json::Value;

/// One event.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message in its documented shape.
    Message(&'a StreamMessage<'a>),
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
}

/// Whoever listens.
pub trait Host: Send + Sync {
    /// True when partial replies are wanted.
    fn wants_partial(&self) -> bool;
    /// True when the output of running tools is wanted.
    fn wants_tool_output(&self) -> bool;
    /// Completes when whoever reads has kept up. The driver waits for it between events, and does what it is told
    /// meanwhile; an event that comes anyway is taken.
    fn ready(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    /// True when `ready` would complete at once; asked often.
    fn is_ready(&self) -> bool {
        true
    }
    /// Takes an event.
    fn emit(&self, event: Event<'_>) -> std::io::Result<()>;
    /// Nothing follows any more: what was held back is given.
    ///
    /// # Errors
    /// When nobody takes it.
    fn end(&self) -> std::io::Result<()> {
        Ok(())
    }
    /// True when the host wants to hear whether the session is running, idle or waiting for somebody.
    fn wants_session_state(&self) -> bool {
        false
    }
    /// True when the host wants to hear of every hook that is called. Of those at the start of a session it always hears.
    fn wants_hook_events(&self) -> bool {
        false
    }
    /// True when somebody behind the host answers questions.
    fn answers(&self) -> bool {
        false
    }
    /// Puts a question to whoever is behind the host. Dropping the future withdraws it. Without an answer the call is
    /// denied.
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        drop(question);
        Box::pin(std::future::ready(None))
    }
}

/// A call that somebody has to decide about.
#[derive(Debug, Clone)]
pub struct PermissionQuestion {
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub input: Value,
    /// Why it is asked.
    pub decision: Decision,
    /// Changes that would make the question unnecessary the next time.
    pub suggestions: Vec<PermissionUpdate>,
    /// The agent that made the call, when it is not the main one.
    pub agent_id: Option<String>,
}

/// What somebody answered.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// True to let the call run.
    pub allow: bool,
    /// For a denial: what the model is told.
    pub message: Option<String>,
    /// The input to use in place of the model's.
    pub updated_input: Option<Value>,
    /// Changes of permissions that come with the answer.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// For a denial: stop the turn as well.
    pub interrupt: bool,
    /// Who answered.
    pub by: String,
}
