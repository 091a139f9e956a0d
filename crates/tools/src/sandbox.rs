//! The former home of the sandbox, which is in `process` now, with the questions about commands that need the shell reader.

pub use qoder_process::sandbox::*;

pub use crate::shell::sandbox_choice::{is_excluded, leaves_sandbox};
