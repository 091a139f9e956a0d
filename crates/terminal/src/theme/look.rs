//! How cells are drawn: the width, the theme, the signs that the terminal can show, and how much is shown.

use std::time::Instant;

use super::{Ink, Theme};
use ratatui_core::text::Span;

/// Signs that stand for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signs {
    /// In front of a call.
    pub(crate) call: &'static str,
    /// Something failed.
    pub(crate) bad: &'static str,
    /// Something to take care of.
    pub(crate) warning: &'static str,
    /// For information.
    pub(crate) info: &'static str,
    /// A line across.
    pub(crate) rule: &'static str,
    /// Something follows that is not shown.
    pub(crate) more: &'static str,
    /// The chosen row.
    pub(crate) chosen: &'static str,
    /// Lines that are removed.
    pub(crate) minus: &'static str,
    /// Between facts of a line.
    pub(crate) dot: &'static str,
    /// Leads from one thing to another.
    pub(crate) arrow: &'static str,
    /// A bullet of a list.
    pub(crate) bullet: &'static str,
    /// A bar beside a quotation.
    pub(crate) bar: &'static str,
    /// Frames of the sign of life.
    pub(crate) spinner: &'static [&'static str],
}

impl Signs {
    /// Those that a terminal can show.
    pub(crate) fn of(unicode: bool) -> Self {
        if unicode {
            Self {
                call: "●",
                bad: "✗",
                warning: "!",
                info: "·",
                rule: "──",
                more: "…",
                chosen: "›",
                minus: "−",
                dot: "·",
                arrow: "→",
                bullet: "•",
                bar: "│",
                spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
            }
        } else {
            Self {
                call: "*",
                bad: "x",
                warning: "!",
                info: "-",
                rule: "--",
                more: "...",
                chosen: ">",
                minus: "-",
                dot: "-",
                arrow: "->",
                bullet: "-",
                bar: "|",
                spinner: &["|", "/", "-", "\\"],
            }
        }
    }
}

/// How much of a cell is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What the scrollback gets.
    Short,
    /// Everything, for an overlay.
    Whole,
}

/// How cells are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    /// Columns.
    pub(crate) width: usize,
    /// Colours.
    pub(crate) theme: &'a Theme,
    /// Signs.
    pub(crate) signs: Signs,
    /// True: nothing ticks.
    pub(crate) still: bool,
    /// True: thinking is shown whole.
    pub(crate) full_thinking: bool,
    /// Lines of output that a finished command shows.
    pub(crate) output_lines: usize,
    /// The working directory; paths below it are shortened.
    pub(crate) cwd: &'a str,
    /// How much is shown.
    pub(crate) extent: Extent,
    /// The present moment.
    pub(crate) now: Instant,
}

impl Look<'_> {
    /// A text that means this.
    pub(crate) fn span(&self, ink: Ink, text: impl Into<String>) -> Span<'static> {
        self.theme.span(ink, text)
    }
}
