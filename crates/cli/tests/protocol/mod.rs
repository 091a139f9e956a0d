//! The control protocol of the real program, as programs speak it that start it: handshake, questions, servers that live
//! in the host, requests while a session runs, and the things that break real clients. One module per behaviour.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod host;

mod agent_logs;
mod agents;
mod declared_options;
mod end_of_input;
mod handshake;
mod hooks;
mod hooks_explained;
mod large_lines;
mod model_policy;
mod notices;
mod outside_servers;
mod prompt_tool;
mod questions;
mod readable_lines;
mod requests;
mod resumed;
mod server_credentials;
mod servers;
mod session_mirror;
mod session_state;
#[cfg(test)]
mod settings_hooks;
mod telemetry;
mod two_processes;
