//! Attempts to pass the gate by way of what surrounds a turn: skills, commands, agents, plugins, hooks and their scripts, and
//! MCP servers. Every attempt must come to nothing, and an ordinary neighbour of it must still work.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod agents;
mod commands;
mod hooks;
mod plugins;
mod scripts;
mod servers;
mod skills;
