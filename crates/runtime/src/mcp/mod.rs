//! MCP servers of a session: who they are, how they are doing, and the tools they bring. A server is reached through
//! [`McpPeer`], whatever carries the messages; its tools stand beside the built-in ones and pass the same gate.

mod result;
mod servers;
mod tool;
mod tunnel;

use futures::future::BoxFuture;
use qoder_core::ports::Cancelled;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use servers::{McpServers, Replaced, ServerStatus};
pub use tool::{McpTool, tool_name};
pub use tunnel::{Tunnel, TunnelSend};

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
    /// Its tools, all pages.
    pub tools: Vec<ListedTool>,
}

/// A way to speak with one MCP server.
///
/// Contract: futures end in bounded time once the peer is gone; dropping one withdraws its request.
pub trait McpPeer: Send + Sync {
    /// Shakes hands and lists the tools.
    fn connect(&self) -> BoxFuture<'static, Result<Greeting, String>>;
    /// Calls a tool. The error is for the model: the server could not be asked.
    fn call(
        &self,
        tool: String,
        arguments: Value,
        cancelled: Cancelled,
    ) -> BoxFuture<'static, Result<CallToolResult, String>>;
}
