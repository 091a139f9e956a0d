//! Memory stores: texts with paths that outlive sessions. Every change of a text is a version that stays.

pub mod memories;
pub mod memory_mount;
pub mod memory_path;
pub mod memory_store;
