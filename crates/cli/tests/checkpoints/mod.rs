//! Checkpoints of files and rewinding, through the real program: what goes back and what does not, links, subagents, other
//! processes, crashes, a full store, the conversation, and what is refused. One module per behaviour.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::protocol::host;

mod support;

mod agents;
mod command;
mod conversation;
mod crash;
mod files;
mod full;
mod links;
mod processes;
mod records;
mod refusals;
