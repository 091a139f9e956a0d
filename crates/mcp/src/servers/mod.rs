//! The MCP servers of a session: each is looked after by a task of its own, connects by itself, fails by itself, and
//! brings its tools when it is ready. Listeners get every change, and the first model call waits for servers
//! only as long as it must.

mod authorize;
mod call;
mod connection;
mod error;
mod replace;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::future::join_all;
use qoder_core::ports::{Cancelled, Tool};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::authorization::Authorizer;
use crate::names::{server_name_problem, tool_name};
use crate::questions::{NoAnswerer, ServerQuestions};
use crate::{CallToolResult, Greeting, McpPeer, PeerError, PeerEvent, ToolCall, plain};
use qoder_types::server::{NamedServer, Scope, ToolPolicy, Transport};

pub use authorize::Authentication;
pub use error::ServerError;
pub use replace::{RefusedServer, Replaced};
pub use status::ServerStatus;

use status::Server;

/// How long the first model call waits for servers that still connect, unless the session says otherwise. Servers in the
/// program that started us are always waited for: nothing but that program can hold them up.
pub const START_WAIT: Duration = Duration::from_secs(5);
/// Bytes of what a server says about how it wants to be used.
const LONGEST_INSTRUCTIONS: usize = 2 * 1024;
/// How long is waited for servers.
#[derive(Debug, Clone, Copy)]
struct Waits {
    /// For those that still connect, by the first model call.
    start: Duration,
    /// Until a server has connected, or listed its tools.
    answer: Duration,
    /// Before the first attempt to reach a dropped server again; each further pause is twice as long.
    first_pause: Duration,
}

impl Waits {
    fn starting_within(start: Duration) -> Self {
        Self { start, answer: Duration::from_secs(30), first_pause: Duration::from_secs(1) }
    }
}

/// How long servers may take to say goodbye.
const PARTING_TIME: Duration = Duration::from_secs(5);

/// The way to one server.
#[derive(Clone)]
pub struct Made {
    /// Speaks with it.
    pub peer: Arc<dyn McpPeer>,
    /// Its credentials, for a remote one.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

/// Makes the way to a server from its description; nothing is reached by that. The error says why that failed.
pub type ServerMaker = Arc<dyn Fn(&NamedServer) -> Result<Made, String> + Send + Sync>;
/// Hears the rows that changed.
pub type StatusListener = Arc<dyn Fn(Vec<Value>) + Send + Sync>;
/// Gets what a server sends without being asked, with the server's name.
pub type EventListener = Arc<dyn Fn(&str, &PeerEvent) + Send + Sync>;

/// The servers of a session, by name.
pub struct McpServers {
    inner: Arc<Inner>,
}

/// What the tasks and the tools share.
pub(crate) struct Inner {
    servers: RwLock<BTreeMap<String, Server>>,
    maker: ServerMaker,
    questions: Arc<dyn ServerQuestions>,
    /// Counts changes, for those who wait for one.
    changes: watch::Sender<u64>,
    listener: RwLock<Option<StatusListener>>,
    events: RwLock<Option<EventListener>>,
    started: OnceLock<Instant>,
    waits: Waits,
    closed: OnceLock<()>,
    this: Weak<Inner>,
}

impl Default for McpServers {
    fn default() -> Self {
        let maker: ServerMaker = Arc::new(|_| Err("there is no way to it".to_owned()));
        Self::new(Vec::new(), maker, Arc::new(NoAnswerer), START_WAIT)
    }
}

impl McpServers {
    /// These servers, none of them connected yet. `start_wait` bounds how long [`ready`](Self::ready) waits for servers
    /// outside of the program that started us.
    #[must_use]
    pub fn new(
        servers: Vec<NamedServer>,
        maker: ServerMaker,
        questions: Arc<dyn ServerQuestions>,
        start_wait: Duration,
    ) -> Self {
        Self::waiting(servers, maker, questions, Waits::starting_within(start_wait))
    }

    fn waiting(
        servers: Vec<NamedServer>,
        maker: ServerMaker,
        questions: Arc<dyn ServerQuestions>,
        waits: Waits,
    ) -> Self {
        let servers = servers.into_iter().map(|named| (named.name.clone(), new_server(named))).collect();
        let inner = Arc::new_cyclic(|this| Inner {
            servers: RwLock::new(servers),
            maker,
            questions,
            changes: watch::Sender::new(0),
            listener: RwLock::default(),
            events: RwLock::default(),
            started: OnceLock::new(),
            waits,
            closed: OnceLock::new(),
            this: Weak::clone(this),
        });
        Self { inner }
    }

