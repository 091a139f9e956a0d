//! A server whose tools are functions of this process. The engine calls them directly; an external program reaches
//! them through messages. A handler that fails or panics affects only its own call.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::mcp::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvents, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

use super::{McpServerToolPolicy, SdkMcpTool, ToolContext, ToolResult};
use crate::callback::{CancellationToken, guarded};
use crate::error::{Error, Result};

/// A server in this process. Make one with [`create_sdk_mcp_server`].
#[derive(Clone, Serialize)]
pub struct McpSdkServerConfig {
    /// Its name, for the handshake. The model sees the key under which a session is given the server.
    pub name: String,
    /// What is known about permissions of its tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpServerToolPolicy>,
    #[serde(skip)]
    pub(crate) instance: Arc<Instance>,
}

impl std::fmt::Debug for McpSdkServerConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("McpSdkServerConfig")
            .field("name", &self.name)
            .field("tools", &self.instance.tools)
            .finish_non_exhaustive()
    }
}

/// Gathers tools into a server that a session can be given.
///
/// ```
/// use qoder_agent_sdk::{Error, NoArguments, create_sdk_mcp_server, tool};
///
/// let now = tool("now", "Returns the time.", |_: NoArguments| async { "noon" });
/// let clock = create_sdk_mcp_server("clock", "1.0.0", [now.clone()])?;
/// assert_eq!(clock.name, "clock");
///
/// let error = create_sdk_mcp_server("clock", "1.0.0", [now.clone(), now]).unwrap_err();
/// assert_eq!(error.to_string(), "the server `clock`: there are two tools named `now`");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// When a name or description is empty, a name is taken twice, or a schema does not describe an object.
pub fn create_sdk_mcp_server(
    name: impl Into<String>,
    version: impl Into<String>,
    tools: impl IntoIterator<Item = SdkMcpTool>,
) -> Result<McpSdkServerConfig> {
    let (name, version) = (name.into(), version.into());
    let tools: Vec<SdkMcpTool> = tools.into_iter().collect();
    let wrong = |problem: String| Error::ToolServer { server: name.clone(), problem };
    if name.trim().is_empty() {
        return Err(wrong("the name of a server is empty".to_owned()));
    }
    let mut names = BTreeSet::new();
    for tool in &tools {
        if tool.name.trim().is_empty() {
            return Err(wrong("the name of a tool is empty".to_owned()));
        }
        if tool.description.trim().is_empty() {
            return Err(wrong(format!(
                "the description of `{}` is empty; the model decides by it",
                tool.name
            )));
        }
        if !names.insert(tool.name.as_str()) {
            return Err(wrong(format!("there are two tools named `{}`", tool.name)));
        }
        if !describes_object(&tool.input_schema) {
            return Err(wrong(format!(
                "the schema of `{}` does not describe an object; the arguments of a tool are a struct",
                tool.name
            )));
        }
    }
    let instance = Instance { name: name.clone(), version, tools };
    Ok(McpSdkServerConfig { name, tools: Vec::new(), instance: Arc::new(instance) })
}

fn describes_object(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return false };
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(_) => false,
        // Unions of objects name no type of their own.
        None => ["properties", "oneOf", "anyOf", "allOf", "$ref"].iter().any(|key| schema.contains_key(*key)),
    }
}

/// The server itself.
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tools: Vec<SdkMcpTool>,
}

impl Instance {
    pub(crate) fn server_info(&self) -> Value {
        json!({ "name": self.name, "version": self.version })
    }

    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        let listed = |tool: &SdkMcpTool| ListedTool {
            name: tool.name.clone(),
            description: Some(tool.description.clone()),
            input_schema: tool.input_schema.clone(),
            annotations: tool.annotations.wire(),
            meta: tool.annotations.meta(),
        };
        self.tools.iter().map(listed).collect()
    }

    pub(crate) fn run(
        &self,
        name: &str,
        arguments: Value,
        signal: CancellationToken,
    ) -> BoxFuture<'static, ToolResult> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            let text = format!("There is no tool named {name} on the server {}.", self.name);
            return std::future::ready(ToolResult::error(text)).boxed();
        };
        let handler = Arc::clone(&tool.handler);
        let name = tool.name.clone();
        async move {
            // Also the part of a handler that is not async yet is foreign code.
            let work = async { Ok::<_, Infallible>(handler(arguments, ToolContext { signal }).await) };
            guarded(&name, work).await.unwrap_or_else(ToolResult::error)
        }
        .boxed()
    }
}

/// What the engine calls.
pub(crate) struct Peer(pub(crate) Arc<Instance>);

impl McpPeer for Peer {
    fn connect(&self, _: PeerEvents) -> BoxFuture<'static, std::result::Result<Greeting, PeerError>> {
        let greeting = Greeting {
            server_info: Some(self.0.server_info()),
            capabilities: json!({ "tools": {} }),
            instructions: None,
            tools: self.0.listed(),
        };
        std::future::ready(Ok(greeting)).boxed()
    }

    fn list_tools(&self) -> BoxFuture<'static, std::result::Result<Vec<ListedTool>, PeerError>> {
        std::future::ready(Ok(self.0.listed())).boxed()
    }

    fn request(
        &self,
        method: &'static str,
        _: Value,
    ) -> BoxFuture<'static, std::result::Result<Value, PeerError>> {
        let message = format!("Method not found: {method}");
        std::future::ready(Err(PeerError::Refused { code: -32601, message })).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, std::result::Result<CallToolResult, PeerError>> {
        let cancelled = call.cancelled;
        let run = self.0.run(&call.tool, call.arguments, cancelled.clone().into());
        async move {
            // A handler that takes no notice is left behind; what it does after this is its own affair.
            let stopped = async {
                cancelled.await;
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                result = run => Ok(CallToolResult {
                    content: result.blocks(),
                    is_error: result.is_error,
                    structured_content: result.structured_content,
                }),
                () = stopped => Err(PeerError::Failed("the call was cancelled".to_owned())),
            }
        }
        .boxed()
    }
}

/// How long a handler may take to notice that it shall stop.
const GRACE: std::time::Duration = std::time::Duration::from_millis(500);
