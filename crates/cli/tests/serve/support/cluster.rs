//! Several servers on one PostgreSQL database, with one model and one token.

use std::sync::Arc;

use qoder_testkit::{PostgresServer, Script, ScriptedServer};

use super::{DATABASE, Server};

/// Servers that share a database.
pub struct Cluster {
    /// They end before their database does.
    pub nodes: Vec<Server>,
    pub postgres: PostgresServer,
    pub model: Option<Arc<ScriptedServer>>,
}

impl Cluster {
    /// So many nodes whose model answers as the script says.
    pub fn start(count: usize, script: Option<Script>) -> Self {
        Self::with(count, script, &[])
    }

    /// The same with further arguments.
    pub fn with(count: usize, script: Option<Script>, arguments: &[&str]) -> Self {
        let postgres = PostgresServer::start();
        let model = script.map(|script| Arc::new(ScriptedServer::start(script)));
        let mut cluster = Self { nodes: Vec::new(), postgres, model };
        for _ in 0..count {
            cluster.add(arguments);
        }
        cluster
    }

    /// One more node.
    pub fn add(&mut self, arguments: &[&str]) {
        let url = self.postgres.url();
        self.add_at(&url, arguments);
    }

    /// One more node that reaches the database at another address.
    pub fn add_at(&mut self, url: &str, arguments: &[&str]) {
        let token = self.nodes.first().map(|node| node.token.clone());
        let node = Server::node(self.model.clone(), token.as_deref(), arguments, &[(DATABASE, url)]);
        self.nodes.push(node);
    }
}
