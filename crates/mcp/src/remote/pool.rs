//! Connections that the sessions of one process share. A server that keeps no session of its own (it gave no
//! `Mcp-Session-Id`) cannot tell two callers with the same credential apart, so one connection serves them all, and a session
//! that wakes does not shake hands again. A server that keeps sessions gets one connection for each of ours.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{Lifecycle, PeerContext, RemotePeer};
use crate::questions::NoAnswerer;
use crate::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvent, PeerEvents, ToolCall};
use qoder_types::server::{NamedServer, Transport};

/// How long a connection that no session uses is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// How old a list of tools may be before the next session that connects lists them anew.
const FRESH: Duration = Duration::from_secs(60);

/// Connections to servers over streamable HTTP, shared by address and credential.
///
/// Sessions that connect through a pool answer no questions of servers: a question that came over a shared connection would
/// belong to no session.
#[derive(Clone)]
pub struct ConnectionPool {
    inner: Arc<Inner>,
}

struct Inner {
    entries: Mutex<HashMap<Key, Arc<Entry>>>,
    kept: Duration,
    fresh: Duration,
}

/// What connections must have in common to be one. The headers hold the credential.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    url: String,
    headers: Vec<(String, String)>,
    discovers: bool,
    timeout: Option<Duration>,
}

/// One connection and who uses it.
struct Entry {
    peer: RemotePeer,
    state: Mutex<EntryState>,
    next: AtomicU64,
}

#[derive(Default)]
struct EntryState {
    /// Who hears what the server sends, by number.
    users: HashMap<u64, PeerEvents>,
    greeting: Option<(Greeting, Instant)>,
    /// Since when no session uses it.
    idle: Option<Instant>,
    is_closed: bool,
}

impl Default for ConnectionPool {
    fn default() -> Self {
        Self::keeping(KEPT, FRESH)
    }
}

impl ConnectionPool {
    /// Keeps unused connections for `kept`, and takes lists of tools as they are for `fresh`.
    #[must_use]
    pub fn keeping(kept: Duration, fresh: Duration) -> Self {
        Self { inner: Arc::new(Inner { entries: Mutex::default(), kept, fresh }) }
    }

    /// The way to a server. Servers that are not reached over streamable HTTP get a connection of their own.
    #[must_use]
    pub fn peer(&self, server: &NamedServer, context: &PeerContext) -> Arc<dyn McpPeer> {
        let Transport::Http { url, headers } = &server.config.transport else {
            return super::peer(server, context);
        };
        let key = Key {
            name: server.name.clone(),
            url: url.clone(),
            headers: headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect(),
            discovers: context.lifecycle == Lifecycle::Discover,
            timeout: server.config.timeout,
        };
        let context = PeerContext { questions: Arc::new(NoAnswerer), authorizer: None, ..context.clone() };
        Arc::new(PooledPeer(Arc::new(Member {
            pool: Arc::clone(&self.inner),
            key,
            server: server.clone(),
            context,
            current: Mutex::default(),
        })))
    }

    /// How many connections it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.entries().len()
    }

    /// True when it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that can be shared, and the removal of those that have been unused for long.
    fn find(&self, key: &Key) -> Option<Arc<Entry>> {
        let mut entries = self.entries();
        entries.retain(|_, entry| {
            let state = entry.state();
            !state.is_closed && state.idle.is_none_or(|since| since.elapsed() < self.kept)
        });
        entries.get(key).cloned()
    }

    fn offer(&self, key: &Key, entry: &Arc<Entry>) {
        self.entries().entry(key.clone()).or_insert_with(|| Arc::clone(entry));
    }

    fn forget(&self, key: &Key, entry: &Arc<Entry>) {
        let mut entries = self.entries();
        if entries.get(key).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            entries.remove(key);
        }
    }

    fn shares(&self, key: &Key, entry: &Arc<Entry>) -> bool {
        self.entries().get(key).is_some_and(|known| Arc::ptr_eq(known, entry))
    }
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a user; none when the connection is gone.
    fn enter(&self, events: PeerEvents) -> Option<u64> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        state.users.insert(number, events);
        state.idle = None;
        Some(number)
    }

    fn leave(&self, number: u64) {
        let mut state = self.state();
        state.users.remove(&number);
        if state.users.is_empty() {
            state.idle = Some(Instant::now());
        }
    }

    fn hear(&self, event: &PeerEvent) {
        let users: Vec<PeerEvents> = {
            let mut state = self.state();
            match event {
                PeerEvent::Closed(_) => state.is_closed = true,
                PeerEvent::ToolsChanged => state.greeting = None,
                PeerEvent::ResourcesChanged
                | PeerEvent::PromptsChanged
                | PeerEvent::ResourceUpdated(_)
                | PeerEvent::Log { .. } => {}
            }
            state.users.values().cloned().collect()
        };
        for user in users {
            user(event.clone());
        }
    }
}

