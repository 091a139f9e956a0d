//! The Bash tool: which commands are confined, how git queries are made harmless, and what exit codes mean.

pub(crate) mod bash;
mod exit_status;
mod git_safety;
pub(crate) mod sandbox_choice;
mod sandbox_result;
