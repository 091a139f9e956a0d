//! Sessions: what they are created with, what clients send into them, and what happens in them.

pub mod admission;
#[cfg(test)]
mod admission_tests;
pub mod budget;
pub mod content;
pub mod event;
pub mod inputs;
pub mod outcome;
pub mod resources;
pub mod session;
pub mod status;
pub mod thread;
pub mod usage;
pub mod work_items;