    /// Servers that are shown and not connected.
    pub fn add_refused(&self, refused: Vec<RefusedServer>) {
        let mut servers = self.inner.write();
        servers.extend(refused.into_iter().map(|one| (one.name.clone(), one.into_server())));
    }

    /// Sends `listener` every change from now on.
    pub fn listen(&self, listener: StatusListener) {
        *self.inner.listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Sends `listener` the events of servers from now on.
    pub fn listen_to_events(&self, listener: EventListener) {
        *self.inner.events.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Begins to connect every server that has not been tried, all at once. Needs a runtime of tokio; returns at once.
    pub fn start(&self) {
        self.inner.started.get_or_init(Instant::now);
        for name in self.inner.named(|server| server.status == ServerStatus::Pending) {
            self.inner.begin(&name, None);
        }
    }

    /// Waits until the first model call need not wait any longer: every server in the program that started us has been
    /// tried, and every other one too, or the time is over; a host that is asked for credentials has the same time. Those
    /// that come later bring their tools then.
    pub async fn ready(&self) {
        let is_inside = |server: &Server| matches!(server.named.config.transport, Transport::Sdk { .. });
        self.inner
            .until(|servers| !servers.values().any(|server| is_inside(server) && !server.status.is_settled()))
            .await;
        let started = *self.inner.started.get_or_init(Instant::now);
        let all = self.inner.until(|servers| servers.values().all(Server::is_done));
        // Whether all came in time or not, the call goes out now.
        let _ = tokio::time::timeout_at(started + self.inner.waits.start, all).await;
    }

    /// Waits until every server has been tried.
    pub async fn settled(&self) {
        self.inner.until(|servers| servers.values().all(|server| server.status.is_settled())).await;
    }

    /// Connects every server and waits until each has been tried.
    pub async fn connect(&self) {
        self.start();
        self.settled().await;
    }

    /// Connects one server again.
    ///
    /// # Errors
    /// When there is no such server or it cannot be used after all.
    pub async fn reconnect(&self, name: &str) -> Result<(), ServerError> {
        self.inner.reconnect(name, None).await
    }

    /// Switches a server off, or on again.
    ///
    /// # Errors
    /// When there is no such server or it cannot be connected.
    pub async fn toggle(&self, name: &str, enabled: bool) -> Result<(), ServerError> {
        if enabled {
            return self.inner.reconnect(name, None).await;
        }
        let peer = self.inner.change(name, None, |server| {
            server.stop();
            server.status = ServerStatus::Disabled;
            server.error = None;
            server.forget();
            server.made.as_ref().map(|made| Arc::clone(&made.peer))
        })?;
        if let Some(peer) = peer {
            let _ = tokio::time::timeout(PARTING_TIME, peer.close()).await;
        }
        Ok(())
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
    ) -> Result<CallToolResult, ServerError> {
        let found = self.inner.read().iter().find_map(|(server, state)| {
            let tool = state.greeting.tools.iter().find(|tool| tool_name(server, &tool.name) == name)?;
            Some((server.clone(), tool.name.clone()))
        });
        let (server, tool) = found.ok_or_else(|| ServerError::NoTool(name.to_owned()))?;
        let call = ToolCall::new(tool, arguments, cancelled);
        self.inner.call(&server, call).await.map_err(ServerError::Unusable)
    }

    /// Any other request of the protocol to a connected server.
    ///
    /// # Errors
    /// When there is no such server, it is not connected, or it refuses.
    pub async fn request(
        &self,
        server: &str,
        method: &'static str,
        params: Value,
    ) -> Result<Value, PeerError> {
        let peer = self.inner.usable(server).await?;
        peer.request(method, params).await
    }

    /// What the connected servers say of themselves, by name.
    #[must_use]
    pub fn greetings(&self) -> Vec<(String, Greeting)> {
        let servers = self.inner.read();
        let connected = servers.iter().filter(|(_, server)| server.status == ServerStatus::Connected);
        connected.map(|(name, server)| (name.clone(), server.greeting.clone())).collect()
    }

    /// How servers want to be used, in their own words: bounded, without control characters and with a mark in front of
    /// each line, so that nothing in it can pass for a text of another source. By name; of servers that are there.
    #[must_use]
    pub fn instructions(&self) -> Vec<(String, String)> {
        let servers = self.inner.read();
        let there = servers
            .iter()
            .filter(|(_, server)| server.status == ServerStatus::Connected || !server.tools.is_empty());
        let said = |(name, server): (&String, &Server)| {
            let text = plain(server.greeting.instructions.as_deref()?.trim(), LONGEST_INSTRUCTIONS);
            let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
            (!lines.is_empty()).then(|| (name.clone(), lines.join("\n")))
        };
        there.filter_map(said).collect()
    }

    /// The tools of all servers, in a fixed order. Those of a server that is being reconnected stay: a call waits for it.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.inner.read().values().flat_map(|server| server.tools.iter().cloned()).collect()
    }

    /// The server, and the name there, of a tool by the name that the model would use.
    #[must_use]
    pub fn origin_of(&self, name: &str) -> Option<(String, String)> {
        self.inner.read().iter().find_map(|(server, state)| {
            let listed = state.greeting.tools.iter().find(|tool| tool_name(server, &tool.name) == name)?;
            Some((server.clone(), listed.name.clone()))
        })
    }

    /// What the descriptions decide about tools: where a description came from, the name that rules use, and the policy.
    #[must_use]
    pub fn policies(&self) -> Vec<(Scope, String, ToolPolicy)> {
        let servers = self.inner.read();
        let of = |server: &Server| {
            let (name, scope) = (server.named.name.clone(), server.named.scope);
            let policies = server.named.config.policies.clone();
            policies.into_iter().map(move |(tool, policy)| (scope, tool_name(&name, &tool), policy))
        };
        servers.values().flat_map(of).collect()
    }

    /// `name` and `status` of every server, as the init message has them.
    #[must_use]
    pub fn summary(&self) -> Vec<Value> {
        let row = |server: &Server| json!({ "name": server.named.name, "status": server.status.as_str(), "source": server.named.scope.as_str() });
        self.inner.read().values().map(row).collect()
    }

    /// Everything that is known about every server.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        self.inner.read().values().map(Server::row).collect()
    }

