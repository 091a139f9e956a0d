//! The interactive terminal, through the real program in a pseudo-terminal.

mod attached;
mod basics;
mod questions;
mod resuming;
mod support;
