//! Plugins through the real program: a full one with every part used, what is wrong told with file and line while the rest
//! loads, which of two counts, installing and approving, and reading everything anew while a session runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::protocol::host;

mod support;

mod approving;
mod clashes;
mod full_plugin;
mod installing;
mod problems;
mod protecting;
mod reloading;
mod validating;
