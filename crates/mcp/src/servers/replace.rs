//! Other servers in place of those that are there: what stays is left alone, what changed is removed and added, and what
//! cannot be used is named with the reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use serde::Serialize;
use serde_json::Value;

use super::status::{Server, ServerStatus};
use super::{McpServers, PARTING_TIME, new_server};
use crate::McpPeer;
use qoder_types::server::{NamedServer, Scope, ServerConfig, Transport};

/// What a replacement came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// Servers that are new or have changed.
    pub added: Vec<String>,
    /// Servers that are gone or have changed.
    pub removed: Vec<String>,
    /// New servers that cannot be used, and why.
    pub errors: BTreeMap<String, String>,
}

/// A described server that is not connected.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedServer {
    /// Its name.
    pub name: String,
    /// Where it is described.
    pub scope: Scope,
    /// Its description without secrets.
    pub shown: Value,
    /// Why, for people.
    pub reason: String,
    /// True when it is switched off or waits for approval; false when it is described wrongly.
    pub disabled: bool,
}

impl RefusedServer {
    pub(super) fn into_server(self) -> Server {
        // Nothing is ever started of it; the kind is the one that cannot be.
        let transport = Transport::Sdk { name: self.name.clone() };
        let config = ServerConfig { enabled: false, ..ServerConfig::new(transport, self.shown) };
        let mut server = Server::new(NamedServer { name: self.name, config, scope: self.scope });
        server.status = if self.disabled { ServerStatus::Disabled } else { ServerStatus::Failed };
        server.error = Some(self.reason.clone());
        server.refused = Some(self.reason);
        server
    }
}

impl McpServers {
    /// Exactly the servers `wanted` in place of these. One that is there with the same description stays as it is; each
    /// new one is connected, and waited for. `refused` are those whose description makes no sense, with the reason.
    pub async fn replace(&self, wanted: Vec<NamedServer>, refused: Vec<RefusedServer>) -> Replaced {
        self.replace_those(|_| true, wanted, refused).await
    }

    /// As [`replace`](Self::replace), and servers of any other scope stay as they are; one of them keeps its name.
    pub async fn replace_scope(
        &self,
        scope: Scope,
        wanted: Vec<NamedServer>,
        refused: Vec<RefusedServer>,
    ) -> Replaced {
        self.replace_those(|server| server.named.scope == scope, wanted, refused).await
    }

    async fn replace_those(
        &self,
        meant: impl Fn(&Server) -> bool,
        wanted: Vec<NamedServer>,
        refused: Vec<RefusedServer>,
    ) -> Replaced {
        let mut replaced = Replaced::default();
        let mut rows = Vec::new();
        let gone: Vec<Arc<dyn McpPeer>> = {
            let mut servers = self.inner.write();
            let stays = |server: &Server| {
                wanted.contains(&server.named) && server.named.config.enabled == is_on(server)
            };
            let leaves = |server: &Server| meant(server) && !stays(server);
            let leaving: Vec<String> =
                servers.iter().filter(|(_, server)| leaves(server)).map(|(name, _)| name.clone()).collect();
            let mut gone = Vec::new();
            for name in leaving {
                let Some(mut server) = servers.remove(&name) else { continue };
                server.stop();
                gone.extend(server.made.map(|made| made.peer));
                replaced.removed.push(name);
            }
            let refused = refused.into_iter().map(RefusedServer::into_server);
            for server in wanted.into_iter().map(new_server).chain(refused) {
                let name = server.named.name.clone();
                if servers.contains_key(&name) {
                    continue;
                }
                if server.status != ServerStatus::Pending {
                    rows.push(server.row());
                }
                replaced.added.push(name.clone());
                servers.insert(name, server);
            }
            gone
        };
        replaced.added.sort();
        self.inner.changed(rows);
        // A process that does not end in time is dropped, and ends with that.
        let _ = tokio::time::timeout(PARTING_TIME, join_all(gone.iter().map(|peer| peer.close()))).await;
        self.start();
        let is_tried = |servers: &BTreeMap<String, Server>, name: &String| {
            servers.get(name).is_none_or(|server| server.status.is_settled())
        };
        self.inner.until(|servers| replaced.added.iter().all(|name| is_tried(servers, name))).await;
        let servers = self.inner.read();
        for name in &replaced.added {
            let Some(server) = servers.get(name) else { continue };
            let problem = match server.status {
                ServerStatus::Failed => server.error.clone().unwrap_or_default(),
                ServerStatus::NeedsAuth => "the server wants credentials (needs-auth)".to_owned(),
                ServerStatus::Pending
                | ServerStatus::Connecting
                | ServerStatus::Connected
                | ServerStatus::Disabled => continue,
            };
            replaced.errors.insert(name.clone(), problem);
        }
        drop(servers);
        replaced
    }
}

fn is_on(server: &Server) -> bool {
    server.status != ServerStatus::Disabled
}
