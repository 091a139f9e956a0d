//! Hosts: how the events of a session reach the person or program outside. One per output format; the terminal one adds
//! progress on stderr.

mod result_only;
mod terminal;
mod text;

use std::sync::Arc;

use qoder_protocol::messages::StreamMessage;
use qoder_runtime::events::Sink;
use qoder_stdio::{JsonLines, Wanted};

use self::terminal::{Attended, Person};
use crate::command_line::arguments::OutputFormat;
use crate::screen::{Streams, print_note};

/// Says on stderr that a model call is tried again, the first time.
fn tell_first_retry(message: &StreamMessage) {
    if let Some(text) = qoder_stdio::first_retry(message) {
        print_note(&text);
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

/// The host for a view, with the person at the terminal where there is one. `keeps` says whether answers that are to last
/// are written into the settings of the folder.
pub fn attended(view: View, keeps: bool) -> Arc<dyn Sink> {
    let (sink, spinner): (Box<dyn Sink>, _) = match view.format {
        OutputFormat::Text => {
            let text = text::Text::new(view.verbose);
            let spinner = text.spinner();
            (Box::new(text), spinner)
        }
        OutputFormat::Json | OutputFormat::StreamJson => (boxed(view), None),
    };
    match Person::at_terminal(spinner, keeps) {
        Some(person) => Arc::new(Attended::new(sink, person)),
        None => Arc::from(sink),
    }
}

/// The host for a view, which asks no one.
pub fn make(view: View) -> Arc<dyn Sink> {
    Arc::from(boxed(view))
}

fn boxed(view: View) -> Box<dyn Sink> {
    match view.format {
        OutputFormat::StreamJson => {
            let wanted = Wanted {
                partial: view.partial,
                verbose: view.verbose,
                hook_events: view.hook_events,
                first_retry: true,
                ..Wanted::default()
            };
            Box::new(JsonLines::new(wanted, Arc::new(Streams)))
        }
        OutputFormat::Json => Box::new(result_only::ResultOnly::new(view.verbose, view.last_result)),
        OutputFormat::Text => Box::new(text::Text::new(view.verbose)),
    }
}
