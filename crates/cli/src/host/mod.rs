//! Hosts: how the events of a session reach the person or program outside. One per output format; the terminal one adds
//! progress on stderr.

mod json_lines;
mod text;

use std::io::Write;
use std::sync::Arc;

use qoder_runtime::events::Host;

use crate::arguments::OutputFormat;
use crate::exit::Fault;

pub use json_lines::{JsonLines, StateFor, Wanted};

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
pub fn make(view: View) -> Arc<dyn Host> {
    match view.format {
        OutputFormat::StreamJson => Arc::new(JsonLines::new(Wanted {
            partial: view.partial,
            verbose: view.verbose,
            hook_events: view.hook_events,
            ..Wanted::default()
        })),
        OutputFormat::Json => Arc::new(json_lines::ResultOnly::new(view.verbose, view.last_result)),
        OutputFormat::Text => Arc::new(text::Text::new(view.verbose)),
    }
}

/// A line on stderr that a person may want to see; control characters are shown, not obeyed.
pub fn tell(text: &str) {
    let clean: String =
        text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
    // Nobody is left to tell when stderr is closed; the work goes on.
    let _ = writeln!(std::io::stderr(), "{clean}");
}

/// A line on stdout with words of files, models or other programs: what could move the cursor or hide words is shown, not
/// obeyed.
pub fn show(text: &str) -> Result<(), Fault> {
    say(&qoder_core::shell::escaped_for_display(text))
}

/// A line on stdout. Whoever read it may be gone, which is no reason to panic.
pub fn say(text: &str) -> Result<(), Fault> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Fault::output(&error))
}
