//! Driving sessions: a node claims those that are due, and gives each a seat, which opens it with the runtime, commits what
//! happens and lets it rest when nothing is left to do.

mod given;
mod inbox;
mod log;
mod node;
mod opening;
mod options;
mod outcomes;
mod outside_tools;
mod seat;
mod shared;
mod sink;
mod stored_session;
mod team;
mod threads;
mod workspace;

pub use node::{Membership, Node, NodeSettings, NodeStatistics, Peers, announce};
pub use options::RuntimeSettings;
