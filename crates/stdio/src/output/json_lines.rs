//! Every message as a JSON line on stdout. `line_length` keeps lines as short as readers need them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_protocol::messages::StreamMessage;
use qoder_runtime::events::{Event, Sink, Wants};
use qoder_runtime::sessions::new_id;
use qoder_types::display::escape_json;
use serde::Serialize;
use serde_json::Value;

use super::line_length::{self, LONGEST_LINE};
use crate::console::{Console, first_retry};

/// Pieces of replies up to this length fit into a line however their characters are escaped.
const SHORT_EVENT: usize = 128 * 1024;

/// What a reader of lines wants besides the messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Pieces of replies.
    pub partial: bool,
    /// Warnings on stderr.
    pub verbose: bool,
    /// When hooks run and what they answer.
    pub hook_events: bool,
    /// On stderr, that a model call is tried again.
    pub first_retry: bool,
    /// Whether the session is running, idle or waiting; and whether that is for the SDK alone.
    pub session_state: Option<StateFor>,
}

/// For whom session states are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFor {
    /// The SDK reads them and hides them from its caller.
    Sdk,
    /// The caller asked for them.
    Caller,
}

/// Every message as a line.
pub struct JsonLines {
    wanted: Wanted,
    console: Arc<dyn Console>,
    /// True when the reader takes how servers are doing also before the first init message. Other programs expect that
    /// message first.
    early_status: AtomicBool,
    state: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    session_id: String,
}

impl JsonLines {
    /// A sink that prints what is wanted.
    pub fn new(wanted: Wanted, console: Arc<dyn Console>) -> Self {
        Self { wanted, console, early_status: AtomicBool::new(false), state: Mutex::default() }
    }

    /// The reader is one of our SDKs: it takes how servers are doing at any time.
    pub fn want_early_status(&self) {
        self.early_status.store(true, Ordering::Relaxed);
    }

    /// A line of the control protocol.
    pub fn control(&self, line: &impl Serialize) -> std::io::Result<()> {
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        lines.buffer.clear();
        serde_json::to_writer(&mut lines.buffer, line)?;
        escape_json(&mut lines.buffer);
        if lines.buffer.len() > LONGEST_LINE {
            let too_long =
                format!("it has {} bytes, and readers of this protocol stop at 1 MiB", lines.buffer.len());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, too_long));
        }
        self.console.write_line(&mut lines.buffer)
    }

    /// The value as it fits into a line.
    pub fn bounded(&self, value: Value) -> Value {
        line_length::cut(&value).unwrap_or(value)
    }

    fn message(&self, message: &StreamMessage) -> std::io::Result<()> {
        if self.wanted.first_retry
            && let Some(text) = first_retry(message)
        {
            self.console.print_note(&text);
        }
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = session_of(message) {
            id.clone_into(&mut lines.session_id);
        }
        if is_status(message) && lines.session_id.is_empty() && !self.early_status.load(Ordering::Relaxed) {
            return Ok(());
        }
        lines.buffer.clear();
        serde_json::to_writer(&mut lines.buffer, message)?;
        line_length::fit(&mut lines.buffer);
        if self.wanted.session_state == Some(StateFor::Sdk) && is_state(message) {
            lines.buffer.pop();
            lines.buffer.extend_from_slice(b",\"sdk_host_only\":true}");
        }
        self.console.write_line(&mut lines.buffer)
    }

    /// A piece of a reply; a large one as several.
    fn partial(&self, event: &str, parent_tool_use_id: Option<&str>) -> std::io::Result<()> {
        if event.len() <= SHORT_EVENT {
            return self.write_partial(event, parent_tool_use_id);
        }
        line_length::pieces(event).iter().try_for_each(|piece| self.write_partial(piece, parent_tool_use_id))
    }

    /// Written by hand around the provider's own text, so that a piece costs no parsing.
    fn write_partial(&self, event: &str, parent_tool_use_id: Option<&str>) -> std::io::Result<()> {
        let parent = serde_json::to_string(&parent_tool_use_id).map_err(std::io::Error::other)?;
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Lines { buffer, session_id } = &mut *lines;
        buffer.clear();
        buffer.extend_from_slice(b"{\"type\":\"stream_event\",\"event\":");
        buffer.extend_from_slice(event.as_bytes());
        buffer.extend_from_slice(b",\"parent_tool_use_id\":");
        buffer.extend_from_slice(parent.as_bytes());
        buffer.extend_from_slice(b",\"session_id\":\"");
        buffer.extend_from_slice(session_id.as_bytes());
        buffer.extend_from_slice(b"\",\"uuid\":\"");
        buffer.extend_from_slice(new_id().as_bytes());
        buffer.extend_from_slice(b"\"}");
        self.console.write_line(buffer)
    }
}

/// The init message comes first and names the session.
fn session_of(message: &StreamMessage) -> Option<&str> {
    match message {
        StreamMessage::System(qoder_protocol::messages::SystemMessage::Init(init)) => Some(&init.session_id),
        _ => None,
    }
}

fn is_status(message: &StreamMessage) -> bool {
    matches!(message, StreamMessage::System(qoder_protocol::messages::SystemMessage::McpStatusChange { .. }))
}

fn is_state(message: &StreamMessage) -> bool {
    matches!(
        message,
        StreamMessage::System(qoder_protocol::messages::SystemMessage::SessionStateChanged { .. })
    )
}

impl Sink for JsonLines {
    fn wants(&self) -> Wants {
        Wants {
            partial: self.wanted.partial,
            tool_output: false,
            session_state: self.wanted.session_state.is_some(),
            hook_events: self.wanted.hook_events,
            ..Wants::default()
        }
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => self.message(message),
            Event::Partial { event, parent_tool_use_id } => self.partial(event, parent_tool_use_id),
            Event::ToolOutput { .. } | Event::Asked(_) | Event::Resolved { .. } => Ok(()),
            Event::Warning(text) => {
                if self.wanted.verbose {
                    self.console.print_note(&format!("warning: {text}"));
                }
                Ok(())
            }
        }
    }
}
