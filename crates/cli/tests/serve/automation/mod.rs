//! What the server does without a client that waits.

mod deployments;
mod receiver;
mod webhooks;
