//! Text for a terminal: what may be shown of it, how wide it is, and how it is broken into rows. Pure functions.

pub(crate) mod ansi;
mod safe;
mod width;
mod wrap;

pub(crate) use safe::{clipped, expand_tabs, one_line, plain_lines, prose, prose_lines};
pub(crate) use width::{columns, is_uncertain, line_columns};
pub(crate) use wrap::{LongWords, wrap};
