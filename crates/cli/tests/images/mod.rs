//! The ImageGen tool through the real program: when it is offered, what the endpoint is asked, which files are written
//! under which rules, what the model is shown, what it costs, and how it fails. One module per behaviour.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::protocol::host;

mod support;

mod addresses;
mod choosing;
mod ending;
mod failing;
mod making;
mod permissions;
