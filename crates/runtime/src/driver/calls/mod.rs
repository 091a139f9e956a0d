//! The calls of a reply: deciding about them, asking, running them, and taking results that come from outside.

pub(super) mod asking;
pub(super) mod decide;
mod external;
mod recheck;
pub(super) mod tools;
