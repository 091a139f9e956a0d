//! Files: reading, writing and editing them by their real path, and putting them back.

pub(crate) mod atomic;
pub(crate) mod difference;
pub(crate) mod edit;
pub(crate) mod encoding;
mod near_miss;
pub(crate) mod notebook;
pub(crate) mod open;
pub mod paths;
pub(crate) mod read;
pub mod restore;
pub(crate) mod write;