/// A session's way to a server: through the pool's connection, or through one of its own.
struct PooledPeer(Arc<Member>);

struct Member {
    pool: Arc<Inner>,
    key: Key,
    server: NamedServer,
    context: PeerContext,
    current: Mutex<Option<(Arc<Entry>, u64)>>,
}

impl Member {
    async fn connect(&self, events: PeerEvents) -> Result<Greeting, PeerError> {
        self.disconnect().await;
        if let Some(entry) = self.pool.find(&self.key)
            && let Some(number) = entry.enter(Arc::clone(&events))
        {
            match self.greeting(&entry).await {
                Ok(greeting) => {
                    self.hold(entry, number);
                    return Ok(greeting);
                }
                // The connection no longer works: a new one does, or its error says why.
                Err(_) => {
                    entry.leave(number);
                    self.pool.forget(&self.key, &entry);
                }
            }
        }
        self.connect_anew(events).await
    }

    async fn connect_anew(&self, events: PeerEvents) -> Result<Greeting, PeerError> {
        let peer = RemotePeer::new(self.server.clone(), self.context.clone());
        let entry = Arc::new(Entry { peer, state: Mutex::default(), next: AtomicU64::new(0) });
        let number = entry.enter(events).ok_or_else(gone)?;
        let weak = Arc::downgrade(&entry);
        let sink: PeerEvents = Arc::new(move |event| {
            if let Some(entry) = weak.upgrade() {
                entry.hear(&event);
            }
        });
        let greeting = entry.peer.connect(sink).await?;
        entry.state().greeting = Some((greeting.clone(), Instant::now()));
        if entry.peer.is_stateless() {
            self.pool.offer(&self.key, &entry);
        }
        self.hold(entry, number);
        Ok(greeting)
    }

    /// What the server said of itself, with tools that are not older than the pool allows.
    async fn greeting(&self, entry: &Entry) -> Result<Greeting, PeerError> {
        let known = entry.state().greeting.clone();
        match known {
            Some((greeting, at)) if at.elapsed() < self.pool.fresh => Ok(greeting),
            Some((mut greeting, _)) => {
                if greeting.capabilities.get("tools").is_some() {
                    greeting.tools = entry.peer.list_tools().await?;
                }
                entry.state().greeting = Some((greeting.clone(), Instant::now()));
                Ok(greeting)
            }
            None => Err(gone()),
        }
    }

    fn hold(&self, entry: Arc<Entry>, number: u64) {
        let before = self.current().replace((entry, number));
        if let Some((entry, number)) = before {
            entry.leave(number);
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<(Arc<Entry>, u64)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self) -> Result<Arc<Entry>, PeerError> {
        self.current().as_ref().map(|(entry, _)| Arc::clone(entry)).ok_or_else(gone)
    }

    /// Leaves the connection; one that is not shared ends.
    async fn disconnect(&self) {
        let Some((entry, number)) = self.current().take() else { return };
        entry.leave(number);
        if !self.pool.shares(&self.key, &entry) {
            entry.peer.close().await;
        }
    }

    /// Passes an answer on; a connection that is gone serves no further session.
    fn checked<T>(&self, entry: &Arc<Entry>, answer: Result<T, PeerError>) -> Result<T, PeerError> {
        match &answer {
            Err(PeerError::Closed(_) | PeerError::NotConnected(_) | PeerError::NeedsAuth(_)) => {
                self.pool.forget(&self.key, entry);
            }
            Err(PeerError::Failed(_) | PeerError::Refused { .. }) | Ok(_) => {}
        }
        answer
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some((entry, number)) = self.current().take() {
            entry.leave(number);
        }
    }
}

fn gone() -> PeerError {
    PeerError::NotConnected("nothing is connected".to_owned())
}

impl McpPeer for PooledPeer {
    fn connect(&self, events: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        let member = Arc::clone(&self.0);
        async move { member.connect(events).await }.boxed()
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        let member = Arc::clone(&self.0);
        async move {
            let entry = member.entry()?;
            let answer = entry.peer.list_tools().await;
            member.checked(&entry, answer)
        }
        .boxed()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        let member = Arc::clone(&self.0);
        async move {
            let entry = member.entry()?;
            let answer = entry.peer.call(call).await;
            member.checked(&entry, answer)
        }
        .boxed()
    }

    fn request(&self, method: &'static str, params: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        let member = Arc::clone(&self.0);
        async move {
            let entry = member.entry()?;
            let answer = entry.peer.request(method, params).await;
            member.checked(&entry, answer)
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let member = Arc::clone(&self.0);
        async move { member.disconnect().await }.boxed()
    }
}
