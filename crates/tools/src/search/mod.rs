//! Searching: names with Glob, contents with Grep, over one walk that honours ignore files.

pub(crate) mod glob;
pub(crate) mod grep;
mod grep_sink;
pub(crate) mod walk;
