//! The three tools that reach MCP servers by name: ListMcpResources, ReadMcpResource and Mcp.
//!
//! They read and check their input and say what they would touch; no server can be connected yet, so each of them
//! answers with how one is configured. What a server offers will be looked up where [`no_server`] answers now.

use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bounds::first_characters;
use crate::declared::{BuiltIn, Facts};

/// Lists the resources that connected MCP servers offer: files, tables, pages and the like.
///
/// Each resource has a `uri`, by which ReadMcpResource reads it, and a name; some have a description and a media type.
/// Leave the server out to list the resources of all of them.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListMcpResourcesInput {
    /// The name of the server, as it is configured.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
}

/// Reads one resource of a connected MCP server.
///
/// Use ListMcpResources to find out which resources there are. Returns the content as text; content that is no text is
/// kept in a file whose path is returned.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadMcpResourceInput {
    /// The name of the server, as it is configured.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
    /// The address of the resource, as ListMcpResources shows it.
    uri: String,
}

/// Calls a tool of a connected MCP server by the names of both.
///
/// Tools of connected servers are also offered to you directly, as `mcp__server__tool`; prefer those. Use this one for
/// a tool that is not in your list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct McpInput {
    /// The name of the server, as it is configured.
    server_name: Option<String>,
    /// The same as `server_name`.
    server: Option<String>,
    /// The name of the tool on that server.
    tool_name: String,
    /// The arguments of the tool.
    #[serde(rename = "arguments")]
    _arguments: Option<Map<String, Value>>,
}

const READS: Facts =
    Facts { read_only: true, destructive: false, open_world: true, replay: ReplayClass::Pure };

/// See [`ListMcpResourcesInput`].
#[derive(Debug)]
pub(crate) struct ListMcpResourcesTool;

impl BuiltIn for ListMcpResourcesTool {
    const NAME: &'static str = "ListMcpResources";
    const FACTS: Facts = READS;
    type Input = ListMcpResourcesInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    async fn run(self: Arc<Self>, input: ListMcpResourcesInput, _: ToolContext) -> ToolOutcome {
        no_server(input.server_name.or(input.server).as_deref())
    }
}

/// See [`ReadMcpResourceInput`].
#[derive(Debug)]
pub(crate) struct ReadMcpResourceTool;

impl BuiltIn for ReadMcpResourceTool {
    const NAME: &'static str = "ReadMcpResource";
    const FACTS: Facts = READS;
    type Input = ReadMcpResourceInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    async fn run(self: Arc<Self>, input: ReadMcpResourceInput, _: ToolContext) -> ToolOutcome {
        match input.server_name.or(input.server) {
            None => missing_server(Self::NAME),
            Some(_) if input.uri.trim().is_empty() => {
                ToolOutcome::failed(format!("Invalid input for {}: field `uri` is empty.", Self::NAME))
            }
            Some(server) => no_server(Some(&server)),
        }
    }
}

/// See [`McpInput`].
#[derive(Debug)]
pub(crate) struct McpTool;

impl BuiltIn for McpTool {
    const NAME: &'static str = "Mcp";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: true, replay: ReplayClass::Effectful };
    type Input = McpInput;

    /// Judged under the name of the tool that it calls, so that no rule about that tool is passed by.
    fn accesses(&self, input: &Value) -> Vec<Access> {
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        match (text("server_name").or_else(|| text("server")), text("tool_name")) {
            (Some(server), Some(tool)) => vec![Access::As(format!("mcp__{server}__{tool}"))],
            _ => vec![Access::Other],
        }
    }

    async fn run(self: Arc<Self>, input: McpInput, _: ToolContext) -> ToolOutcome {
        match input.server_name.or(input.server) {
            None => missing_server(Self::NAME),
            Some(_) if input.tool_name.trim().is_empty() => {
                ToolOutcome::failed(format!("Invalid input for {}: field `tool_name` is empty.", Self::NAME))
            }
            Some(server) => no_server(Some(&server)),
        }
    }
}

fn missing_server(tool: &str) -> ToolOutcome {
    ToolOutcome::failed(format!("Invalid input for {tool}: field `server_name` is missing."))
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
