//! The OpenAI Chat Completions protocol, as OpenAI and the many
//! servers that imitate it speak it. Requests and
//! responses are in a file each.

pub(crate) mod request;
pub(crate) mod stream;
mod think_tags;
