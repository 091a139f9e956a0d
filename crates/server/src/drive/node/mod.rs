//! A node: one run of the server process, as far as it drives sessions. It claims what is due while it has room, and starts a seat
//! for each.

mod membership;
mod others;
mod relays;

pub use membership::Membership;
pub use others::announce;
pub use relays::Peers;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use qoder_mcp::remote::ConnectionPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::opening::OpenFailure;
use super::options::RuntimeSettings;
use super::seat;
use crate::credentials::Credentials;
use crate::environment::{ContainerEngine, LocalEnvironments};
use crate::fanout::Hub;
use crate::model::ids::{NodeId, SessionId};
use crate::observe::Log;
use crate::outgoing::PrivateAddresses;
use crate::secrets::Keys;
use crate::store::{Claim, DbError, Hint, Recovered, Sent, Store};

/// How often sessions that are due are looked for while there are some, and while there are not.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
const IDLE_PAUSE: Duration = Duration::from_secs(2);
/// How long the node waits before it tries again to give a lease back.
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);
/// How long a node that stops waits for its seats.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// How a node drives.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// What every session is opened with.
    pub runtime: RuntimeSettings,
    /// Which addresses sessions may reach besides public ones.
    pub private_addresses: PrivateAddresses,
    /// The most sessions that run at the same time.
    pub most_seats: usize,
    /// False for a node that only answers clients.
    pub drives: bool,
    /// The most bytes that the files of a tenant may have.
    pub storage_quota: u64,
    /// The data directory.
    pub home: NodeId,
    /// True when all nodes have the same folder for workspaces.
    pub shares_workspaces: bool,
}

/// What a node has done.
#[derive(Debug, Default)]
pub struct NodeStatistics {
    /// Sessions that were claimed.
    pub claims: Counter,
    /// Sessions that were opened.
    pub wakes: Counter,
    /// Sessions that were still open when they got a lease again.
    pub warm_wakes: Counter,
    /// Sessions that came to rest.
    pub parks: Counter,
    /// Sessions whose node was gone.
    pub takeovers: Counter,
    /// Commits that another holder had overtaken.
    pub fenced: Counter,
    /// Sessions whose seat failed.
    pub failures: Counter,
    /// Times that the node lost contact with the database.
    pub losses: Counter,
    /// Sessions that were given up because they stopped their node too often.
    pub quarantines: Counter,
    /// Times that a session waited for a commit, and for how many microseconds.
    pub barriers: Counter,
    /// See there.
    pub barrier_micros: Counter,
    /// Tokens that models read, also from caches, and wrote.
    pub tokens_read: Counter,
    /// See there.
    pub tokens_written: Counter,
    /// What models cost at list prices, in millionths of a dollar.
    pub cost_micros: Counter,
}

/// What a seat gets.
pub(super) enum SeatMessage {
    /// Something was left in the session's inbox.
    Inbox,
    /// The node has the session's lease.
    Lease(Claim, OwnedSemaphorePermit),
    /// The node stops.
    Stop,
    /// The session may be another node's already.
    Lost,
}

/// One run of the server process, as far as it drives sessions.
pub struct Node {
    /// Who it is to others; another one after it lost contact.
    id: Mutex<NodeId>,
    pub(super) store: Store,
    pub(super) hub: Arc<Hub>,
    pub(super) keys: Keys,
    pub(super) credentials: Arc<Credentials>,
    pub(super) environments: LocalEnvironments,
    /// What runs the containers of sessions; without it their tools run on this machine.
    pub(super) containers: Option<Arc<ContainerEngine>>,
    /// What runs file tools confined, where this machine can confine them.
    local_host: OnceLock<Option<PathBuf>>,
    /// Connections to MCP servers, shared by the sessions of this node.
    pub(super) connections: ConnectionPool,
    pub(super) settings: NodeSettings,
    /// What it has done.
    pub statistics: Arc<NodeStatistics>,
    log: Log,
    room: Arc<Semaphore>,
    seats: Mutex<HashMap<i64, mpsc::UnboundedSender<SeatMessage>>>,
    due: Notify,
    closed: Notify,
    stops: AtomicBool,
    /// False while others may take its sessions.
    is_member: watch::Sender<bool>,
}

