//! The OpenAI Responses protocol, without storage at the provider: reasoning
//! travels encrypted with the conversation. Requests and responses are in a file
//! each, and so is how the items of a response are recognised.

mod items;
pub(crate) mod request;
pub(crate) mod stream;
