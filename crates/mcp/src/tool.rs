//! A tool of an MCP server, as one of the session's tools: advertised as `mcp__server__tool`, judged by the gate under
//! that name, and called through the server's peer.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{CallOutcome, ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::{Value, json};

use crate::{ListedTool, McpPeer, ToolCall, result};

/// The name under which the model calls a server's tool.
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// A tool of an MCP server.
pub struct McpTool {
    definition: ToolDefinition,
    annotations: ToolAnnotations,
    tool: String,
    limit: usize,
    peer: Arc<dyn McpPeer>,
}

impl McpTool {
    /// The tool `listed` of the server that the session calls `server`.
    #[must_use]
    pub fn new(server: &str, listed: &ListedTool, peer: Arc<dyn McpPeer>) -> Self {
        let hint = |name: &str| {
            listed.annotations.as_ref().and_then(|hints| hints.get(name)).and_then(Value::as_bool)
        };
        let schema = if listed.input_schema.is_object() {
            listed.input_schema.clone()
        } else {
            json!({ "type": "object" })
        };
        Self {
            definition: ToolDefinition {
                name: tool_name(server, &listed.name),
                description: listed.description.clone().unwrap_or_default(),
                input_schema: schema,
            },
            annotations: ToolAnnotations {
                read_only_hint: hint("readOnlyHint").unwrap_or(false),
                destructive_hint: hint("destructiveHint").unwrap_or(true),
                open_world_hint: hint("openWorldHint").unwrap_or(true),
            },
            tool: listed.name.clone(),
            limit: result::limit(listed.meta.as_ref()),
            peer,
        }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn annotations(&self) -> ToolAnnotations {
        self.annotations
    }

    /// A server's word that a tool only reads is enough to run calls together, not to run one twice.
    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    fn is_read_only(&self, _: &Value) -> bool {
        self.annotations.read_only_hint
    }

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Other]
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let call = self.peer.call(ToolCall::new(self.tool.clone(), input, context.cancelled.clone()));
        let (name, limit) = (self.definition.name.clone(), self.limit);
        async move {
            match call.await {
                Ok(result) => result::outcome(&result, limit, &context.output_dir, &name),
                Err(_) if context.cancelled.peek().is_some() => ToolOutcome {
                    outcome: CallOutcome::Interrupted,
                    ..ToolOutcome::failed("The call was interrupted; the server was told to stop.")
                },
                Err(problem) => ToolOutcome::failed(format!("{name} could not be called: {problem}.")),
            }
        }
        .boxed()
    }
}