impl Node {
    /// A node that drives nothing yet.
    #[must_use]
    pub fn new(
        store: Store,
        hub: Arc<Hub>,
        (keys, credentials): (Keys, Arc<Credentials>),
        (environments, containers): (LocalEnvironments, Option<Arc<ContainerEngine>>),
        settings: NodeSettings,
        log: Log,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: Mutex::new(NodeId::random()),
            room: Arc::new(Semaphore::new(settings.most_seats)),
            store,
            hub,
            keys,
            credentials,
            environments,
            containers,
            local_host: OnceLock::new(),
            connections: ConnectionPool::default(),
            settings,
            statistics: Arc::default(),
            log,
            seats: Mutex::default(),
            due: Notify::new(),
            closed: Notify::new(),
            stops: AtomicBool::new(false),
            is_member: watch::Sender::new(false),
        })
    }

    /// The program that runs file tools confined. Where nothing can be confined no command runs, so no link that one made can lead
    /// a tool of this process out of a session.
    pub(super) fn local_host(&self) -> Option<PathBuf> {
        let find = || {
            let program = std::env::current_exe().ok()?.canonicalize().ok()?;
            let tried = qoder_runtime::setup::sandbox::try_isolated(self.environments.root());
            (cfg!(target_os = "linux") && tried.confined_by.is_some()).then_some(program)
        };
        self.local_host.get_or_init(find).clone()
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<i64, mpsc::UnboundedSender<SeatMessage>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run of the process, as far as others know it.
    #[must_use]
    pub fn id(&self) -> NodeId {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_id(&self, id: NodeId) {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Room for one more session that a request is about to wake; the request offers it together with the node's id.
    #[must_use]
    pub fn offer(&self) -> Option<OwnedSemaphorePermit> {
        if self.stops.load(Ordering::Relaxed) || !self.settings.drives || !self.is_member() {
            return None;
        }
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// What sending inputs came to: a session that was claimed gets its seat, and the seat of one that is driven looks into its inbox.
    pub fn sent(self: &Arc<Self>, sent: Sent, offered: Option<OwnedSemaphorePermit>) {
        self.hub.publish(sent.key, sent.events);
        if let (Some(claim), Some(permit)) = (sent.claim, offered) {
            self.statistics.claims.inc();
            self.seat(claim, permit);
        }
        match sent.leased_by {
            Some(node) if node == self.id() => self.call_seat(sent.key),
            Some(node) => self.hub.announce(Hint::Inbox { node, key: sent.key }),
            None => {}
        }
        if sent.is_due {
            self.wake();
        }
    }

    /// Gives a claimed session its seat.
    fn seat(self: &Arc<Self>, claim: Claim, permit: OwnedSemaphorePermit) {
        let key = claim.key;
        let mut seats = self.seats();
        let message = SeatMessage::Lease(claim, permit);
        let message = match seats.get(&key) {
            Some(seat) => match seat.send(message) {
                Ok(()) => return,
                Err(mpsc::error::SendError(message)) => message,
            },
            None => message,
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        // The receiver is alive.
        let _ = sender.send(message);
        seats.insert(key, sender);
        drop(seats);
        tokio::spawn(seat::serve(Arc::clone(self), key, receiver));
    }

    /// The next lease of a seat; `None` when it has nothing more to do, by which it is forgotten.
    pub(super) fn next_lease(
        &self,
        key: i64,
        messages: &mut mpsc::UnboundedReceiver<SeatMessage>,
    ) -> Option<(Claim, OwnedSemaphorePermit)> {
        // Messages are sent while the list is locked, so none can come between the last look and the end.
        let mut seats = self.seats();
        while let Ok(message) = messages.try_recv() {
            match message {
                SeatMessage::Lease(claim, permit) => return Some((claim, permit)),
                SeatMessage::Inbox | SeatMessage::Stop | SeatMessage::Lost => {}
            }
        }
        seats.remove(&key);
        self.closed.notify_one();
        None
    }

    /// Sessions on this node: those that run and those that rest here.
    #[must_use]
    pub fn seat_counts(&self) -> (usize, usize) {
        let running = self.settings.most_seats - self.room.available_permits();
        let all = self.seats().len();
        (running, all.saturating_sub(running))
    }

    /// Waits until a session was closed here.
    pub async fn session_closed(&self) {
        self.closed.notified().await;
    }

    /// Claims what is due until the node stops.
    pub async fn claim_due(self: Arc<Self>) {
        let mut pause = Duration::ZERO;
        while !self.stops.load(Ordering::Relaxed) {
            tokio::select! {
                () = self.due.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.claim_once().await {
                Ok(0) => self.until_next().await,
                Ok(_) => BUSY_PAUSE,
                Err(error) => {
                    self.log.error("claim_failed", &[("error", &error.to_string())]);
                    IDLE_PAUSE
                }
            };
        }
    }

    async fn claim_once(self: &Arc<Self>) -> Result<usize, DbError> {
        let mut permits = Vec::new();
        while let Some(permit) = self.offer().filter(|_| permits.len() < 64) {
            permits.push(permit);
        }
        if permits.is_empty() || !self.is_due().await? {
            return Ok(0);
        }
        let (claims, recovered) = self.store.db.claim(self.id(), permits.len()).await?;
        let is_given_up =
            |session: &&Recovered| session.events.iter().any(|event| event.kind == "session.error");
        for session in recovered.iter().filter(is_given_up) {
            self.statistics.quarantines.inc();
            self.log.warn("session_quarantined", &[("session_key", &session.key.to_string())]);
        }
        self.publish(recovered);
        let count = claims.len();
        for (claim, permit) in claims.into_iter().zip(permits) {
            self.statistics.claims.inc();
            self.seat(claim, permit);
        }
        Ok(count)
    }

    /// A read that most often spares a write.
    async fn is_due(&self) -> Result<bool, DbError> {
        Ok(self.store.db.next_due(self.id()).await?.is_some_and(|until| until.is_zero()))
    }

    async fn until_next(&self) -> Duration {
        match self.store.db.next_due(self.id()).await {
            Ok(Some(until)) => until.clamp(Duration::from_millis(10), IDLE_PAUSE),
            Ok(None) | Err(_) => IDLE_PAUSE,
        }
    }

    /// Takes over what nodes left that are gone.
    ///
    /// # Errors
    /// When the database does not work.
    pub async fn take_over(&self) -> Result<usize, DbError> {
        let recovered = self.store.db.void_leases(self.id()).await?;
        let count = recovered.len();
        for _ in 0..count {
            self.statistics.takeovers.inc();
        }
        self.publish(recovered);
        if count > 0 {
            self.wake();
        }
        Ok(count)
    }

    fn publish(&self, recovered: Vec<Recovered>) {
        recovered.into_iter().for_each(|session| self.hub.publish(session.key, session.events));
    }

    /// Gives a lease back, as soon as the database takes it.
    pub(super) async fn give_back(self: &Arc<Self>, key: i64, fence: i64, failed: bool) {
        if failed {
            self.statistics.failures.inc();
        }
        if self.try_give_back(key, fence, failed).await {
            return;
        }
        let node = Arc::clone(self);
        tokio::spawn(async move {
            while !node.stops.load(Ordering::Relaxed) {
                tokio::time::sleep(GIVE_BACK_PAUSE).await;
                if node.try_give_back(key, fence, failed).await {
                    return;
                }
            }
        });
    }

    async fn try_give_back(&self, key: i64, fence: i64, failed: bool) -> bool {
        match self.store.db.release(key, fence, failed).await {
            Ok(events) => {
                self.hub.publish(key, events);
                self.wake();
                true
            }
            Err(DbError::Unavailable(_)) => false,
            // Another holder has it already.
            Err(_) => true,
        }
    }

    /// A session could not be opened.
    pub(super) async fn give_back_failed(self: &Arc<Self>, key: i64, fence: i64, failure: OpenFailure) {
        match failure {
            OpenFailure::Store(DbError::Fenced(_)) => {}
            OpenFailure::Store(error) => {
                self.log_seat_failure(key, &error.to_string());
                self.give_back(key, fence, true).await;
            }
            OpenFailure::Session(problem) => {
                self.log_seat_failure(key, &problem);
                match self.store.db.fail(key, fence, problem).await {
                    Ok(events) => self.hub.publish(key, events),
                    Err(_) => self.give_back(key, fence, true).await,
                }
            }
        }
    }

    pub(super) fn log_seat_failure(&self, key: i64, problem: &str) {
        self.log.error("session_failed", &[("session_key", &key.to_string()), ("error", problem)]);
    }

    /// Removes the folders of a session that was deleted.
    pub async fn remove_workspace(&self, session: SessionId) {
        let environments = self.environments.clone();
        // What cannot be removed now harms no one: no session has its name again.
        drop(tokio::task::spawn_blocking(move || environments.remove(session)).await);
    }

    /// Removes a file that is no longer a resource of a session from where it was mounted.
    pub async fn unmount(&self, session: SessionId, mount_path: String) {
        let environments = self.environments.clone();
        // A copy that stays harms no one; the next wake removes those that are mounted beside the workspace.
        drop(tokio::task::spawn_blocking(move || environments.unmount(session, &mount_path)).await);
    }

    /// A session is due: here or on another node.
    fn wake(&self) {
        self.due.notify_one();
        self.hub.announce(Hint::Wake);
    }

    /// Stops taking sessions up, ends those that run, and gives their leases back.
    pub async fn stop(self: &Arc<Self>) {
        self.stops.store(true, Ordering::Relaxed);
        self.due.notify_one();
        for seat in self.seats().values() {
            // A seat that is gone needs no word.
            let _ = seat.send(SeatMessage::Stop);
        }
        let until = tokio::time::Instant::now() + STOP_PATIENCE;
        while !self.seats().is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if let Some(containers) = &self.containers {
            containers.settle(STOP_PATIENCE).await;
        }
    }
}
