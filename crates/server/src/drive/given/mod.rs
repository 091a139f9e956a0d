//! What a session is given before it wakes: files, repositories, what its environment sets up, memory stores, skills, credentials, servers and the tool that delivers files.

pub(super) mod artifacts;
pub(super) mod host;
pub(super) mod memory;
pub(super) mod mounts;
pub(super) mod repositories;
pub(super) mod servers;
pub(super) mod setup;
pub(super) mod skills;
pub(super) mod vaults;
