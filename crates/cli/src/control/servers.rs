//! The MCP servers that the command line names: JSON or a file with `mcpServers`. Those of type `sdk` live in the program
//! that started us.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::mcp::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvents, ToolCall};
use serde_json::{Map, Value};

use super::channel::Channel;
use super::initialize;
use crate::arguments::ProtocolArguments;
use crate::exit::Fault;

/// The servers that the command line names.
#[derive(Default)]
pub struct NamedServers {
    /// Those that live in the program that started us.
    pub in_program: Vec<String>,
    /// Those that this version cannot reach; they are shown as failed.
    pub unreachable: Vec<(String, Arc<dyn McpPeer>)>,
}

impl NamedServers {
    /// Reads the flags. A list of allowed names is for servers from elsewhere: those of the program were put there by it.
    pub fn read(arguments: &ProtocolArguments) -> Result<Self, Fault> {
        let mut all = Map::new();
        for text in &arguments.mcp_config {
            all.extend(servers(text)?);
        }
        let mut named = Self::of(all);
        let allowed = &arguments.allowed_mcp_server_names;
        named.unreachable.retain(|(name, _)| allowed.is_empty() || allowed.contains(name));
        Ok(named)
    }

    /// Sorts configurations by where their servers live.
    pub fn of(configurations: Map<String, Value>) -> Self {
        let mut named = Self::default();
        for (name, config) in configurations {
            match config.get("type").and_then(Value::as_str).unwrap_or("stdio") {
                "sdk" => named.in_program.push(name),
                kind => named.unreachable.push((name, Arc::new(Unreachable(kind.to_owned())))),
            }
        }
        named
    }

    /// The ways to speak with them.
    pub fn peers(self, channel: &Arc<Channel>) -> Vec<(String, Arc<dyn McpPeer>)> {
        let mut peers = self.unreachable;
        peers.extend(self.in_program.into_iter().map(|name| {
            let peer = initialize::server(channel, &name);
            (name, peer)
        }));
        peers
    }
}

fn servers(text: &str) -> Result<Map<String, Value>, Fault> {
    let hint = "give {\"mcpServers\": {\"name\": {…}}}, or a file with it";
    let json = if text.trim_start().starts_with('{') {
        text.to_owned()
    } else {
        std::fs::read_to_string(text)
            .map_err(|error| Fault::input(format!("--mcp-config: cannot read {text}: {error}"), hint))?
    };
    let value: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))
        .map_err(|error| Fault::input(format!("--mcp-config is not JSON: {error}"), hint))?;
    match value.get("mcpServers") {
        Some(Value::Object(servers)) => Ok(servers.clone()),
        Some(_) | None => Err(Fault::input("--mcp-config has no object `mcpServers`", hint)),
    }
}

/// A server of a kind that is not spoken yet.
struct Unreachable(String);

impl Unreachable {
    fn problem<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, PeerError>> {
        let problem = format!(
            "servers of type `{}` are not supported by this version; those of type `sdk` are",
            self.0
        );
        std::future::ready(Err(PeerError::Failed(problem))).boxed()
    }
}

impl McpPeer for Unreachable {
    fn connect(&self, _: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        self.problem()
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        self.problem()
    }

    fn call(&self, _: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        self.problem()
    }

    fn request(&self, _: &'static str, _: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        self.problem()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}
