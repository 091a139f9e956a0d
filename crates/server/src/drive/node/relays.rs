//! Pieces of replies that another node's sessions write, for those who watch them here. This node asks the one that drives for them
//! over HTTP and passes them on. It is best effort: what does not arrive is in the stored event, which comes by the database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{AUTHORIZATION, HOST};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::Node;
use crate::fanout::{Hub, read_piece};
use crate::model::ids::NodeId;
use crate::secrets::NodeTickets;
use crate::store::{DbError, Driver};

/// How often the drivers of all watched sessions are looked up, and how long single lookups are gathered.
const LOOK_UP: Duration = Duration::from_secs(2);
const GATHERED: Duration = Duration::from_millis(10);
/// A node that sends nothing for this long is gone; while it drives it sends an empty line every 15 s.
const QUIET: Duration = Duration::from_secs(45);
/// The longest line.
const LONGEST: usize = 4 * 1024 * 1024;

/// How other nodes are reached.
#[derive(Debug, Clone)]
pub struct Peers {
    /// By which they recognise this one.
    pub tickets: NodeTickets,
    /// Set when nodes serve TLS: the name in their certificates, where it is not their address.
    pub tls: Option<Option<String>>,
    /// Certificates come from here.
    pub environment: BTreeMap<String, String>,
}

impl Peers {
    /// A client for a node, and the address of the pieces of a session there.
    fn client(&self, address: &str, key: i64) -> Result<(reqwest::Client, Url), String> {
        let (scheme, name) = match &self.tls {
            None => ("http", None),
            Some(name) => ("https", name.as_deref()),
        };
        let parsed = |text: String| Url::parse(&text).map_err(|error| format!("{text}: {error}"));
        let mut url = parsed(format!("{scheme}://{address}/internal/sessions/{key}/pieces"))?;
        let builder = qoder_http::builder(&url, &self.environment).map_err(|error| error.to_string())?;
        let mut builder = builder.no_proxy().read_timeout(QUIET);
        if let (Some(name), Ok(at)) = (name, address.parse::<SocketAddr>()) {
            url.set_host(Some(name)).map_err(|error| format!("{name}: {error}"))?;
            builder = builder.resolve(name, at);
        }
        Ok((builder.build().map_err(|error| qoder_http::innermost(&error))?, url))
    }

    /// Passes pieces on until the other node ends or does not answer.
    async fn relay(&self, hub: &Hub, driver: &Driver) -> Result<(), String> {
        let (client, url) = self.client(&driver.address, driver.key)?;
        let ticket = self.tickets.make(driver.node, driver.key);
        // Nodes answer to the names of clients; this one is always among them.
        let request = client.get(url).header(HOST, "localhost").header(AUTHORIZATION, ticket);
        let response = request.send().await.map_err(|error| qoder_http::innermost(&error))?;
        if !response.status().is_success() {
            return Err(format!("it answers with {}", response.status().as_u16()));
        }
        let mut stream = response.bytes_stream();
        let mut waiting: Vec<u8> = Vec::new();
        while let Some(piece) = stream.next().await {
            waiting.extend_from_slice(&piece.map_err(|error| qoder_http::innermost(&error))?);
            let Some(end) = waiting.iter().rposition(|byte| *byte == b'\n') else {
                if waiting.len() > LONGEST {
                    return Err("it sends a line that is too long".to_owned());
                }
                continue;
            };
            let rest = waiting.split_off(end + 1);
            for line in waiting.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                if let Some(frame) = read_piece(line) {
                    hub.relay(driver.key, frame);
                }
            }
            waiting = rest;
        }
        Ok(())
    }
}

/// A session whose pieces come from another node.
struct Relay {
    node: NodeId,
    task: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What relays share.
struct Relays {
    node: Arc<Node>,
    peers: Peers,
    running: HashMap<i64, Relay>,
    /// Nodes that could not be reached, each of which is reported once.
    unreached: Arc<Mutex<BTreeSet<NodeId>>>,
}

impl Relays {
    /// Has pieces of these sessions come from the nodes that drive them now. While no node drives a session the last one is
    /// listened to: it is the likeliest to take it up again.
    async fn look_up(&mut self, keys: Vec<i64>) -> Result<(), DbError> {
        let wanted = self.node.hub.watched_with_deltas();
        self.running.retain(|key, relay| wanted.contains(key) && !relay.task.is_finished());
        let keys: Vec<i64> = keys.into_iter().filter(|key| wanted.contains(key)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        for driver in self.node.store.db.drivers(keys).await? {
            if driver.node == self.node.id() {
                self.running.remove(&driver.key);
            } else if self.running.get(&driver.key).is_none_or(|relay| relay.node != driver.node) {
                let (key, relay) = (driver.key, self.start(driver));
                self.running.insert(key, relay);
            }
        }
        Ok(())
    }

    fn start(&self, driver: Driver) -> Relay {
        let (node, peers, unreached) =
            (Arc::clone(&self.node), self.peers.clone(), Arc::clone(&self.unreached));
        let from = driver.node;
        let task = tokio::spawn(async move {
            let outcome = peers.relay(&node.hub, &driver).await;
            let mut unreached = unreached.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(()) => drop(unreached.remove(&driver.node)),
                Err(problem) if unreached.insert(driver.node) => {
                    let fields = [("address", driver.address.as_str()), ("error", &problem)];
                    node.log.warn("pieces_unavailable", &fields);
                }
                Err(_) => {}
            }
        });
        Relay { node: from, task }
    }
}

impl Node {
    /// Fetches pieces of replies from other nodes for those who want them here, until the node stops.
    pub async fn relay_pieces(self: Arc<Self>, peers: Peers) {
        let node = Arc::clone(&self);
        let mut relays = Relays { node, peers, running: HashMap::new(), unreached: Arc::default() };
        let mut look_up_at = Instant::now() + LOOK_UP;
        while !self.stops.load(Ordering::Relaxed) {
            let keys = tokio::select! {
                keys = self.hub.delta_news() => keys,
                () = sleep_until(look_up_at) => {
                    look_up_at = Instant::now() + LOOK_UP;
                    self.hub.watched_with_deltas()
                }
            };
            if let Err(error) = relays.look_up(keys).await {
                self.log.warn("drivers_unknown", &[("error", &error.to_string())]);
            }
            tokio::time::sleep(GATHERED).await;
        }
    }
}
