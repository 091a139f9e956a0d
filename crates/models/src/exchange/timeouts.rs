//! How long a call waits for what.

use std::time::Duration;

use crate::settings::ModelOptions;

/// The longest silence before a call counts as dead.
const IDLE_MS: u64 = 300_000;
const TOTAL_MS: u64 = 600_000;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    idle: Duration,
    total: Duration,
}

impl Timeouts {
    /// The defaults, or `QODER_API_TIMEOUT_MS`.
    pub(crate) fn new(options: &ModelOptions) -> Self {
        let total = options
            .variable("QODER_API_TIMEOUT_MS")
            .and_then(|value| value.parse().ok())
            .filter(|value| *value > 0)
            .unwrap_or(TOTAL_MS);
        Self { idle: Duration::from_millis(IDLE_MS.min(total)), total: Duration::from_millis(total) }
    }

    /// The longest time in all.
    pub(crate) fn total(self) -> Duration {
        self.total
    }

    /// The longest silence.
    pub(crate) fn idle(self) -> Duration {
        self.idle
    }
}
