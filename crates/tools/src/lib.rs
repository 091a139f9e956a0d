//! The built-in tools in folders by subject: commands, files, search, the web, worktrees, tasks, and questions to a person.
//!
//! Owns reading and replacing files, searching, and the one mechanism that bounds output. A tool decides nothing about
//! permission: it declares what it would touch, and the gate judges that before it runs. Every file is opened by its real
//! path without following further links, so that what was judged is what is used.

mod ask;
mod call;
mod files;
mod git;
pub mod host;
mod images;
mod mcp;
mod output;
mod search;
mod settings;
mod shell;
mod tasks;
mod web;
mod worktree;

use std::sync::Arc;
use std::time::Duration;

use qoder_core::ports::Tool;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::call::declared::Declared;
use crate::web::hosts::Hosts;

pub use call::schema::{definition as tool_definition, parse as parse_input};
pub use files::difference::{LineChanges, line_changes};
pub use files::{paths, restore};
pub use output::bounds::bounded_text;
pub use settings::ToolSettings;
pub use shell::sandbox_choice::{is_excluded, leaves_sandbox};
pub use tasks::agent::{AgentStartError, AgentTask};
pub use tasks::register::{Foreground, SessionShared, StopError};
pub use tasks::text::last_lines;
pub use web::hosts::{DeniedHosts, NameLookup, PrivateHosts, SystemLookup};
pub use web::post::{PostError, post_json};
pub use web::search_provider::{SearchService, SearchSettings};
pub use worktree::agent as agent_worktree;

/// All built-in tools, with those in the hands of a tool host that it runs.
#[must_use]
pub fn built_in_with_host(settings: &ToolSettings, host: &Arc<host::ToolHost>) -> Vec<Arc<dyn Tool>> {
    host::remote(built_in(settings), host, settings)
}

/// Runs built-in tools for a caller at the other end of these pipes, until the input ends: the tool host.
///
/// # Errors
/// When a pipe fails, or what comes is not the protocol.
pub async fn serve_tool_host(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> std::io::Result<()> {
    host::serve(input, output, built_in).await
}

/// All built-in tools, in the order in which they are advertised. Cheap: schemas are built at their first use.
#[must_use]
pub fn built_in(settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    let web_limit = Duration::from_millis(settings.web_timeout_ms);
    let hosts = Hosts { private: settings.private_hosts.clone(), lookup: settings.name_lookup.clone() };
    vec![
        Arc::new(shell::bash::BashTool::new(settings)),
        Declared::shared(files::read::ReadTool),
        Declared::shared(files::edit::EditTool),
        Declared::shared(files::write::WriteTool),
        Declared::shared(search::glob::GlobTool::new(settings)),
        Declared::shared(search::grep::GrepTool::new(settings)),
        Declared::shared(tasks::todo::TodoWriteTool),
        Arc::new(tasks::output::TaskOutputTool),
        Arc::new(tasks::stop::TaskStopTool),
        Declared::shared(web::fetch::WebFetchTool::new(hosts, web_limit)),
        Declared::shared(web::search::WebSearchTool::new(settings.search.clone(), web_limit)),
        Declared::shared(files::notebook::edit::NotebookEditTool),
        Declared::shared(worktree::enter::EnterWorktreeTool),
        Declared::shared(worktree::exit::ExitWorktreeTool),
        Declared::shared(ask::question::AskUserQuestionTool),
        Declared::shared(ask::plan::ExitPlanModeTool),
        Declared::shared(mcp::ListMcpResourcesTool(settings.mcp.clone())),
        Declared::shared(mcp::ReadMcpResourceTool(settings.mcp.clone())),
        Declared::shared(mcp::McpTool(settings.mcp.clone())),
        Declared::shared(images::generate::ImageGenTool::new(settings)),
    ]
}
