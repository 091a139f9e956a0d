//! The interactive terminal, through the real program in a pseudo-terminal.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attached;
mod basics;
mod questions;
mod resuming;
mod support;
