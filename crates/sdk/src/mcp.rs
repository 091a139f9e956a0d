//! MCP servers: how a program describes them to a session, what the session says about them, and the questions that
//! servers put to the host (credentials and input of a person).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::callback::CallbackError;
use crate::tools::{McpSdkServerConfig, McpServerToolPolicy};

/// The servers of a session: by name, or in a file.
#[derive(Debug, Clone)]
pub enum McpServers {
    /// By name.
    Map(BTreeMap<String, McpServerConfig>),
    /// A JSON file with `mcpServers`.
    File(PathBuf),
}

impl Default for McpServers {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl From<BTreeMap<String, McpServerConfig>> for McpServers {
    fn from(servers: BTreeMap<String, McpServerConfig>) -> Self {
        Self::Map(servers)
    }
}

/// One server.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum McpServerConfig {
    /// In this process; see [`create_sdk_mcp_server`](crate::create_sdk_mcp_server).
    Sdk(McpSdkServerConfig),
    /// A child process.
    Stdio(McpStdioServerConfig),
    /// A remote server that streams events.
    Sse(McpHttpServerConfig),
    /// A remote server.
    Http(McpHttpServerConfig),
}

impl From<McpSdkServerConfig> for McpServerConfig {
    fn from(server: McpSdkServerConfig) -> Self {
        Self::Sdk(server)
    }
}

impl From<McpStdioServerConfig> for McpServerConfig {
    fn from(server: McpStdioServerConfig) -> Self {
        Self::Stdio(server)
    }
}

/// A server that is a child process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpStdioServerConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What is known about permissions of its tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpServerToolPolicy>,
}

/// A remote server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpHttpServerConfig {
    /// Its address.
    pub url: String,
    /// Sent with every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is known about permissions of its tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpServerToolPolicy>,
}

/// What a session says about one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServerStatus {
    /// Its name.
    pub name: String,
    /// `pending`, `connecting`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub status: String,
    /// What the server calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// Where it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Its tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpToolInfo>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A tool of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpToolInfo {
    /// Its name on the server.
    pub name: String,
    /// For the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The hints that were set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<McpToolAnnotations>,
}

/// Hints of a tool, as a session shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpToolAnnotations {
    /// Changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// May destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Reaches beyond this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// What came of replacing the servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpSetServersResult {
    /// Servers that are new or have changed.
    pub added: Vec<String>,
    /// Servers that are gone or have changed.
    pub removed: Vec<String>,
    /// Servers that could not be connected, and why.
    pub errors: BTreeMap<String, String>,
}

/// What came of starting an authentication.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpAuthenticateResult {
    /// Where the person has to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    /// False when credentials were renewed without a person.
    pub requires_user_action: bool,
}

/// A server wants input of a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ElicitationRequest {
    /// The server.
    pub server_name: String,
    /// What it says.
    pub message: String,
    /// `form` or `url`.
    pub mode: String,
    /// Identifies the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// The form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// For people: a headline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For people: the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ElicitationResult {
    /// The input.
    Accept {
        /// The form's values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
    },
    /// No.
    Decline,
    /// Nothing.
    Cancel,
}

/// A server wants credentials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpOAuthRequest {
    /// The server.
    pub server_name: String,
    /// Its address.
    pub server_url: String,
    /// Where the person has to go.
    pub auth_url: String,
    /// Proves that an answer belongs to this request.
    pub state: String,
    /// What is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Credentials of a server, as RFC 6749 has them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OAuthToken {
    /// The token.
    pub access_token: String,
    /// Usually `Bearer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_type: Option<String>,
    /// Renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// What it allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl std::fmt::Debug for OAuthToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OAuthToken").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// How the host got the credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum McpOAuthResolution {
    /// The host has the token.
    Token {
        /// The token.
        token: OAuthToken,
    },
    /// The address to which the person was sent back.
    CallbackUrl {
        /// With `code` and `state`.
        callback_url: String,
    },
    /// The parts of that address.
    Code {
        /// The code.
        code: String,
        /// The state.
        state: String,
    },
}

/// Answers a server's question to a person.
pub type OnElicitation = Arc<
    dyn Fn(ElicitationRequest) -> BoxFuture<'static, Result<ElicitationResult, CallbackError>> + Send + Sync,
>;
/// Gets credentials for a server; `None` refuses.
pub type OnMcpOAuthRequired = Arc<
    dyn Fn(McpOAuthRequest) -> BoxFuture<'static, Result<Option<McpOAuthResolution>, CallbackError>>
        + Send
        + Sync,
>;
/// Hears how servers are doing.
pub type OnMcpStatusChange = Arc<dyn Fn(Vec<McpServerStatus>) + Send + Sync>;
/// Called once when the credentials are no longer accepted, with the reason.
pub type OnAuthExpired = Arc<dyn Fn(String) -> BoxFuture<'static, Result<(), CallbackError>> + Send + Sync>;
