//! Everything a session can be asked for. A value of this type is made with the methods of the same names, or as a
//! struct with `..Default::default()`; both say the same. Nothing is started before
//! [`QoderAgentOptions::validate`] is content.

pub(crate) mod agents;
pub(crate) mod auth;
mod builder;
pub(crate) mod model_policy;
pub(crate) mod permission;
mod structured;
mod validate;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::agents::AgentDefinition;
use self::auth::AuthOptions;
use self::model_policy::ModelPolicyProvider;
use self::permission::{CanUseTool, PermissionMode};
use crate::hooks::{HookEvent, HookMatcher};
use crate::mcp::{McpServers, OnAuthExpired, OnElicitation, OnMcpOAuthRequired, OnMcpStatusChange};
use crate::session_store::{SessionStoreFlush, SharedSessionStore};

pub use structured::{
    Effort, SdkPluginConfig, SettingSource, Settings, Skills, SystemPrompt, ThinkingConfig, ToolSet,
};

/// How long `resolve_model` may take unless the options say otherwise.
const RESOLVE_MODEL_TIMEOUT_MS: u64 = 500;
/// How long a control request may take unless the options say otherwise.
const CONTROL_REQUEST_TIMEOUT_MS: u64 = 60_000;

/// Hears lines that are meant for people: warnings of the engine, or what an external program writes to stderr.
pub type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// What a session is asked for. `Default` is a session with nothing special in the current directory.
///
/// ```
/// use qoder_agent_sdk::{PermissionMode, QoderAgentOptions};
///
/// let built = QoderAgentOptions::new().model("auto").max_turns(3).permission_mode(PermissionMode::Plan);
/// let written = QoderAgentOptions {
///     model: Some("auto".to_owned()),
///     max_turns: Some(3),
///     permission_mode: Some(PermissionMode::Plan),
///     ..QoderAgentOptions::default()
/// };
/// assert_eq!(format!("{built:?}"), format!("{written:?}"));
/// ```
#[derive(Clone)]
pub struct QoderAgentOptions {
    /// How the session proves who it is; `None` takes what the environment and the settings say.
    pub auth: Option<AuthOptions>,
    /// Called at most once, when the credentials are no longer accepted.
    pub on_auth_expired: Option<OnAuthExpired>,
    /// The tools that exist; `None` is all.
    pub tools: Option<ToolSet>,
    /// Rules that allow: tools that run without a question.
    pub allowed_tools: Vec<String>,
    /// Rules that deny. They outrank everything else.
    pub disallowed_tools: Vec<String>,
    /// Decides about calls that rules and mode leave open.
    pub can_use_tool: Option<CanUseTool>,
    /// The mode; `None` takes the settings'.
    pub permission_mode: Option<PermissionMode>,
    /// Must be true for `bypassPermissions`.
    pub allow_dangerously_skip_permissions: bool,
    /// An MCP tool that decides in place of `can_use_tool`.
    pub permission_prompt_tool_name: Option<String>,
    /// Model or tier; `scripted:FILE` plays a playbook.
    pub model: Option<String>,
    /// Model to use when the main model fails.
    pub fallback_model: Option<String>,
    /// Chooses the model before each call.
    pub resolve_model: Option<ModelPolicyProvider>,
    /// How long that may take, in milliseconds.
    pub resolve_model_timeout_ms: u64,
    /// The system prompt; `None` is the built-in one.
    pub system_prompt: Option<SystemPrompt>,
    /// Working directory; `None` is the process's own.
    pub cwd: Option<PathBuf>,
    /// True: files of the working directory (settings, memory, rules) are interpreted. Vouch only for folders you know.
    pub trust: bool,
    /// Laid over the process environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<String>>,
    /// Drive this program in place of the engine in process.
    pub cli_path: Option<PathBuf>,
    /// The id of a new session, or of a copy.
    pub session_id: Option<String>,
    /// The session to resume.
    pub resume: Option<String>,
    /// Resume the newest session of the directory.
    pub continue_conversation: bool,
    /// Work on a copy of the session to resume.
    pub fork_session: bool,
    /// With `resume`: continue from this message; what came after it is left out of the conversation.
    pub resume_session_at: Option<String>,
    /// With `resume_session_at`: fail unless everything that is left out belongs to the turn of this prompt.
    pub resume_drops_turn: Option<String>,
    /// False: nothing is kept on disk.
    pub persist_session: bool,
    /// Gets copies of the session's logs, and is where `resume` and `continue_conversation` look.
    pub session_store: Option<SharedSessionStore>,
    /// When copies are handed over.
    pub session_store_flush: SessionStoreFlush,
    /// Model calls per turn.
    pub max_turns: Option<u64>,
    /// Dollars that this run may spend, agents included.
    pub max_budget_usd: Option<f64>,
    /// Tokens that one turn may use, agents included.
    pub task_budget: Option<u64>,
    /// True: pieces of replies arrive as [`StreamEvent`](crate::StreamEvent).
    pub include_partial_messages: bool,
    /// True: the start and end of hooks are on the stream.
    pub include_hook_events: bool,
    /// MCP servers.
    pub mcp_servers: McpServers,
    /// Which servers of other processes may be used; empty is all.
    pub allowed_mcp_server_names: Vec<String>,
    /// True: servers of configuration files are left alone.
    pub strict_mcp_config: bool,
    /// Answers questions that MCP servers put to a person; cancelled without one.
    pub on_elicitation: Option<OnElicitation>,
    /// Gets credentials for MCP servers.
    pub on_mcp_oauth_required: Option<OnMcpOAuthRequired>,
    /// Hears how MCP servers are doing.
    pub on_mcp_status_change: Option<OnMcpStatusChange>,
    /// How long a control request may take, in milliseconds; 0 is no limit.
    pub control_request_timeout_ms: u64,
    /// Called around the steps of a turn.
    pub hooks: BTreeMap<HookEvent, Vec<HookMatcher>>,
    /// Subagents.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// The agent that the session itself runs as.
    pub agent: Option<String>,
    /// Settings of this session.
    pub settings: Option<Settings>,
    /// Which settings files are read; `None` is all. Listing `Project` or `Local` vouches for the working directory: its
    /// files count in this session. `None` vouches for nothing.
    pub setting_sources: Option<Vec<SettingSource>>,
    /// More directories to work in.
    pub add_dirs: Vec<PathBuf>,
    /// More arguments for an external program; `None` is a bare switch.
    pub extra_args: BTreeMap<String, Option<String>>,
    /// Plugins.
    pub plugins: Vec<SdkPluginConfig>,
    /// Skills.
    pub skills: Option<Skills>,
    /// True: files are kept as they were before each message.
    pub enable_file_checkpointing: Option<bool>,
    /// How much to think.
    pub thinking: Option<ThinkingConfig>,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// The reply as JSON: `{"type": "json_schema", "schema": {…}}`, or the schema alone. It is `structured_output` in
    /// the result.
    pub output_format: Option<Value>,
    /// Betas of the provider.
    pub betas: Vec<String>,
    /// What confines commands, as the setting `sandbox`.
    pub sandbox: Option<Map<String, Value>>,
    /// How plans are made, in place of the built-in text.
    pub plan_mode_instructions: Option<String>,
    /// True: what agents say and think is among the messages; otherwise only their calls and results are.
    pub forward_subagent_text: bool,
    /// True: suggestions for the next prompt may follow a result.
    pub prompt_suggestions: bool,
    /// Proxy for the runtime's own traffic.
    pub proxy: Option<String>,
    /// How built-in tools behave.
    pub tool_config: Option<Value>,
    /// Attached to messages as it is.
    pub custom_context: Option<Map<String, Value>>,
    /// Turns of a running goal.
    pub goal_max_turns: Option<u64>,
    /// Hears lines that are meant for people.
    pub stderr: Option<OnStderr>,
}

