//! What all built-in tools share: how they declare themselves, read their input, refuse, and work off the async threads.

pub(crate) mod blocking;
pub(crate) mod declared;
pub(crate) mod refusal;
pub(crate) mod schema;
