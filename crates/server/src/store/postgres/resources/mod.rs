//! What sessions are made from: agents and environments.

pub(super) mod agents;
pub(super) mod environments;
