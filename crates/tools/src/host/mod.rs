//! Tools in another process: the tool host, which runs them inside of a session's environment, and what speaks with it.
//!
//! Gate, accesses, records and redaction stay with the caller. Messages are JSON lines over pipes, and the host is not trusted:
//! commands of the session run beside it. It ends with its pipe.

mod error;
mod files;
mod lines;
mod link;
mod message;
mod pending;
mod remote;
mod script;
mod serve;
mod serve_asking;
mod serve_call;
mod serve_files;
mod tasks;
mod tool_host;

pub use error::HostError;
pub use files::HostFile;
pub use message::{HostSettings, Start};
pub use script::ScriptResult;
pub use tool_host::{Launch, Launched, ToolHost};

pub(crate) use remote::remote;
pub(crate) use serve::serve;
