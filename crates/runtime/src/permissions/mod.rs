//! Permissions of a session: the gate, what it learns about paths, advice for denials, and changes of rules.

mod advice;
mod gate;
mod local_files;
mod mcp_tool;
mod tool_policies;
mod updates;

pub(crate) use advice::OpenQuestion;
pub use gate::{CallInPlace, Gate, Unattended};
pub use local_files::LocalFiles;
pub use mcp_tool::ask_tool;
pub use updates::PermissionUpdates;
