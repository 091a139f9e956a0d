//! What goes to stdout: lines that are never too long, and whether their reader is still there.

mod json_lines;
mod line_length;
mod reader_gone;
mod shown;

pub use json_lines::{JsonLines, StateFor, Wanted};
pub(crate) use reader_gone::ReaderGone;
pub(crate) use shown::{ChangedCut, Shown};
