//! The three tools that reach MCP servers by name: ListMcpResources, ReadMcpResource and Mcp.
//!
//! They read and check their input and say what they would touch. What servers offer is behind [`McpPort`]; without one
//! each of them answers with how a server is configured.

use std::sync::Arc;

use qoder_core::ports::{Access, McpPort, ToolContext, ToolOutcome};
use qoder_process::output::first_characters;
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::declared::{BuiltIn, Facts};

/// Lists the resources that connected MCP servers offer: files, tables, pages and the like.
///
/// Each resource has a `uri`, by which ReadMcpResource reads it, and a name; some have a description and a media type. A
/// `uriTemplate` stands for many resources: put values in place of what stands in braces. Leave the server out to list the
/// resources of all of them.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListMcpResourcesInput {
    /// The name of the server, as it is configured.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
}

/// Reads one resource of a connected MCP server.
///
/// Use ListMcpResources to find out which resources there are. Returns the content as text and images as images; any other
/// content is kept in a file whose path is returned.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadMcpResourceInput {
    /// The name of the server, as it is configured.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
    /// The address of the resource, as ListMcpResources shows it.
    uri: String,
}

/// Calls a tool of a connected MCP server by the names of both, or looks tools up.
///
/// Tools of connected servers are usually offered to you directly, as `mcp__server__tool`; prefer those. Use this one for a
/// tool that is not in your list: `action` list finds tools by words of their names and descriptions, describe shows what a
/// tool takes, and call, which is the default, calls it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct McpInput {
    /// What to do: call (the default), list or describe.
    action: Option<McpAction>,
    /// The name of the server, as it is configured. With list, leave it out to search all of them.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
    /// The name of the tool on that server, or its full name `mcp__server__tool`.
    tool_name: Option<String>,
    /// With list: words to look for.
    query: Option<String>,
    /// With call: the arguments of the tool.
    arguments: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum McpAction {
    #[default]
    Call,
    List,
    Describe,
}

const READS: Facts =
    Facts { read_only: true, destructive: false, open_world: true, replay: ReplayClass::Pure };

/// See [`ListMcpResourcesInput`].
#[derive(Debug)]
pub(crate) struct ListMcpResourcesTool(pub(crate) Option<Arc<dyn McpPort>>);

impl BuiltIn for ListMcpResourcesTool {
    const NAME: &'static str = "ListMcpResources";
    const FACTS: Facts = READS;
    type Input = ListMcpResourcesInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![Access::Resource { server: server_of(input), lists: true }]
    }

    async fn run(self: Arc<Self>, input: ListMcpResourcesInput, context: ToolContext) -> ToolOutcome {
        let server = input.server_name.or(input.server);
        match used(&self.0) {
            Some(port) => port.list_resources(server, context).await,
            None => no_server(server.as_deref()),
        }
    }
}

/// See [`ReadMcpResourceInput`].
#[derive(Debug)]
pub(crate) struct ReadMcpResourceTool(pub(crate) Option<Arc<dyn McpPort>>);

impl BuiltIn for ReadMcpResourceTool {
    const NAME: &'static str = "ReadMcpResource";
    const FACTS: Facts = READS;
    type Input = ReadMcpResourceInput;

    /// Reading is a request to a server, with an address that the model chose.
    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![Access::Resource { server: server_of(input), lists: false }]
    }

    async fn run(self: Arc<Self>, input: ReadMcpResourceInput, context: ToolContext) -> ToolOutcome {
        let Some(server) = input.server_name.or(input.server) else {
            return missing(Self::NAME, "server_name");
        };
        if input.uri.trim().is_empty() {
            return ToolOutcome::failed(format!("Invalid input for {}: field `uri` is empty.", Self::NAME));
        }
        match used(&self.0) {
            Some(port) => port.read_resource(server, input.uri, context).await,
            None => no_server(Some(&server)),
        }
    }
}

/// See [`McpInput`].
#[derive(Debug)]
pub(crate) struct McpTool(pub(crate) Option<Arc<dyn McpPort>>);

impl McpTool {
    /// The name under which a call is judged: found in the same way when it is judged and when it runs.
    fn full_name(&self, server: Option<&str>, tool: &str) -> Option<String> {
        match server {
            Some(server) if tool.starts_with(&format!("mcp__{server}__")) => Some(tool.to_owned()),
            Some(server) => Some(match &self.0 {
                Some(port) => port.full_name(server, tool),
                None => format!("mcp__{server}__{tool}"),
            }),
            None => tool.starts_with("mcp__").then(|| tool.to_owned()),
        }
    }
}

impl BuiltIn for McpTool {
    const NAME: &'static str = "Mcp";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: true, replay: ReplayClass::Effectful };
    type Input = McpInput;

    /// Judged under the name of the tool that it calls, so that no rule about that tool is passed by.
    fn accesses(&self, input: &Value) -> Vec<Access> {
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        if matches!(text("action"), Some("list" | "describe")) {
            return vec![Access::Internal];
        }
        let server = text("server_name").or_else(|| text("server"));
        let name = text("tool_name").and_then(|tool| self.full_name(server, tool));
        vec![name.map_or(Access::Other, Access::As)]
    }

    async fn run(self: Arc<Self>, input: McpInput, context: ToolContext) -> ToolOutcome {
        let server = input.server_name.or(input.server);
        let action = input.action.unwrap_or_default();
        let tool = input.tool_name.filter(|tool| !tool.trim().is_empty());
        if action == McpAction::List {
            let words = [input.query, tool].into_iter().flatten().collect::<Vec<_>>().join(" ");
            return match used(&self.0) {
                Some(port) => port.list_tools(server.as_deref(), &words, &context),
                None => no_server(server.as_deref()),
            };
        }
        let Some(tool) = tool else { return missing(Self::NAME, "tool_name") };
        let Some(name) = self.full_name(server.as_deref(), &tool) else {
            return missing(Self::NAME, "server_name");
        };
        match (used(&self.0), action) {
            (None, _) => no_server(server.as_deref()),
            (Some(port), McpAction::Describe) => port.describe_tool(&name, &context),
            (Some(port), McpAction::Call | McpAction::List) => {
                port.call_tool(name, Value::Object(input.arguments.unwrap_or_default()), context).await
            }
        }
    }
}

/// The server that an input names: found in the same way when a call is judged and when it runs.
fn server_of(input: &Value) -> Option<String> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    text("server_name").or_else(|| text("server")).map(str::to_owned)
}

/// The servers, when there are any.
fn used(port: &Option<Arc<dyn McpPort>>) -> Option<&Arc<dyn McpPort>> {
    port.as_ref().filter(|port| !port.is_empty())
}

fn missing(tool: &str, field: &str) -> ToolOutcome {
    ToolOutcome::failed(format!("Invalid input for {tool}: field `{field}` is missing."))
}

fn no_server(asked: Option<&str>) -> ToolOutcome {
    let named =
        asked.map(|server| format!(" called {:?}", first_characters(server, 200).0)).unwrap_or_default();
    let text = format!(
        "There is no server{named}: no MCP server is configured. A person can configure one under `mcpServers` in the \
         project's `.mcp.json` or in the settings, and start a new session. Go on without it."
    );
    let mut outcome = ToolOutcome::failed(text.clone());
    outcome.structured = json!({ "error": text, "code": "mcp_not_configured", "server_name": asked });
    outcome
}
