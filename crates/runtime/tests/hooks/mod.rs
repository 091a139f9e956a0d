//! Hooks around real turns: a session is driven with a scripted model, real tools and hooks that the test brings; what the
//! log holds, what the model reads and what the host reads is checked. One file per behaviour.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod after_calls;
mod agents;
pub mod barrier;
mod before_calls;
mod deny_rules_hold;
mod ends;
mod failures;
mod observers;
mod prompts;
mod questions;
mod resumed;
pub(crate) mod support;
