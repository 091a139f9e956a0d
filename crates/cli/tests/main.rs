//! The program `qodercli` as people, scripts and hosts meet it.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod agents;
mod bypasses;
mod checkpoints;
mod commands;
mod crash;
mod hooks;
mod images;
mod mcp;
mod mcp_conformance;
mod plugins;
mod protocol;
mod screen;
#[cfg(feature = "server")]
mod serve;
mod sessions;
mod terminal;
mod turns;
