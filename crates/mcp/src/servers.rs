//! The MCP servers of a session: each connects by itself, fails by itself, and brings its tools when it is ready. The
//! first model call waits for those that still connect, within a limit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use qoder_core::ports::{Cancelled, Tool};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{CallToolResult, Greeting, ListedTool, McpPeer, McpTool, ToolCall, tool_name};

/// How long a server may take to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// Nothing was tried yet.
    Pending,
    /// The handshake is on its way.
    Connecting,
    /// Its tools can be called.
    Connected,
    /// It cannot be used, and why.
    Failed(String),
    /// Somebody switched it off.
    Disabled,
}

impl ServerStatus {
    /// The documented word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed(_) => "failed",
            Self::Disabled => "disabled",
        }
    }
}

/// What a replacement came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// Servers that were not there before.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// New servers that cannot be used, and why.
    pub errors: BTreeMap<String, String>,
}

struct Server {
    peer: Arc<dyn McpPeer>,
    status: ServerStatus,
    greeting: Greeting,
    tools: Vec<Arc<dyn Tool>>,
}

impl Server {
    fn new(peer: Arc<dyn McpPeer>) -> Self {
        Self { peer, status: ServerStatus::Pending, greeting: Greeting::default(), tools: Vec::new() }
    }
}

/// The servers of a session, by name.
#[derive(Default)]
pub struct McpServers {
    servers: RwLock<BTreeMap<String, Server>>,
}

impl McpServers {
    /// These servers, none of them connected yet.
    #[must_use]
    pub fn new(servers: Vec<(String, Arc<dyn McpPeer>)>) -> Self {
        let server = |(name, peer)| (name, Server::new(peer));
        Self { servers: RwLock::new(servers.into_iter().map(server).collect()) }
    }

    /// Connects every server that has not been tried, all at once. Afterwards each is connected or has failed.
    pub async fn connect(&self) {
        let waiting = self.waiting();
        join_all(waiting.into_iter().map(|(name, peer)| self.connect_one(name, peer))).await;
    }

    /// Connects one server again.
    ///
    /// # Errors
    /// When there is no such server or it fails again.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let peer = self.with(name, |server| Arc::clone(&server.peer))?;
        self.connect_one(name.to_owned(), peer).await;
        match self.with(name, |server| server.status.clone())? {
            ServerStatus::Failed(problem) => Err(problem),
            ServerStatus::Pending
            | ServerStatus::Connecting
            | ServerStatus::Connected
            | ServerStatus::Disabled => Ok(()),
        }
    }

    /// Other servers in place of these. One that is there already stays as it is; each new one is connected.
    pub async fn replace(&self, wanted: Vec<(String, Arc<dyn McpPeer>)>) -> Replaced {
        let mut replaced = Replaced::default();
        {
            let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
            servers.retain(|name, _| {
                let stays = wanted.iter().any(|(other, _)| other == name);
                if !stays {
                    replaced.removed.push(name.clone());
                }
                stays
            });
            for (name, peer) in wanted {
                if let Entry::Vacant(place) = servers.entry(name.clone()) {
                    place.insert(Server::new(peer));
                    replaced.added.push(name);
                }
            }
        }
        replaced.added.sort();
        self.connect().await;
        for name in &replaced.added {
            if let Ok(ServerStatus::Failed(problem)) = self.with(name, |server| server.status.clone()) {
                replaced.errors.insert(name.clone(), problem);
            }
        }
        replaced
    }

    /// Switches a server off, or on again.
    ///
    /// # Errors
    /// When there is no such server or it cannot be connected.
    pub async fn toggle(&self, name: &str, enabled: bool) -> Result<(), String> {
        if enabled {
            return self.reconnect(name).await;
        }
        self.with(name, |server| {
            server.status = ServerStatus::Disabled;
            server.tools.clear();
        })
    }

    /// Calls a tool by the name that the model would use.
    ///
    /// # Errors
    /// When no connected server has such a tool, or the server could not be asked.
    pub async fn call(
        &self,
        name: &str,
        arguments: Value,
        cancelled: Cancelled,
    ) -> Result<CallToolResult, String> {
        let found = {
            let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
            servers.iter().find_map(|(server, state)| {
                let tool = state.greeting.tools.iter().find(|tool| tool_name(server, &tool.name) == name)?;
                (state.status == ServerStatus::Connected)
                    .then(|| (Arc::clone(&state.peer), tool.name.clone()))
            })
        };
        let (peer, tool) = found.ok_or_else(|| format!("no connected MCP server has a tool {name}"))?;
        peer.call(ToolCall::new(tool, arguments, cancelled)).await.map_err(|error| error.to_string())
    }

    /// The tools of all connected servers, in a fixed order.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.values().flat_map(|server| server.tools.iter().cloned()).collect()
    }

    /// `name` and `status` of every server, as the init message has them.
    #[must_use]
    pub fn summary(&self) -> Vec<Value> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let row = |(name, server): (&String, &Server)| json!({ "name": name, "status": server.status.as_str(), "source": "sdk" });
        servers.iter().map(row).collect()
    }

    /// Everything that is known about every server.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.iter().map(|(name, server)| row(name, server)).collect()
    }

    fn waiting(&self) -> Vec<(String, Arc<dyn McpPeer>)> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let pending = servers.iter_mut().filter(|(_, server)| server.status == ServerStatus::Pending);
        pending
            .map(|(name, server)| {
                server.status = ServerStatus::Connecting;
                (name.clone(), Arc::clone(&server.peer))
            })
            .collect()
    }

    async fn connect_one(&self, name: String, peer: Arc<dyn McpPeer>) {
        let greeting = match tokio::time::timeout(PATIENCE, peer.connect(Arc::new(|_| {}))).await {
            Ok(greeting) => greeting.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        // A server that was removed meanwhile needs no status.
        let _ = self.with(&name, |server| match greeting {
            Ok(greeting) => {
                let tool = |listed: &ListedTool| {
                    Arc::new(McpTool::new(&name, listed, Arc::clone(&server.peer))) as Arc<dyn Tool>
                };
                server.tools = greeting.tools.iter().map(tool).collect();
                server.greeting = greeting;
                server.status = ServerStatus::Connected;
            }
            Err(problem) => {
                server.tools.clear();
                server.status = ServerStatus::Failed(problem);
            }
        });
    }

    fn with<T>(&self, name: &str, change: impl FnOnce(&mut Server) -> T) -> Result<T, String> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<String> = servers.keys().cloned().collect();
        let server = servers.get_mut(name).ok_or_else(|| {
            let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            format!("there is no MCP server named `{name}`; known are: {known}")
        })?;
        Ok(change(server))
    }
}

