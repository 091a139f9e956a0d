//! Worktrees: entering and leaving one, and those of agents.

pub mod agent;
pub(crate) mod enter;
pub(crate) mod exit;
