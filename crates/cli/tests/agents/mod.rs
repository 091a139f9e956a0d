//! Where agents come from, through the real program: sources and shadowed definitions, files that cannot be used, what the
//! settings change, the fields of a definition, and an agent as the main one. One module per behaviour.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod broken;
mod fields;
mod listing;
mod main_agent;
mod main_agent_brings;
mod overrides;
mod sources;