impl Default for QoderAgentOptions {
    fn default() -> Self {
        Self {
            auth: None,
            on_auth_expired: None,
            tools: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            can_use_tool: None,
            permission_mode: None,
            allow_dangerously_skip_permissions: false,
            permission_prompt_tool_name: None,
            model: None,
            fallback_model: None,
            resolve_model: None,
            resolve_model_timeout_ms: RESOLVE_MODEL_TIMEOUT_MS,
            system_prompt: None,
            cwd: None,
            trust: false,
            env: BTreeMap::new(),
            cli_path: None,
            session_id: None,
            resume: None,
            continue_conversation: false,
            fork_session: false,
            resume_session_at: None,
            resume_drops_turn: None,
            persist_session: true,
            session_store: None,
            session_store_flush: SessionStoreFlush::default(),
            max_turns: None,
            max_budget_usd: None,
            task_budget: None,
            include_partial_messages: false,
            include_hook_events: false,
            mcp_servers: McpServers::default(),
            allowed_mcp_server_names: Vec::new(),
            strict_mcp_config: false,
            on_elicitation: None,
            on_mcp_oauth_required: None,
            on_mcp_status_change: None,
            control_request_timeout_ms: CONTROL_REQUEST_TIMEOUT_MS,
            hooks: BTreeMap::new(),
            agents: BTreeMap::new(),
            agent: None,
            settings: None,
            setting_sources: None,
            add_dirs: Vec::new(),
            extra_args: BTreeMap::new(),
            plugins: Vec::new(),
            skills: None,
            enable_file_checkpointing: None,
            thinking: None,
            effort: None,
            output_format: None,
            betas: Vec::new(),
            sandbox: None,
            plan_mode_instructions: None,
            forward_subagent_text: false,
            prompt_suggestions: false,
            proxy: None,
            tool_config: None,
            custom_context: None,
            goal_max_turns: None,
            stderr: None,
        }
    }
}

