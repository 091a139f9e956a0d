//! Colours, and lines that have them. The only place with escape sequences for a terminal: text is escaped as it becomes
//! part of a line, so that no sequence in it is ours. Colour only on a terminal whose owner has not set NO_COLOR.

use std::collections::BTreeMap;

use qoder_types::display::escaped_for_display;

/// How text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Bold,
    Faint,
    Name,
    Good,
    Warning,
    Bad,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "1",
            Self::Faint => "2",
            Self::Name => "36",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// For stdout.
    pub fn of_stdout(environment: &BTreeMap<String, String>) -> Self {
        Self(super::stdout_is_terminal() && is_wanted(environment))
    }

    /// For stderr.
    pub fn of_stderr(environment: &BTreeMap<String, String>) -> Self {
        Self(super::stderr_is_terminal() && is_wanted(environment))
    }

    /// A line to add to.
    pub fn line(self) -> Painted {
        Painted { paint: self, text: String::new() }
    }
}

fn is_wanted(environment: &BTreeMap<String, String>) -> bool {
    let refused = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = environment.get("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb
}

/// Text for a terminal: everything in it is escaped but the colours.
#[derive(Debug, Clone)]
pub struct Painted {
    paint: Paint,
    text: String,
}

impl Painted {
    /// Adds text without a colour.
    pub fn plain(self, text: &str) -> Self {
        self.ink(Ink::Plain, text)
    }

    /// Adds text in a colour.
    pub fn ink(mut self, ink: Ink, text: &str) -> Self {
        let shown = escaped_for_display(text);
        if !self.paint.0 || ink == Ink::Plain || text.is_empty() {
            self.text.push_str(&shown);
        } else {
            self.text.push_str(&format!("\u{1b}[{}m{shown}\u{1b}[0m", ink.code()));
        }
        self
    }

    /// What goes to the terminal.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}