    /// The session works in other directories now: connected servers get a notification, and nothing waits for it.
    pub fn roots_changed(&self) {
        let servers = self.inner.read();
        let connected = servers.values().filter(|server| server.status == ServerStatus::Connected);
        for made in connected.filter_map(|server| server.made.as_ref()) {
            tokio::spawn(made.peer.roots_changed());
        }
    }

    /// Ends every connection. Nothing connects again.
    pub async fn close(&self) {
        let _ = self.inner.closed.set(());
        let peers: Vec<Arc<dyn McpPeer>> = {
            let mut servers = self.inner.write();
            servers
                .values_mut()
                .filter_map(|server| {
                    server.stop();
                    server.made.take().map(|made| made.peer)
                })
                .collect()
        };
        // A server that says no goodbye is dropped, and its process ends with that.
        let _ = tokio::time::timeout(PARTING_TIME, join_all(peers.iter().map(|peer| peer.close()))).await;
    }
}

impl Drop for McpServers {
    /// Tasks must not keep processes alive that can no longer be reached.
    fn drop(&mut self) {
        for server in self.inner.write().values_mut() {
            server.stop();
            server.made = None;
        }
    }
}

fn new_server(named: NamedServer) -> Server {
    let problem = server_name_problem(&named.name);
    let mut server = Server::new(named);
    if let Some(problem) = problem {
        server.refused = Some(problem.clone());
        server.fail(problem);
    }
    server
}

impl Inner {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Server>> {
        self.servers.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, wanted: impl Fn(&Server) -> bool) -> Vec<String> {
        self.read().iter().filter(|(_, server)| wanted(server)).map(|(name, _)| name.clone()).collect()
    }

    /// Waits until `reached` is true.
    async fn until(&self, reached: impl Fn(&BTreeMap<String, Server>) -> bool) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if reached(&self.read()) || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Looks at one server.
    fn with<T>(&self, name: &str, look: impl FnOnce(&Server) -> T) -> Result<T, ServerError> {
        let servers = self.read();
        servers.get(name).map(look).ok_or_else(|| unknown(name, &servers))
    }

    /// Changes one server and informs the listener; with `attempt`, only while that connection is the present one.
    fn change<T>(
        &self,
        name: &str,
        attempt: Option<u64>,
        change: impl FnOnce(&mut Server) -> T,
    ) -> Result<T, ServerError> {
        let (made, row) = {
            let mut servers = self.write();
            let Some(server) = servers.get_mut(name) else { return Err(unknown(name, &servers)) };
            if attempt.is_some_and(|attempt| attempt != server.attempt) {
                return Err(ServerError::Replaced(name.to_owned()));
            }
            let before = server.row();
            let made = change(server);
            let after = server.row();
            (made, (before != after).then_some(after))
        };
        self.changed(row.into_iter().collect());
        Ok(made)
    }

    fn changed(&self, rows: Vec<Value>) {
        self.changes.send_modify(|changes| *changes += 1);
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener.filter(|_| !rows.is_empty()) {
            listener(rows);
        }
    }
}

fn unknown(name: &str, servers: &BTreeMap<String, Server>) -> ServerError {
    let known: Vec<&str> = servers.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    ServerError::Unknown { name: name.to_owned(), known }
}
