//! The methods that make options: each returns the same options with one thing changed. Callbacks are plain closures
//! that return a future; the answer may be the value itself or a `Result` of it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::{Map, Value};

use super::{
    Effort, QoderAgentOptions, SdkPluginConfig, SettingSource, Settings, Skills, SystemPrompt,
    ThinkingConfig, ToolSet,
};
use crate::callback::CallbackAnswer;
use crate::hooks::{HookEvent, HookMatcher};
use crate::mcp::{
    ElicitationRequest, ElicitationResult, McpOAuthRequest, McpOAuthResolution, McpServerConfig,
    McpServerStatus, McpServers,
};
use crate::options::agents::AgentDefinition;
use crate::options::auth::AuthOptions;
use crate::options::model_policy::{ModelPolicyContext, ModelPolicyResult};
use crate::options::permission::{PermissionMode, PermissionResult, ToolPermissionContext};
use crate::session_store::{SessionStore, SessionStoreFlush, SharedSessionStore};

/// Writes methods that set a field: `some` converts and wraps, `exact` only wraps, `plain` sets as it is, and `list` takes
/// anything that can be listed.
macro_rules! setters {
    ($($(#[$doc:meta])* $kind:ident $name:ident: $type:ty,)*) => {
        impl QoderAgentOptions { $(setters!(@ $(#[$doc])* $kind $name $type);)* }
    };
    (@ $(#[$doc:meta])* some $name:ident $type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.$name = Some($name.into());
            self
        }
    };
    (@ $(#[$doc:meta])* exact $name:ident $type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = Some($name);
            self
        }
    };
    (@ $(#[$doc:meta])* plain $name:ident $type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        }
    };
    (@ $(#[$doc:meta])* list $name:ident $type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item = impl Into<$type>>) -> Self {
            self.$name = $name.into_iter().map(Into::into).collect();
            self
        }
    };
}

setters! {
    /// How the session proves who it is.
    exact auth: AuthOptions,
    /// The tools that exist; `[""; 0]` leaves out all of them.
    some tools: ToolSet,
    /// Tools that run without a question.
    list allowed_tools: String,
    /// Tools that never run.
    list disallowed_tools: String,
    /// The mode.
    exact permission_mode: PermissionMode,
    /// Must be true for `bypassPermissions`.
    plain allow_dangerously_skip_permissions: bool,
    /// An MCP tool that decides about calls.
    some permission_prompt_tool_name: String,
    /// Model or tier.
    some model: String,
    /// Model to use when the main model fails.
    some fallback_model: String,
    /// How long `resolve_model` may take, in milliseconds.
    plain resolve_model_timeout_ms: u64,
    /// The system prompt.
    some system_prompt: SystemPrompt,
    /// Working directory.
    some cwd: PathBuf,
    /// True: files of the working directory are interpreted.
    plain trust: bool,
    /// Drive this program in place of the engine in process.
    some cli_path: PathBuf,
    /// The id of a new session, or of a copy.
    some session_id: String,
    /// The session to resume.
    some resume: String,
    /// Resume the newest session of the directory.
    plain continue_conversation: bool,
    /// Work on a copy of the session to resume.
    plain fork_session: bool,
    /// Continue from this message, without what came after it.
    some resume_session_at: String,
    /// What is left out has to belong to the turn of this prompt.
    some resume_drops_turn: String,
    /// False: nothing is kept on disk.
    plain persist_session: bool,
    /// When copies are handed over to the session store.
    plain session_store_flush: SessionStoreFlush,
    /// Model calls per turn.
    exact max_turns: u64,
    /// Dollars that this run may spend.
    exact max_budget_usd: f64,
    /// Tokens that one turn may use.
    exact task_budget: u64,
    /// True: pieces of replies arrive as [`StreamEvent`](crate::StreamEvent).
    plain include_partial_messages: bool,
    /// True: the start and end of hooks are on the stream.
    plain include_hook_events: bool,
    /// MCP servers.
    plain mcp_servers: McpServers,
    /// Which servers of other processes may be used.
    list allowed_mcp_server_names: String,
    /// True: servers of configuration files are left alone.
    plain strict_mcp_config: bool,
    /// How long a control request may take, in milliseconds; 0 is no limit.
    plain control_request_timeout_ms: u64,
    /// The agent that the session itself runs as.
    some agent: String,
    /// Settings of this session.
    exact settings: Settings,
    /// Which settings files are read.
    exact setting_sources: Vec<SettingSource>,
    /// More directories to work in.
    list add_dirs: PathBuf,
    /// Plugins.
    plain plugins: Vec<SdkPluginConfig>,
    /// Skills.
    exact skills: Skills,
    /// True: files are kept as they were before each message.
    exact enable_file_checkpointing: bool,
    /// How much to think.
    exact thinking: ThinkingConfig,
    /// How hard to think.
    exact effort: Effort,
    /// The reply as JSON of a schema.
    exact output_format: Value,
    /// Betas of the provider.
    list betas: String,
    /// What confines commands.
    exact sandbox: Map<String, Value>,
    /// How plans are made.
    some plan_mode_instructions: String,
    /// True: what agents say and think is among the messages.
    plain forward_subagent_text: bool,
    /// True: suggestions for the next prompt may follow a result.
    plain prompt_suggestions: bool,
    /// Proxy for the runtime's own traffic.
    some proxy: String,
    /// How built-in tools behave.
    exact tool_config: Value,
    /// Attached to messages as it is.
    exact custom_context: Map<String, Value>,
    /// Turns of a running goal.
    exact goal_max_turns: u64,
}

impl QoderAgentOptions {
    /// Options with nothing special.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes a variable of the environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env.insert(name.into(), None);
        self
    }

    /// Adds an argument for an external program; `None` is a bare switch.
    #[must_use]
    pub fn extra_arg(mut self, name: impl Into<String>, value: Option<String>) -> Self {
        self.extra_args.insert(name.into(), value);
        self
    }

    /// Adds an MCP server. Servers of a file that was given before are replaced.
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, server: impl Into<McpServerConfig>) -> Self {
        let mut servers = match self.mcp_servers {
            McpServers::Map(servers) => servers,
            McpServers::File(_) => std::collections::BTreeMap::new(),
        };
        servers.insert(name.into(), server.into());
        self.mcp_servers = McpServers::Map(servers);
        self
    }

    /// Keeps copies of the session's logs in a store, and resumes sessions from there.
    #[must_use]
    pub fn session_store(mut self, store: impl SessionStore) -> Self {
        self.session_store = Some(SharedSessionStore::new(store));
        self
    }

    /// Adds hooks for an event.
    #[must_use]
    pub fn hook(mut self, event: HookEvent, matcher: HookMatcher) -> Self {
        self.hooks.entry(event).or_default().push(matcher);
        self
    }

    /// Adds a subagent.
    #[must_use]
    pub fn agent_definition(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Decides about calls that rules and mode leave open. An error or a panic denies.
    ///
    /// ```
    /// # use qoder_agent_sdk::{PermissionResult, QoderAgentOptions};
    /// let options = QoderAgentOptions::new().can_use_tool(|tool_name, _input, _context| async move {
    ///     if tool_name == "mcp__orders__lookup_order" {
    ///         PermissionResult::allow()
    ///     } else {
    ///         PermissionResult::deny("Only order lookup is allowed in this workflow.")
    ///     }
    /// });
    /// assert!(options.can_use_tool.is_some());
    /// ```
    #[must_use]
    pub fn can_use_tool<F, W, R>(mut self, decide: F) -> Self
    where
        F: Fn(String, Value, ToolPermissionContext) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<PermissionResult> + 'static,
    {
        self.can_use_tool = Some(Arc::new(move |name, input, context| {
            decide(name, input, context).map(CallbackAnswer::into_answer).boxed()
        }));
        self
    }

    /// Chooses the model before each call. An error ends the turn; there is no fallback.
    #[must_use]
    pub fn resolve_model<F, W, R>(mut self, resolve: F) -> Self
    where
        F: Fn(ModelPolicyContext) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<ModelPolicyResult> + 'static,
    {
        self.resolve_model =
            Some(Arc::new(move |context| resolve(context).map(CallbackAnswer::into_answer).boxed()));
        self
    }

    /// Called at most once, when the credentials are no longer accepted, with the reason.
    #[must_use]
    pub fn on_auth_expired<F, W, R>(mut self, hear: F) -> Self
    where
        F: Fn(String) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<()> + 'static,
    {
        self.on_auth_expired =
            Some(Arc::new(move |reason| hear(reason).map(CallbackAnswer::into_answer).boxed()));
        self
    }

    /// Answers questions that MCP servers put to a person.
    #[must_use]
    pub fn on_elicitation<F, W, R>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<ElicitationResult> + 'static,
    {
        self.on_elicitation =
            Some(Arc::new(move |request| answer(request).map(CallbackAnswer::into_answer).boxed()));
        self
    }

    /// Gets credentials for MCP servers; `None` refuses.
    #[must_use]
    pub fn on_mcp_oauth_required<F, W, R>(mut self, get: F) -> Self
    where
        F: Fn(McpOAuthRequest) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<Option<McpOAuthResolution>> + 'static,
    {
        self.on_mcp_oauth_required =
            Some(Arc::new(move |request| get(request).map(CallbackAnswer::into_answer).boxed()));
        self
    }

    /// Hears how MCP servers are doing.
    #[must_use]
    pub fn on_mcp_status_change(
        mut self,
        hear: impl Fn(Vec<McpServerStatus>) + Send + Sync + 'static,
    ) -> Self {
        self.on_mcp_status_change = Some(Arc::new(hear));
        self
    }

    /// Hears lines that are meant for people.
    #[must_use]
    pub fn stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr = Some(Arc::new(hear));
        self
    }
}
