//! The built-in tools from outside, one module per subject. `common` is a bench to try them on. One program, because
//! each one more would be linked with everything that the tools use.

mod ask;
mod common;
mod definitions_and_input;
mod files;
mod host;
mod mcp_without_servers;
mod sandbox;
mod shell;
mod tasks;
mod web;
mod worktree;
