//! Connections to a SQLite database: one that writes, and a few that read.

mod readers;
mod writer;

pub(super) use readers::Readers;
pub(super) use writer::Writer;
