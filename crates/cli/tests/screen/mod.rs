//! What others wrote on a terminal, through the real program on a pseudo-terminal: every field of every command that
//! shows names, descriptions, commands, errors or answers, with everything in it that could steer a terminal or hide.
//! One module per place where such text comes from.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod answers;
mod arguments;
mod definitions;
mod json;
mod servers;
mod sessions;
