//! Agents in your program. A session gives a model tools, rules and a prompt, and streams what happens as typed
//! messages. The engine runs in this process, on a thread of its own; with
//! [`cli_path`](QoderAgentOptions::cli_path) the same program drives an external `qodercli` instead.
//!
//! * [`query()`] asks one question; [`QoderSdkClient`] holds a conversation.
//! * [`QoderAgentOptions`] says what a session may do, [`macro@tool`] and [`create_sdk_mcp_server`] what it can.
//! * [`Message`] is what comes back.
//! * [`list_sessions`] and its neighbours look at sessions on disk, [`StoredSessions`] at those of a [`SessionStore`].
//!
//! Without a key the model `offline` answers, so every example here runs as it is.

extern crate self as qoder_agent_sdk;

mod callback;
mod catalog;
mod client;
mod error;
mod hooks;
mod mcp;
mod messages;
mod options;
mod session;
mod session_store;
pub mod testing;
mod tools;
mod transport;

pub use qoder_agent_sdk_macros::tool;
/// The version whose `JsonSchema` the arguments of tools implement.
pub use schemars;

pub use callback::{CallbackAnswer, CallbackError, CancellationToken};
pub use catalog::{
    SessionInfo, SessionMessage, SessionPlace, StoredSessions, delete_session, fork_session,
    get_session_info, get_session_messages, get_subagent_messages, list_sessions, list_subagents,
    rename_session, tag_session,
};
pub use client::{ContextUsage, InterruptReceipt, QoderSdkClient, Query, RewindResult, query};
pub use error::{Error, Result};
pub use hooks::{
    HookCallback, HookContext, HookDetail, HookEvent, HookInput, HookJsonOutput, HookMatcher, OnFailure,
};
pub use mcp::{
    ElicitationRequest, ElicitationResult, McpAuthenticateResult, McpHttpServerConfig, McpOAuthRequest,
    McpOAuthResolution, McpServerConfig, McpServerStatus, McpServers, McpSetServersResult,
    McpStdioServerConfig, McpToolAnnotations, McpToolInfo, OAuthToken, OnAuthExpired, OnElicitation,
    OnMcpOAuthRequired, OnMcpStatusChange,
};
pub use messages::{
    AssistantContent, AssistantMessage, ContentBlock, ImageSource, InitMessage, Message, MessageContent,
    ModelUsage, PermissionDenial, Prompt, PromptSuggestion, ResultMessage, Role, StopReason, StreamEvent,
    SubagentAccount, SystemMessage, ToolResultContent, Usage, UserContent, UserMessage,
};
pub use options::agents::{AgentDefinition, AgentInfo};
pub use options::auth::{
    ACCESS_TOKEN_VARIABLE, AuthOptions, access_token, access_token_from_env, access_token_from_env_var,
    qodercli_auth,
};
pub use options::model_policy::{
    ByokFieldInfo, ByokModelInfo, ByokModelTypeInfo, ByokProviderInfo, CustomModel, ModelChoice, ModelInfo,
    ModelPolicyContext, ModelPolicyProvider, ModelPolicyResult,
};
pub use options::permission::{
    Behavior, CanUseTool, PermissionMode, PermissionResult, PermissionUpdate, RuleValue,
    ToolPermissionContext, UpdateDestination,
};
pub use options::{
    Effort, OnStderr, QoderAgentOptions, SdkPluginConfig, SettingSource, Settings, Skills, SystemPrompt,
    ThinkingConfig, ToolSet,
};
pub use session_store::{
    InMemorySessionStore, SessionKey, SessionStore, SessionStoreEntry, SessionStoreError, SessionStoreFlush,
    SessionStoreListEntry, SharedSessionStore, StoreResult,
};
pub use tools::{
    IntoToolResult, McpSdkServerConfig, McpServerToolPolicy, NoArguments, PermissionPolicy, SdkMcpTool,
    ToolAnnotations, ToolArguments, ToolContent, ToolContext, ToolFunction, ToolHandler, ToolResult,
    create_sdk_mcp_server, tool, tool_with_schema,
};

/// The same, shorter.
pub type Options = QoderAgentOptions;
/// The same, shorter.
pub type Client = QoderSdkClient;

/// Version of this SDK.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
