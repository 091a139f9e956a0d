//! The result alone, as one JSON object on stdout.

use std::sync::{Mutex, PoisonError};

use qoder_protocol::messages::StreamMessage;
use qoder_runtime::events::{Event, Sink};

use super::tell_first_retry;
use crate::screen::{print_note, write_json_line};

/// The result alone, as one object.
pub struct ResultOnly {
    verbose: bool,
    /// The latest result, when only the last one of the run is wanted.
    held: Option<Mutex<Vec<u8>>>,
}

impl ResultOnly {
    /// A sink that prints the result.
    pub fn new(verbose: bool, only_last: bool) -> Self {
        Self { verbose, held: only_last.then(Mutex::default) }
    }
}

impl Sink for ResultOnly {
    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message @ StreamMessage::Result(_)) => {
                let mut line = serde_json::to_vec(message)?;
                match &self.held {
                    Some(held) => *held.lock().unwrap_or_else(PoisonError::into_inner) = line,
                    None => write_json_line(&mut line)?,
                }
                Ok(())
            }
            Event::Warning(text) if self.verbose => {
                print_note(&format!("warning: {text}"));
                Ok(())
            }
            Event::Message(message @ StreamMessage::System(_)) => {
                tell_first_retry(message);
                Ok(())
            }
            Event::Message(_)
            | Event::Partial { .. }
            | Event::ToolOutput { .. }
            | Event::Warning(_)
            | Event::Asked(_)
            | Event::Resolved { .. } => Ok(()),
        }
    }

    fn end(&self) -> std::io::Result<()> {
        let Some(held) = &self.held else { return Ok(()) };
        let mut line = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
        if line.is_empty() { Ok(()) } else { write_json_line(&mut line) }
    }
}
