//! What an operator sees: log lines and metrics.

mod log;
mod metrics;

pub use log::{Level, Log};
pub use metrics::{Counted, Metrics, ReadNumber};
