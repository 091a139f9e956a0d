//! How one MCP server is spoken with, whatever carries the messages: the trait, and what goes to and fro in the shapes of
//! the protocol. Implementations: [`Tunnel`](crate::Tunnel) for servers in a front's process, the connections of
//! this crate for child processes and remote servers, and the Rust SDK's own.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::Cancelled;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The name on the server.
    pub name: String,
    /// For the model.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The hints: `readOnlyHint` and the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Whatever else the server says, such as `anthropic/maxResultSizeChars`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What a call of a tool came to: MCP's `CallToolResult`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// Content blocks in MCP's shapes.
    #[serde(default)]
    pub content: Vec<Value>,
    /// True when the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// The typed result, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
}

/// What a server says of itself and offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Greeting {
    /// `name` and `version` of the server.
    pub server_info: Option<Value>,
    /// What it can do, as it declared it: `tools`, `resources`, `prompts` and the rest.
    pub capabilities: Value,
    /// How to use it, in its own words: untrusted.
    pub instructions: Option<String>,
    /// Its tools, all pages.
    pub tools: Vec<ListedTool>,
}

/// Why a remote server refused a request: the status and what it asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// 401, or 403 when the token lacks a scope.
    pub status: u16,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
}

/// Why a server could not be asked. The text is for people and for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerError {
    /// It cannot be used, and why.
    Failed(String),
    /// The server answered this request with an error of the protocol; the connection is fine.
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// The server's words.
        message: String,
    },
    /// It wants credentials, or other ones.
    NeedsAuth(Challenge),
    /// The connection is gone: the request may or may not have been served.
    Closed(String),
    /// The connection was gone before the request was sent: the request was not served.
    NotConnected(String),
}

impl fmt::Display for PeerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(problem) => out.write_str(problem),
            Self::Refused { code, message } => write!(out, "{message} ({code})"),
            Self::NeedsAuth(challenge) => {
                write!(out, "the server wants credentials (HTTP {})", challenge.status)
            }
            Self::Closed(problem) => write!(out, "the connection is gone: {problem}"),
            Self::NotConnected(problem) => write!(out, "the server is not connected: {problem}"),
        }
    }
}

impl From<String> for PeerError {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// What a server sends without being asked.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerEvent {
    /// Its list of tools is another one now.
    ToolsChanged,
    /// Its list of resources is another one now.
    ResourcesChanged,
    /// Its list of prompts is another one now.
    PromptsChanged,
    /// A resource with a subscription has changed.
    ResourceUpdated(String),
    /// A message for a log: level and text.
    Log {
        /// `debug`, `info`, `notice`, `warning`, `error` and so on.
        level: String,
        /// What it says, bounded.
        text: String,
    },
    /// The connection ended by itself, and why. Nothing follows.
    Closed(String),
}

/// Receives what a server sends without being asked; must not block.
pub type PeerEvents = Arc<dyn Fn(PeerEvent) + Send + Sync>;

/// How far a call has come, in the server's words.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// Done so far.
    pub progress: f64,
    /// What there is to do, when known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<String>,
}

/// One call of a tool.
#[derive(Clone)]
pub struct ToolCall {
    /// The name on the server.
    pub tool: String,
    /// Its arguments: a JSON object.
    pub arguments: Value,
    /// Completes when the call must stop; the server gets a cancellation.
    pub cancelled: Cancelled,
    /// Receives progress; must not block. Progress resets the timer of the call.
    pub progress: Arc<dyn Fn(CallProgress) + Send + Sync>,
}

impl ToolCall {
    /// A call whose progress is not watched.
    pub fn new(tool: impl Into<String>, arguments: Value, cancelled: Cancelled) -> Self {
        Self { tool: tool.into(), arguments, cancelled, progress: Arc::new(|_| {}) }
    }
}

/// A way to speak with one MCP server.
///
/// Contract: futures end in bounded time once the peer is gone; dropping one withdraws its request. `connect` may be called
/// again at any time and replaces what was there. Nothing that a server sends makes it panic or grow without bound.
pub trait McpPeer: Send + Sync {
    /// Shakes hands and lists the tools. `events` is used until the next `connect` or `close`.
    fn connect(&self, events: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>>;
    /// Lists the tools again, all pages.
    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>>;
    /// Calls a tool. The error is for the model: the server could not be asked.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>>;
    /// Any other request of the protocol, such as `resources/list`, `resources/read`, `resources/subscribe`, `prompts/list`
    /// and `prompts/get`; the answer is its `result`.
    fn request(&self, method: &'static str, params: Value) -> BoxFuture<'static, Result<Value, PeerError>>;
    /// The session's directories are others now; a server that asked for them gets a notification.
    fn roots_changed(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
    /// Ends the connection; a child process is ended with everything it started.
    fn close(&self) -> BoxFuture<'static, ()>;
}
