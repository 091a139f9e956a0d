//! Sessions through their handles: what a program that opens many of them relies on. One file per behaviour.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands_off;
mod external_calls;
mod isolation;
mod parked_agents;
mod session_budget;
mod stays_open;
mod subscribing;
pub(crate) mod support;
mod system_inputs;
mod tool_policies;
mod visible_denials;
