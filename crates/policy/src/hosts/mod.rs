//! Hosts: what the spelling of an address says about it, and the patterns of rules that name hosts.

mod address;
pub(crate) mod domain;

pub use address::{HostKind, host_is_public_name, host_matches, is_public, normal_host};
