//! What happens without a client that waits.

pub(super) mod webhooks;
