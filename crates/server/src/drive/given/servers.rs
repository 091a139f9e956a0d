//! The MCP servers of a session: those of its agent, over HTTP, with the tools that its toolsets leave.

use std::collections::{BTreeMap, HashMap};

use qoder_types::server::{NamedServer, Scope, ServerConfig, Transport};
use serde_json::json;

use crate::model::agent::McpServer;
use crate::model::toolset::{ServerTools, Toolset};
use crate::outgoing::PrivateAddresses;

/// The servers of an agent, and the names of those that may not be reached. `tokens` has what is sent to them, by their names.
pub(in crate::drive) fn servers(
    servers: &[McpServer],
    toolset: &Toolset,
    private: &PrivateAddresses,
    tokens: &HashMap<String, String>,
) -> (Vec<NamedServer>, Vec<String>) {
    let (mut named, mut refused) = (Vec::new(), Vec::new());
    for server in servers {
        let Some(tools) = toolset.servers.iter().find(|tools| tools.server == server.name) else { continue };
        if private.refuses(&server.url) {
            refused.push(server.name.clone());
            continue;
        }
        named.push(NamedServer {
            name: tools.alias.clone(),
            config: config(server, tools, tokens.get(&server.name)),
            scope: Scope::Flag,
        });
    }
    (named, refused)
}

fn config(server: &McpServer, tools: &ServerTools, token: Option<&String>) -> ServerConfig {
    let header = token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
    let headers: BTreeMap<String, String> = header.into_iter().collect();
    let transport = Transport::Http { url: server.url.clone(), headers };
    let mut config = ServerConfig::new(transport, json!({ "type": "http", "url": server.url }));
    let enabled = |wanted: bool| {
        let names = tools.tools.iter().filter(move |(_, policy)| policy.is_some() == wanted);
        names.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    match tools.default {
        Some(_) => config.exclude_tools = enabled(false),
        None => config.include_tools = Some(enabled(true)),
    }
    config
}
