//! Hosts: how the events of a session reach the person or program outside. One per output format; the terminal one adds
//! progress on stderr.

mod result_only;
mod terminal;
mod text;

use std::sync::Arc;

use qoder_protocol::messages::StreamMessage;
use qoder_runtime::events::Sink;
use qoder_stdio::{JsonLines, Wanted};

use crate::command_line::arguments::OutputFormat;
use crate::screen::{Streams, tell};

/// Says on stderr that a model call is tried again, the first time.
fn tell_first_retry(message: &StreamMessage) {
    if let Some(text) = qoder_stdio::first_retry(message) {
        tell(&text);
    }
}

/// What the host shall show.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The format of stdout.
    pub format: OutputFormat,
    /// Pieces of replies on the stream.
    pub partial: bool,
    /// More on stderr.
    pub verbose: bool,
    /// When hooks run, on the stream.
    pub hook_events: bool,
    /// True when the format of one result stands for the whole run, however many turns it came to.
    pub last_result: bool,
}

/// The host for a view.
pub fn make(view: View) -> Arc<dyn Sink> {
    match view.format {
        OutputFormat::StreamJson => {
            let wanted = Wanted {
                partial: view.partial,
                verbose: view.verbose,
                hook_events: view.hook_events,
                first_retry: true,
                ..Wanted::default()
            };
            Arc::new(JsonLines::new(wanted, Arc::new(Streams)))
        }
        OutputFormat::Json => Arc::new(result_only::ResultOnly::new(view.verbose, view.last_result)),
        OutputFormat::Text => Arc::new(text::Text::new(view.verbose)),
    }
}