fn row(name: &str, server: &Server) -> Value {
    let mut row = json!({
        "name": name, "status": server.status.as_str(),
        "config": { "type": "sdk", "name": name }, "scope": "sdk",
    });
    if let Some(info) = &server.greeting.server_info {
        row["serverInfo"] = info.clone();
    }
    match &server.status {
        ServerStatus::Failed(problem) => row["error"] = json!(problem),
        ServerStatus::Connected => row["tools"] = server.greeting.tools.iter().map(tool_row).collect(),
        ServerStatus::Pending | ServerStatus::Connecting | ServerStatus::Disabled => {}
    }
    row
}

/// The bare name, and the hints without their suffix; only those that were set.
fn tool_row(tool: &ListedTool) -> Value {
    let mut row = json!({ "name": tool.name });
    if let Some(text) = &tool.description {
        row["description"] = json!(text);
    }
    let hints = tool.annotations.as_ref().and_then(Value::as_object);
    let mut shown = Map::new();
    for (key, word) in
        [("readOnlyHint", "readOnly"), ("destructiveHint", "destructive"), ("openWorldHint", "openWorld")]
    {
        if let Some(value) = hints.and_then(|hints| hints.get(key)).filter(|value| value.is_boolean()) {
            shown.insert(word.to_owned(), value.clone());
        }
    }
    if !shown.is_empty() {
        row["annotations"] = Value::Object(shown);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tunnel, TunnelSend};
    use futures::FutureExt;

    fn server(works: bool) -> Arc<dyn McpPeer> {
        let send: TunnelSend = Arc::new(move |message: Value| {
            let answer = match message["method"].as_str() {
                Some("initialize") if works => {
                    json!({ "result": { "serverInfo": { "name": "kb", "version": "1" } } })
                }
                Some("tools/list") => json!({ "result": { "tools": [{
                    "name": "find", "description": "finds", "inputSchema": { "type": "object" },
                    "annotations": { "readOnlyHint": true, "title": "T", "idempotentHint": true },
                }] } }),
                _ => json!({ "error": { "code": -1, "message": "broken" } }),
            };
            std::future::ready(Ok(answer)).boxed()
        });
        Arc::new(Tunnel::new(send))
    }

    #[tokio::test]
    async fn a_broken_server_harms_no_other() {
        let servers =
            McpServers::new(vec![("kb".to_owned(), server(true)), ("bad".to_owned(), server(false))]);
        servers.connect().await;
        assert_eq!(
            servers.rows(),
            [
                json!({ "name": "bad", "status": "failed", "config": { "type": "sdk", "name": "bad" }, "scope": "sdk",
                "error": "initialize: broken (-1)" }),
                json!({ "name": "kb", "status": "connected", "config": { "type": "sdk", "name": "kb" }, "scope": "sdk",
                "serverInfo": { "name": "kb", "version": "1" },
                "tools": [{ "name": "find", "description": "finds", "annotations": { "readOnly": true } }] }),
            ]
        );
        let names: Vec<String> = servers.tools().iter().map(|tool| tool.definition().name.clone()).collect();
        assert_eq!(names, ["mcp__kb__find"]);
    }

    #[tokio::test]
    async fn a_server_can_be_switched_off_and_on() {
        let servers = McpServers::new(vec![("kb".to_owned(), server(true))]);
        servers.connect().await;
        servers.toggle("kb", false).await.unwrap();
        assert!(servers.tools().is_empty());
        assert_eq!(servers.rows()[0]["status"], "disabled");
        servers.toggle("kb", true).await.unwrap();
        assert_eq!(servers.tools().len(), 1);
        let problem = servers.reconnect("other").await.unwrap_err();
        assert_eq!(problem, "there is no MCP server named `other`; known are: kb");
    }
}
