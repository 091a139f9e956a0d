//! What all routes use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::models::ModelCatalog;
use crate::credentials::Credentials;
use crate::drive::Node;
use crate::fanout::Hub;
use crate::http::{ApiError, ApiRequest, Edge, FileLinks};
use crate::model::session::{Session, SessionSecrets};
use crate::observe::Metrics;
use crate::outgoing::PrivateAddresses;
use crate::secrets::{DataKey, Keys, NodeTickets};
use crate::store::{SessionRow, Store};

/// Whether a server takes work, apart from its database.
#[derive(Debug, Default)]
pub struct Readiness {
    is_draining: AtomicBool,
}

impl Readiness {
    /// No more work is taken.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// True while no more work is taken.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// What all routes use.
pub struct App {
    /// Rows and blobs.
    pub store: Store,
    /// Events on their way to subscribers.
    pub hub: Arc<Hub>,
    /// Drives sessions.
    pub node: Arc<Node>,
    /// Opens what is sealed.
    pub keys: Keys,
    /// What every request has passed.
    pub edge: Arc<Edge>,
    /// Numbers.
    pub metrics: Arc<Metrics>,
    /// Models that agents can have.
    pub models: ModelCatalog,
    /// What a credit costs.
    pub credit_usd: f64,
    /// Credentials of vaults.
    pub credentials: Arc<Credentials>,
    /// Links to files.
    pub links: FileLinks,
    /// Recognise other nodes.
    pub tickets: NodeTickets,
    /// The most bytes that the files of a tenant may have.
    pub storage_quota: u64,
    /// True when `cloud` environments run in containers.
    pub has_containers: bool,
    /// Which addresses endpoints may have besides public ones.
    pub private_addresses: PrivateAddresses,
    /// Whether the server takes work.
    pub readiness: Arc<Readiness>,
    /// Says when streams end.
    pub stop: watch::Receiver<bool>,
    /// Streams that are open, by token.
    pub streams: Mutex<HashMap<String, usize>>,
}

impl App {
    /// The key of the tenant that calls.
    ///
    /// # Errors
    /// When the master key is another one.
    pub fn data_key(&self, request: &ApiRequest) -> Result<DataKey, ApiError> {
        let tenant = &request.principal.tenant;
        self.keys.data_key(tenant.id, &tenant.data_key).map_err(|error| {
            self.edge.log.error("sealed_data", &[("error", &error.to_string())]);
            ApiError::internal()
        })
    }

    /// Counts a stream of a token; `None` when it has too many.
    pub fn open_stream(self: &Arc<Self>, token: &str, most: usize) -> Option<OpenStream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = streams.values().sum();
        let count = streams.entry(token.to_owned()).or_default();
        if *count >= most || total >= MOST_STREAMS {
            return None;
        }
        *count += 1;
        self.metrics.streams.inc();
        Some(OpenStream { app: Arc::clone(self), token: token.to_owned() })
    }
}

/// The most streams of a server.
const MOST_STREAMS: usize = 10_000;

/// A stream that is open until it is dropped.
pub struct OpenStream {
    app: Arc<App>,
    token: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.metrics.streams.dec();
        let mut streams = self.app.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = streams.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.token);
            }
        }
    }
}

/// The session of a row, with its secrets opened as far as they can be.
pub(super) fn opened(row: &SessionRow, key: &DataKey) -> Session {
    let mut session = row.session.clone();
    session.secrets = secrets(row, key);
    session
}

/// What is sealed of a session; nothing when it cannot be opened.
pub(super) fn secrets(row: &SessionRow, key: &DataKey) -> SessionSecrets {
    let sealed = row.sealed.as_deref();
    let opened = sealed.and_then(|sealed| key.open("sessions", &row.session.id.to_string(), sealed).ok());
    opened.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
