//! What a front hears while a session is driven. Messages follow records; partial replies and tool output are
//! ephemeral. A host that fails to take an event stops the drive; the turn stays open and can be resumed.

use qoder_types::wire::StreamMessage;

/// One event.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message in its documented shape.
    Message(&'a StreamMessage<'a>),
    /// A piece of a reply: the JSON text of an Anthropic-shaped stream event.
    Partial(&'a str),
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
    /// Takes an event.
    fn emit(&self, event: Event<'_>) -> std::io::Result<()>;
}
