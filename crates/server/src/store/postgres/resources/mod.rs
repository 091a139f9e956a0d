//! Agents, environments and the other resources beside sessions: one file a resource.

pub(super) mod agents;
pub(super) mod deliveries;
mod deployments;
pub(super) mod environments;
mod files;
mod memories;
mod memory;
pub(super) mod memory_stores;
pub(super) mod runs;
mod skills;
mod vaults;
mod webhooks;
pub(super) mod work_items;
