//! What a session is given before it wakes: files, memory stores, skills, credentials, servers and the tool that delivers files.

pub(super) mod artifacts;
pub(super) mod memory;
pub(super) mod mounts;
pub(super) mod servers;
pub(super) mod skills;
pub(super) mod vaults;
