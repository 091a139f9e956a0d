//! Connections to a SQLite database: one that writes, and a few that read.

mod line;
mod readers;
mod writer;

pub use line::Line;
pub(super) use line::pass;
pub(super) use readers::Readers;
pub(super) use writer::{DatabaseFile, Writer};
