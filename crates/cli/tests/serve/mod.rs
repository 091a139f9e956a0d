//! `qodercli serve` as clients and operators meet it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod crash;
mod interrupts;
mod mcp_server;
mod pending;
mod policies;
mod seed_examples;
mod support;
