//! How many requests a token and a tenant may make.

use serde::Deserialize;

/// How many requests a token and a tenant may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// Requests that change something.
    pub writes_per_minute: u32,
    /// Requests that read.
    pub reads_per_minute: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self { writes_per_minute: 600, reads_per_minute: 6_000 }
    }
}
