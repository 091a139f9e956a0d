//! The built-in tools: Bash, Read, Edit, Write, Glob, Grep and TodoWrite, one file each.
//!
//! Owns running processes, reading and replacing files, searching, and the one mechanism that bounds output. A tool
//! decides nothing about permission: it declares what it would touch, and the gate judges that before it runs. Every
//! file is opened by its real path without following further links, so that what was judged is what is used.

mod atomic;
mod bash;
mod bounds;
mod capture;
mod edit;
mod encoding;
mod escaped;
mod exit_status;
mod files;
mod glob;
mod grep;
mod grep_sink;
mod guard;
mod near_miss;
pub mod paths;
mod process;
mod read;
mod read_image;
mod read_notebook;
mod read_pdf;
mod read_text;
pub mod sandbox;
mod schema;
mod shared;
mod todo_write;
mod walk;
mod work;
mod write;

use std::sync::Arc;

use qoder_core::ports::Tool;

pub use escaped::own_process_tree;
pub use shared::SessionShared;

/// What a person may set about the tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// How long a command may run when the model names no time, in milliseconds.
    pub bash_default_timeout_ms: u64,
    /// The longest time a command may run, in milliseconds.
    pub bash_max_timeout_ms: u64,
    /// How long a command may stay silent, in seconds; 0 switches the limit off.
    pub bash_inactivity_seconds: u64,
    /// Whether Glob and Grep leave out what ignore files name.
    pub respect_gitignore: bool,
    /// What confines commands; `None` leaves them free.
    pub sandbox: Option<Arc<sandbox::Sandbox>>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            bash_default_timeout_ms: 120_000,
            bash_max_timeout_ms: 600_000,
            bash_inactivity_seconds: 300,
            respect_gitignore: true,
            sandbox: None,
        }
    }
}

/// All built-in tools, in the order in which they are advertised. Cheap: schemas are built at their first use.
#[must_use]
pub fn built_in(settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::BashTool::new(settings)),
        Arc::new(read::ReadTool),
        Arc::new(edit::EditTool),
        Arc::new(write::WriteTool),
        Arc::new(glob::GlobTool::new(settings)),
        Arc::new(grep::GrepTool::new(settings)),
        Arc::new(todo_write::TodoWriteTool),
    ]
}
