//! Servers that nobody here wrote, over everything that carries messages: what they offer is seen, what they ask is
//! answered, and they end when they shall.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses its part of the support")]

#[cfg(test)]
mod everything;
#[cfg(test)]
mod newest_revision;
#[cfg(test)]
mod other_servers;
#[path = "../support/mod.rs"]
#[cfg(test)]
mod support;
