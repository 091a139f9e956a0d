//! The settings of the built-in tools: limits, hosts, the sandbox, and the services that a session provides.

use std::sync::Arc;

use qoder_core::images::ImageModel;
use qoder_core::ports::McpPort;
use qoder_process::sandbox::Sandbox;
use qoder_types::tool::{SHELL_INACTIVITY_SECONDS, SHELL_TIMEOUT_MS};

use crate::web::hosts::{DeniedHosts, NameLookup, PrivateHosts, SystemLookup};
use crate::web::search_provider::SearchSettings;

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
    pub sandbox: Option<Arc<Sandbox>>,
    /// The MCP servers of the session; without them their tools say how one is configured.
    pub mcp: Option<Arc<dyn McpPort>>,
    /// Makes pictures; without it ImageGen is not offered.
    pub image_model: Option<Arc<dyn ImageModel>>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            bash_default_timeout_ms: SHELL_TIMEOUT_MS,
            bash_max_timeout_ms: 600_000,
            bash_inactivity_seconds: SHELL_INACTIVITY_SECONDS,
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
