//! Cells as text: what a call is about, what came of it, and the lines that the scrollback and the live area get. Pure functions
//! of a cell and of how it is to look.

mod call;
mod diff;
mod export;
mod render;
#[cfg(test)]
mod snapshot_tests;
mod summary;

pub(crate) use diff::diff_lines;
pub(crate) use export::markdown;
pub(crate) use render::{Kind, is_apart, kind, lines, live_lines, todo_lines};
pub(crate) use summary::{
    call_about, call_outcome, call_output, duration, elapsed_seconds, plural, tool_name,
};
