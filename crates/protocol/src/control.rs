//! The control protocol: what a host asks of the runtime, what the runtime asks of its host, and the envelopes of both.
//! Names and shapes are those of the wire; keys that are not known are left to other versions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use qoder_types::PermissionUpdate;

/// A line that asks for something; both sides send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ControlLine<R> {
    /// Asks.
    ControlRequest {
        /// Unique among the sender's requests.
        request_id: String,
        /// What is asked.
        request: R,
    },
    /// Answers.
    ControlResponse {
        /// The answer.
        response: ControlResponse,
    },
    /// Gives a request up; it is no longer answered.
    ControlCancelRequest {
        /// The request.
        request_id: String,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlResponse {
    /// It was done.
    Success {
        /// The request.
        request_id: String,
        /// What came of it.
        #[serde(default)]
        response: Value,
    },
    /// It was not done.
    Error {
        /// The request.
        request_id: String,
        /// Why.
        error: String,
    },
}

/// What a host asks of the runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum HostRequest {
    /// The handshake; comes once, first.
    Initialize(Box<Initialize>),
    /// Stop the turn that runs.
    Interrupt {},
    /// Another permission mode, from the next decision on.
    SetPermissionMode {
        /// Its name.
        mode: String,
    },
    /// Another model, from the next call of one on.
    SetModel {
        /// Its name; null is the default.
        #[serde(default)]
        model: Option<String>,
    },
    /// Stop a background task.
    StopTask {
        /// The task.
        task_id: String,
    },
    /// Move running commands to the background.
    BackgroundTasks {
        /// The call; all without it.
        #[serde(default)]
        tool_use_id: Option<String>,
    },
    /// Take a message back that waits for its turn.
    CancelAsyncMessage {
        /// The message.
        uuid: String,
    },
    /// More directories to work in.
    AddDirectories {
        /// Their paths.
        directories: Vec<String>,
    },
    /// Lay settings on top of those of the command line.
    ApplyFlagSettings {
        /// The settings.
        settings: Map<String, Value>,
    },
    /// Bring files back to what they were when a message began to be worked on.
    RewindFiles {
        /// The user's message.
        user_message_id: String,
        /// Only say what would change.
        #[serde(default)]
        dry_run: Option<bool>,
    },
    /// Go back to a message.
    Rewind {
        /// The user's message.
        user_message_id: String,
        /// `both`, `conversation` or `files`.
        #[serde(default)]
        scope: Option<String>,
        /// Only say what would change.
        #[serde(default)]
        dry_run: Option<bool>,
    },
    /// What fills the context?
    GetContextUsage {},
    /// Which models are there?
    GetAvailableModels {
        /// `live` asks the providers anew.
        #[serde(default, rename = "fetchStrategy")]
        fetch_strategy: Option<String>,
    },
    /// Which providers take a user's own key?
    GetByokConfig {},
    /// Which agents are there?
    SupportedAgents {},
    /// Which slash commands are there?
    SupportedCommands {},
    /// Who is signed in, and how?
    AccountInfo {},
    /// What is left of a quota?
    GetUsageInfo {},
    /// Which plugins are loaded?
    ListPlugins {},
    /// Load plugins anew.
    ReloadPlugins {},
    /// Which definitions of agents are there, with their sources, those that are shadowed included?
    ListAgents {},
    /// Which hooks do settings define?
    ListHooks {},
    /// Which skills are there?
    ListSkills {},
    /// Which memory files does the model have?
    ListMemory {},
    /// Which tools does the model see, with their annotations?
    ListTools {},
    /// What did a background task print last?
    TaskOutput {
        /// The task.
        task_id: String,
    },
    /// Which rules are in force, with the file and line of each?
    ListPermissionRules {},
    /// Change rules, mode or directories.
    UpdatePermissions {
        /// The changes.
        updates: Vec<PermissionUpdate>,
    },
    /// Another effort, from the next model call on.
    SetEffort {
        /// `low`, `medium`, `high`, `xhigh` or `max`; null is the model's own.
        #[serde(default)]
        effort: Option<String>,
    },
    /// Give the session a title.
    SetSessionTitle {
        /// The title.
        title: String,
    },
    /// Read the descriptions of MCP servers again.
    McpReload {},
    /// Run a command in the shell, as the user; its output joins the conversation.
    RunCommand {
        /// The command.
        command: String,
        /// Identifies it: the same again is the same command.
        #[serde(default)]
        uuid: Option<String>,
    },
    /// How are the MCP servers doing?
    McpStatus {},
    /// Other MCP servers in place of these.
    McpSetServers {
        /// The full wanted set: configurations by name.
        servers: Map<String, Value>,
    },
    /// Find a title for the session.
    GenerateSessionTitle {
        /// What the session is about.
        description: String,
        /// Make it the session's title.
        #[serde(default)]
        persist: bool,
    },
    /// Connect an MCP server again.
    McpReconnect {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
    },
    /// Switch an MCP server on or off.
    McpToggle {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
        /// On.
        enabled: bool,
    },
    /// Get credentials for an MCP server, or renew them.
    McpAuthenticate {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
        /// Where the person is sent back to, in place of the runtime's own address.
        #[serde(default, rename = "redirectUri", skip_serializing_if = "Option::is_none")]
        redirect_uri: Option<String>,
    },
    /// The person was sent back: ends what `mcp_authenticate` began.
    McpSubmitOauthCallbackUrl {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
        /// With `code` and `state`.
        #[serde(rename = "callbackUrl")]
        callback_url: String,
    },
    /// Credentials for an MCP server that the host got by itself.
    InjectMcpToken {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
        /// The credentials.
        token: TokenLine,
    },
    /// Forget the credentials of an MCP server.
    McpClearAuth {
        /// The server.
        #[serde(rename = "serverName")]
        server_name: String,
    },
}

