//! A run: one prompt that is printed, or messages as JSON lines. Its options, its input, its signals and its end.

pub mod after;
pub mod agents_flag;
pub mod announce;
mod choice;
pub mod host;
pub mod input;
mod lines;
pub mod options;
pub mod print;
mod server_flags;
pub mod signals;

pub use choice::session_choice;
pub use server_flags::server_flags;
