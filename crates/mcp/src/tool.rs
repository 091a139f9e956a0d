//! A tool of an MCP server, as one of the session's tools: advertised as `mcp__server__tool`, judged by the gate under
//! that name, and called through the server. What the server says about it is data: bounded, without control characters,
//! and never a reason to allow anything.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, ProgressSink, Tool, ToolContext, ToolOutcome, ToolProgress};
use qoder_types::{CallOutcome, ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::{Value, json};

use crate::names::tool_name;
use crate::peer::CallProgress;
use crate::result::plain;
use crate::{CallToolResult, ListedTool, ToolCall, result};

/// Bytes of a description that the model reads.
const LONGEST_DESCRIPTION: usize = 2048;
/// Bytes of a schema. One that is longer would fill the context by itself.
const LONGEST_SCHEMA: usize = 256 * 1024;

/// Calls tools of servers by their names there. The session's servers do.
pub(crate) trait ToolCaller: Send + Sync {
    /// Calls a tool of `server`; the error is for the model.
    fn call_tool<'a>(
        &'a self,
        server: &'a str,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<CallToolResult, String>>;
}

/// A tool of an MCP server.
pub struct McpTool {
    definition: ToolDefinition,
    annotations: ToolAnnotations,
    server: String,
    tool: String,
    limit: usize,
    servers: Weak<dyn ToolCaller>,
}

impl McpTool {
    /// The tool `listed` of the server that the session calls `server`.
    ///
    /// # Errors
    /// When it cannot be offered, and why.
    pub(crate) fn new(
        server: &str,
        listed: &ListedTool,
        servers: Weak<dyn ToolCaller>,
    ) -> Result<Self, String> {
        let hint = |name: &str| {
            listed.annotations.as_ref().and_then(|hints| hints.get(name)).and_then(Value::as_bool)
        };
        let input_schema = if listed.input_schema.is_object() {
            listed.input_schema.clone()
        } else {
            json!({ "type": "object" })
        };
        let size = input_schema.to_string().len();
        if size > LONGEST_SCHEMA {
            return Err(format!("its schema has {size} bytes; at most {LONGEST_SCHEMA} are read"));
        }
        Ok(Self {
            definition: ToolDefinition {
                name: tool_name(server, &listed.name),
                description: plain(listed.description.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION)
                    .into(),
                input_schema: input_schema.into(),
            },
            annotations: ToolAnnotations {
                read_only_hint: hint("readOnlyHint").unwrap_or(false),
                destructive_hint: hint("destructiveHint").unwrap_or(true),
                open_world_hint: hint("openWorldHint").unwrap_or(true),
            },
            server: server.to_owned(),
            tool: listed.name.clone(),
            limit: result::limit(listed.meta.as_ref()),
            servers,
        })
    }
}

/// How far a call has come, for those who watch it.
fn report(progress: &CallProgress) -> String {
    let done = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{done} {}\n", plain(message, LONGEST_DESCRIPTION)),
        None => format!("{done}\n"),
    }
}

fn watcher(sink: ProgressSink) -> Arc<dyn Fn(CallProgress) + Send + Sync> {
    Arc::new(move |progress| sink(ToolProgress::Output(report(&progress))))
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
        let call = ToolCall {
            tool: self.tool.clone(),
            arguments: input,
            cancelled: context.cancelled.clone(),
            progress: watcher(Arc::clone(&context.progress)),
        };
        let (name, server, limit) = (self.definition.name.clone(), self.server.clone(), self.limit);
        let servers = self.servers.upgrade();
        async move {
            let called = match servers {
                Some(servers) => servers.call_tool(&server, call).await,
                None => Err("the session has ended".to_owned()),
            };
            match called {
                Ok(result) => result::outcome(&result, limit, &context.outputs, &name),
                Err(_) if context.cancelled.peek().is_some() => ToolOutcome {
                    outcome: CallOutcome::Interrupted,
                    ..ToolOutcome::failed("The call was interrupted; the server was told to stop.")
                },
                Err(problem) => {
                    let problem = plain(&problem, 2 * LONGEST_DESCRIPTION);
                    ToolOutcome::failed(format!("{name} could not be called: {problem}."))
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_with_what_is_known_of_it() {
        let progress =
            CallProgress { progress: 2.0, total: Some(5.0), message: Some("half\u{7}".to_owned()) };
        assert_eq!(report(&progress), "2/5 half\n");
        assert_eq!(report(&CallProgress { progress: 0.5, total: None, message: None }), "0.5\n");
    }

    #[test]
    fn a_schema_that_would_fill_the_context_is_refused() {
        let listed = ListedTool {
            name: "big".to_owned(),
            description: None,
            input_schema: json!({ "type": "object", "description": "x".repeat(300_000) }),
            annotations: None,
            meta: None,
        };
        let problem = McpTool::new("kb", &listed, Weak::<crate::servers::Inner>::new()).err().unwrap();
        assert!(problem.contains("300"), "{problem}");
    }
}
