//! The built-in tools, one file each: commands, files, search, the web, worktrees, notebooks, and questions to a person.
//!
//! Owns running processes, reading and replacing files, searching, and the one mechanism that bounds output. A tool
//! decides nothing about permission: it declares what it would touch, and the gate judges that before it runs. Every
//! file is opened by its real path without following further links, so that what was judged is what is used.

pub mod agent_worktree;
mod ask_user_question;
mod atomic;
mod bash;
mod bounds;
mod capture;
mod captured;
mod declared;
mod difference;
mod edit;
mod encoding;
mod enter_worktree;
mod environment;
mod escaped;
mod exit_plan_mode;
mod exit_status;
mod exit_worktree;
mod files;
mod git;
mod git_safety;
mod glob;
mod grep;
mod grep_sink;
mod guard;
mod hosts;
mod image_files;
mod image_gen;
mod mcp;
mod near_miss;
mod notebook_edit;
mod notebook_text;
pub mod paths;
mod process;
mod process_tree;
mod read;
mod read_image;
mod read_notebook;
mod read_pdf;
mod read_text;
mod regular;
pub mod restore;
pub mod sandbox;
mod schema;
mod search_provider;
mod server_process;
mod shared;
mod task;
mod task_agent;
mod task_output;
mod task_stop;
mod task_text;
mod todo_write;
mod walk;
mod web_cache;
mod web_client;
mod web_error;
mod web_fetch;
mod web_html;
mod web_page;
mod web_post;
mod web_request;
mod web_search;
mod work;
mod write;

use std::sync::Arc;

use qoder_core::images::ImageModel;
use qoder_core::ports::Tool;

use crate::declared::Declared;

pub use bounds::{bounded, bounded_text};
pub use captured::{
    CAPTURED_BYTES, Captured, CapturedListener, CapturedProgram, CapturedRun, CapturedStream,
};
pub use difference::{LineChanges, line_changes};
pub use hosts::{DeniedHosts, NameLookup, PrivateHosts, SystemLookup};
pub use mcp::{McpPort, keep_base64};
pub use process_tree::own_process_tree;
pub use regular::{open_regular, read_regular};
pub use schema::{definition as tool_definition, parse as parse_input};
pub use search_provider::{SearchService, SearchSettings};
pub use server_process::ServerProcess;
pub use shared::{Foreground, SessionShared};
pub use task_agent::AgentTask;
pub use task_text::last_lines;
pub use walk::has_unreadable_ignore_file;
pub use web_post::post_json;

/// What a person may set about the tools.
#[derive(Clone)]
pub struct ToolSettings {
    /// How long a command may run when the model names no time, in milliseconds.
    pub bash_default_timeout_ms: u64,
    /// The longest time a command may run, in milliseconds.
    pub bash_max_timeout_ms: u64,
    /// How long a command may stay silent, in seconds; 0 switches the limit off.
    pub bash_inactivity_seconds: u64,
    /// Whether Glob and Grep leave out what ignore files name.
    pub respect_gitignore: bool,
    /// How long a page or a search may take, in milliseconds.
    pub web_timeout_ms: u64,
    /// Hosts that may be fetched although they are not public.
    pub private_hosts: PrivateHosts,
    /// Hosts that pictures are not fetched from, because a rule denies it or wants to be asked.
    pub denied_hosts: DeniedHosts,
    /// How names become addresses.
    pub name_lookup: Arc<dyn NameLookup>,
    /// The search service; without one WebSearch says how to set it.
    pub search: Option<SearchSettings>,
    /// What confines commands; `None` leaves them free.
    pub sandbox: Option<Arc<sandbox::Sandbox>>,
    /// The MCP servers of the session; without them their tools say how one is configured.
    pub mcp: Option<Arc<dyn McpPort>>,
    /// Makes pictures; without it ImageGen is not offered.
    pub image_model: Option<Arc<dyn ImageModel>>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            bash_default_timeout_ms: 120_000,
            bash_max_timeout_ms: 600_000,
            bash_inactivity_seconds: 300,
            respect_gitignore: true,
            web_timeout_ms: 30_000,
            private_hosts: PrivateHosts::default(),
            denied_hosts: DeniedHosts::default(),
            name_lookup: Arc::new(SystemLookup),
            search: None,
            sandbox: None,
            mcp: None,
            image_model: None,
        }
    }
}

/// All built-in tools, in the order in which they are advertised. Cheap: schemas are built at their first use.
#[must_use]
pub fn built_in(settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::BashTool::new(settings)),
        Declared::shared(read::ReadTool),
        Declared::shared(edit::EditTool),
        Declared::shared(write::WriteTool),
        Declared::shared(glob::GlobTool::new(settings)),
        Declared::shared(grep::GrepTool::new(settings)),
        Declared::shared(todo_write::TodoWriteTool),
        Arc::new(task_output::TaskOutputTool),
        Arc::new(task_stop::TaskStopTool),
        Declared::shared(web_fetch::WebFetchTool::new(settings)),
        Declared::shared(web_search::WebSearchTool::new(settings)),
        Declared::shared(notebook_edit::NotebookEditTool),
        Declared::shared(enter_worktree::EnterWorktreeTool),
        Declared::shared(exit_worktree::ExitWorktreeTool),
        Declared::shared(ask_user_question::AskUserQuestionTool),
        Declared::shared(exit_plan_mode::ExitPlanModeTool),
        Declared::shared(mcp::ListMcpResourcesTool(settings.mcp.clone())),
        Declared::shared(mcp::ReadMcpResourceTool(settings.mcp.clone())),
        Declared::shared(mcp::McpTool(settings.mcp.clone())),
        Declared::shared(image_gen::ImageGenTool::new(settings)),
    ]
}
