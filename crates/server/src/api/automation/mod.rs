//! What happens without a client that waits.

pub(super) mod deployments;
mod scheduler;
pub(super) mod webhooks;

pub use scheduler::run_schedules;
