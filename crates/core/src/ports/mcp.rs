//! How the tools that reach MCP servers by name see the servers of a session.

use std::fmt::Debug;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{ToolContext, ToolOutcome};

/// The servers of a session, as tools reach them by name.
pub trait McpPort: Debug + Send + Sync {
    /// True when there is no server at all.
    fn is_empty(&self) -> bool;
    /// The name under which a server's tool is judged and offered.
    fn full_name(&self, server: &str, tool: &str) -> String;
    /// Lists the resources of one server, or of all.
    fn list_resources(&self, server: Option<String>, context: ToolContext)
    -> BoxFuture<'static, ToolOutcome>;
    /// Reads a resource.
    fn read_resource(
        &self,
        server: String,
        uri: String,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome>;
    /// Lists the tools of one server, or of all, whose names or descriptions have all the words.
    fn list_tools(&self, server: Option<&str>, words: &str, context: &ToolContext) -> ToolOutcome;
    /// Describes a tool, by the name under which it is judged.
    fn describe_tool(&self, name: &str, context: &ToolContext) -> ToolOutcome;
    /// Calls a tool, by the name under which it was judged.
    fn call_tool(
        &self,
        name: String,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome>;
}
