//! The interactive terminal, through the real program in a pseudo-terminal.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attached;
mod basics;
mod composing;
mod ending;
mod line_mode;
mod managing;
#[cfg(feature = "server")]
mod on_a_server;
mod questions;
mod recording;
mod resizing;
mod resuming;
mod support;
mod tmux;
mod untrusted_text;
