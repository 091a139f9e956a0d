//! The OpenAI Chat Completions protocol, as OpenAI and the many
//! servers that imitate it speak it. Requests, responses, and what of
//! reasoning must go back are in a file each.

pub(crate) mod reasoning;
pub(crate) mod request;
pub(crate) mod stream;
mod think_tags;

/// In front of the signature of reasoning that came over this protocol.
pub(crate) const SIGNATURE: &str = "chat:";