impl std::fmt::Debug for QoderAgentOptions {
    /// What is set, without the insides of callbacks and without secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("QoderAgentOptions")
            .field("auth", &self.auth)
            .field("model", &self.model)
            .field("cwd", &self.cwd)
            .field("tools", &self.tools)
            .field("allowed_tools", &self.allowed_tools)
            .field("disallowed_tools", &self.disallowed_tools)
            .field("permission_mode", &self.permission_mode)
            .field("can_use_tool", &self.can_use_tool.is_some())
            .field("resolve_model", &self.resolve_model.is_some())
            .field("mcp_servers", &self.mcp_servers)
            .field("hooks", &self.hooks)
            .field("session_id", &self.session_id)
            .field("resume", &self.resume)
            .field("session_store", &self.session_store)
            .field("max_turns", &self.max_turns)
            .field("cli_path", &self.cli_path)
            .finish_non_exhaustive()
    }
}

impl QoderAgentOptions {
    /// The schema that `output_format` asks for, whether it is given alone or in `{"type": "json_schema", "schema": …}`.
    pub(crate) fn schema(&self) -> Option<Value> {
        let format = self.output_format.as_ref()?;
        let wrapped =
            format.get("schema").filter(|_| format.get("type") == Some(&Value::from("json_schema")));
        Some(wrapped.unwrap_or(format).clone())
    }

    /// The settings files to read: with skills those of the user and of the project, unless others are listed.
    pub(crate) fn sources(&self) -> Option<Vec<SettingSource>> {
        let implied = || self.implies_sources().then(|| vec![SettingSource::User, SettingSource::Project]);
        self.setting_sources.clone().or_else(implied)
    }

    /// True when the caller lists no settings files and skills need some. Only listing the project's files vouches for them.
    pub(crate) fn implies_sources(&self) -> bool {
        self.skills.is_some() && self.setting_sources.is_none()
    }

    /// The process environment with `env` laid over it.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        // Names and values that are not text are nothing that a setting could be.
        let mut environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        for (name, value) in &self.env {
            match value {
                Some(value) => environment.insert(name.clone(), value.clone()),
                None => environment.remove(name),
            };
        }
        environment
    }
}
