//! The front of programs: messages and the control protocol as JSON lines on stdin and stdout. stdin is read while turns
//! run and while stdout blocks; every request is served by a task of its own. The Python and TypeScript SDKs speak to a
//! session through it.

mod asking;
mod console;
mod control;
mod conversation;
mod input;
mod mirror;
mod output;
mod program;
mod reader;

pub use asking::Asks;
pub use console::{Console, first_retry};
pub use control::HandshakeError;
pub use conversation::{Cause, Conversation, Ended, Left, Refusal, StdioError};
pub use output::{JsonLines, StateFor, Wanted};
pub use program::{Program, Signal, Signals};
