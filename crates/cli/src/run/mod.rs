//! A run: one prompt that is printed, or messages as JSON lines. Its options, its input, its signals and its end.

pub mod after;
pub mod agents_flag;
pub mod announce;
mod choice;
pub mod control;
pub mod host;
pub mod input;
pub mod options;
pub mod print;
pub mod signals;

pub use choice::session_choice;
