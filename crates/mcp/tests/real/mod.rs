//! Servers by other authors, over everything that carries messages: what they offer is seen, what they ask is
//! answered, and they end when they shall.

use crate::support;

#[cfg(test)]
mod everything;
#[cfg(test)]
mod newest_revision;
#[cfg(test)]
mod other_servers;
