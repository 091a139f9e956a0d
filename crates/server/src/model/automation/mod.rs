//! What happens without a client that waits: notices to endpoints.

pub mod delivery;
pub mod endpoint;
pub mod happening;
