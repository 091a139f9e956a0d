//! The Anthropic Messages protocol. Its blocks and events are the runtime's
//! own, so most passes through unchanged. Requests and responses are in a file
//! each.

pub(crate) mod request;
pub(crate) mod stream;
