//! `qodercli serve` as clients and operators meet it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod automation;
mod containers;
mod crash;
mod deployment;
mod edge;
mod files;
mod fuzz;
mod interrupts;
mod isolation;
mod mcp_server;
mod memory;
mod operations;
mod outcomes;
mod pages;
mod pending;
mod policies;
mod postgres;
mod repositories;
mod resources;
mod seed_examples;
mod setup_scripts;
mod skills;
mod streams;
pub mod support;
mod threads;
mod tool_host;
mod usage;
mod vaults;
mod workers;
