//! Sessions through their handles: what a program that opens many of them relies on. One file per behaviour.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands_off;
mod external_calls;
mod isolation;
mod parked_agents;
mod session_budget;
mod support;
mod system_inputs;
mod visible_denials;