/// Credentials of an MCP server, in the names of RFC 6749.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenLine {
    /// What is sent with each request.
    pub access_token: String,
    /// `Bearer` unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_type: Option<String>,
    /// Gets another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds until it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<f64>,
    /// Unix seconds at which it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<f64>,
    /// What it is good for, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl std::fmt::Debug for TokenLine {
    /// Written by hand because a token must not reach a log through `{:?}`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenLine").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// What a host declares in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialize {
    /// The version of the protocol that the host speaks.
    pub protocol_version: Option<u64>,
    /// Who speaks: `name` and `version`.
    pub sdk: Option<Value>,
    /// Callbacks by event.
    pub hooks: Option<BTreeMap<String, Vec<HookMatcherLine>>>,
    /// Agents by name.
    pub agents: Option<BTreeMap<String, Value>>,
    /// The skills that may be used; all that are found without it.
    pub skills: Option<Vec<String>>,
    /// The host chooses the model before each call of one.
    pub model_policy: bool,
    /// The host wants to hear that its credentials are not accepted.
    pub auth_expired: bool,
    /// The host gets credentials for MCP servers that want some.
    #[serde(rename = "mcpOAuth")]
    pub mcp_oauth: bool,
    /// The host puts questions of MCP servers to a person.
    pub elicitation: bool,
    /// Credentials.
    pub auth: Option<AuthLine>,
    /// A proxy for requests to models; may hold credentials, so it is not an argument of the command line.
    pub proxy: Option<String>,
    /// How plans are made, in place of the built-in text.
    pub plan_mode_instructions: Option<String>,
    /// Suggestions for the next prompt follow results.
    pub prompt_suggestions: bool,
    /// What agents say and think goes onto the stream, too; without it only their calls and results.
    pub forward_subagent_text: bool,
    /// Attached to user messages as it is.
    pub custom_context: Option<Map<String, Value>>,
    /// How built-in tools behave.
    pub tool_config: Option<Value>,
    /// Turns of a running goal; there are no goals, so it is refused.
    pub goal_max_turns: Option<u64>,
}

/// Callbacks of one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookMatcherLine {
    /// Which tools they are for; null is all.
    #[serde(default)]
    pub matcher: Option<String>,
    /// The callbacks.
    #[serde(default)]
    pub hook_callback_ids: Vec<String>,
    /// How long each may take, in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// What the failure of one means.
    #[serde(default)]
    pub on_failure: Option<String>,
}

/// Credentials in the handshake.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthLine {
    /// `accessToken` or `qodercli`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
}

impl std::fmt::Debug for AuthLine {
    /// Written by hand because a token must not reach a log through `{:?}`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AuthLine").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What the runtime asks of its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum RuntimeRequest {
    /// May this call run?
    CanUseTool(Box<CanUseTool>),
    /// Call a hook.
    HookCallback {
        /// The callback.
        callback_id: String,
        /// The event's input.
        input: Value,
        /// The call that the event is about.
        tool_use_id: Option<String>,
    },
    /// Carry a JSON-RPC message to a server that lives in the host.
    McpMessage {
        /// The server.
        server_name: String,
        /// The message.
        message: Value,
    },
    /// Which model for the next call?
    GetModelPolicy {
        /// The documented context.
        #[serde(flatten)]
        context: Map<String, Value>,
    },
    /// The credentials are no longer accepted.
    AuthExpired {
        /// What the provider said.
        reason: String,
    },
    /// An MCP server wants credentials. Answered with `{token}`, `{callbackUrl}`, `{code, state}`, or null to refuse.
    McpOauthRequired {
        /// The server.
        server_name: String,
        /// Its address.
        server_url: String,
        /// Where the person grants access.
        auth_url: String,
        /// What the callback must bring back.
        state: String,
        /// What is asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scopes: Option<Vec<String>>,
        /// Where the server describes itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_metadata_url: Option<String>,
    },
    /// An MCP server wants input of a person. Answered with `{action, content?}`.
    Elicitation {
        /// The server.
        server_name: String,
        /// What it says.
        message: String,
        /// Always `form`.
        mode: String,
        /// Identifies the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elicitation_id: Option<String>,
        /// JSON Schema of the wanted content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requested_schema: Option<Value>,
        /// A heading.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What the server calls itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
    },
}

/// See [`RuntimeRequest::CanUseTool`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanUseTool {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub input: Value,
    /// The call.
    pub tool_use_id: String,
    /// Changes that would make the question unnecessary the next time.
    pub permission_suggestions: Vec<PermissionUpdate>,
    /// The file that the call is about.
    pub blocked_path: Option<String>,
    /// Why it is asked.
    pub decision_reason: String,
    /// Which layer asks.
    pub decision_reason_type: String,
    /// One line for people.
    pub title: String,
    /// The tool's name for people.
    pub display_name: String,
    /// What the call is for.
    pub description: String,
    /// The agent that made the call, when it is not the main one.
    pub agent_id: Option<String>,
    /// True when a classifier could have answered.
    pub classifier_approvable: bool,
    /// The plan, when the call leaves plan mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_plan_mode: Option<Value>,
}
