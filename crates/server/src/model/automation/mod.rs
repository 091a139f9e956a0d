//! What happens without a client that waits: notices to endpoints, and sessions that are created by a schedule.

pub mod delivery;
pub mod deployment;
pub mod endpoint;
pub mod happening;
pub mod run;
pub mod schedule;
