//! What the server does without a client that waits.

mod receiver;
mod webhooks;
