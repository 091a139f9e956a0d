//! Driving sessions: a node claims those that are due, and gives each a seat, which opens it with the runtime, commits what
//! happens and lets it rest when nothing is left to do.

mod artifacts;
mod inbox;
mod log;
mod memory;
mod mounts;
mod node;
mod opening;
mod options;
mod seat;
mod servers;
mod shared;
mod sink;
mod skills;
mod stored_session;
mod vaults;

pub use node::{Membership, Node, NodeSettings, NodeStatistics, announce};
pub use options::RuntimeSettings;
