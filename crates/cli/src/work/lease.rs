//! The lease of a work item: heartbeats keep it, and say when it is over. The last one is kept in a file, so that a later process of
//! the same worker continues the lease.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::call_log::Items;
use super::client::{WorkClient, WorkError};

/// What the first heartbeat expects.
const NO_BEAT: &str = "NO_HEARTBEAT";
/// The longest pause between heartbeats.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORTEST_PAUSE: Duration = Duration::from_millis(300);

/// How often a request is made that a server which is away for a moment should get.
const TRIES: u32 = 4;
const TRY_PAUSE: Duration = Duration::from_millis(500);

/// How a lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// It is the worker's.
    Held,
    /// The worker shall end.
    Stopping,
    /// It is no longer the worker's.
    Lost,
}

/// A work item that a worker has.
#[derive(Clone)]
pub struct Lease {
    /// For requests about it and its session.
    pub client: WorkClient,
    /// The environment.
    pub environment: String,
    /// The item.
    pub work: String,
    /// The item with its last heartbeat, as it is kept.
    item: Value,
    ttl: u64,
    /// True when a heartbeat was sent and it is not known whether it counts.
    is_unsure: bool,
    items: Arc<Items>,
}

impl Lease {
    /// The lease of an item that a poll gave, or that an earlier process kept.
    pub fn new(client: WorkClient, item: Value, ttl: u64, items: Arc<Items>) -> Option<Self> {
        let text = |key: &str| item[key].as_str().map(str::to_owned);
        let (work, environment) = (text("id")?, text("environment_id")?);
        Some(Self { client, environment, work, item, ttl, is_unsure: false, items })
    }

    /// The session.
    pub fn session(&self) -> Option<String> {
        (self.item["data"]["type"] == "session")
            .then(|| self.item["data"]["id"].as_str().map(str::to_owned))?
    }

    /// What the item holds for programs that serve it.
    pub fn secret(&self) -> &str {
        self.item["secret"].as_str().unwrap_or_default()
    }

    fn path<'a>(&'a self, action: &'a str) -> [&'a str; 5] {
        ["environments", &self.environment, "work", &self.work, action]
    }

    /// Sends a heartbeat.
    pub async fn beat(&mut self) -> Result<LeaseState, WorkError> {
        let beaten = match self.send_beat().await {
            // No one else has the item so soon: the server has the heartbeat whose answer was lost.
            Err(WorkError::Refused { status: 412, last_beat: Some(last), .. }) if self.is_unsure => {
                self.item["last_heartbeat"] = json!(last);
                self.send_beat().await
            }
            other => other,
        };
        self.is_unsure = matches!(&beaten, Err(error) if error.is_passing());
        let beaten = match beaten {
            Err(error) if error.status() == Some(412) => return Ok(LeaseState::Lost),
            other => other?,
        };
        self.item["last_heartbeat"] = beaten["last_heartbeat"].clone();
        if beaten["lease_extended"] != true {
            return Ok(LeaseState::Stopping);
        }
        // A lease that cannot be continued by a later process is still this one's.
        let _ = self.items.keep(&self.work, &self.item);
        Ok(LeaseState::Held)
    }

    async fn send_beat(&self) -> Result<Value, WorkError> {
        let expected = self.item["last_heartbeat"].as_str().unwrap_or(NO_BEAT).to_owned();
        let ttl = self.ttl.to_string();
        let query = [("expected_last_heartbeat", expected.as_str()), ("desired_ttl_seconds", &ttl)];
        self.client.post(&self.path("heartbeat"), &query, &json!({})).await
    }

    /// Takes the item that a poll gave. The worker that sends the first heartbeat has it, so an acknowledgement whose answer was lost does
    /// no harm.
    pub async fn take(&mut self) -> Result<LeaseState, WorkError> {
        let until = Instant::now() + Duration::from_secs(self.ttl);
        loop {
            match self.client.post(&self.path("ack"), &[], &json!({})).await {
                Err(error) if error.is_passing() && Instant::now() < until => {
                    tokio::time::sleep(TRY_PAUSE).await;
                }
                Err(error) if error.status() != Some(409) => return Err(error),
                Ok(_) | Err(_) => break,
            }
        }
        loop {
            match self.beat().await {
                Err(error) if error.is_passing() && Instant::now() < until => {
                    tokio::time::sleep(TRY_PAUSE).await;
                }
                other => return other,
            }
        }
    }

    /// Sends heartbeats until the lease is over or the receiver is gone.
    pub fn keep(mut self) -> watch::Receiver<LeaseState> {
        let (sender, receiver) = watch::channel(LeaseState::Held);
        tokio::spawn(async move {
            let pause = Duration::from_secs(self.ttl).div_f64(3.0).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            let mut held_until = Instant::now() + Duration::from_secs(self.ttl);
            loop {
                let begun = Instant::now();
                let state = match self.beat().await {
                    Ok(LeaseState::Held) => {
                        held_until = begun + Duration::from_secs(self.ttl);
                        LeaseState::Held
                    }
                    Ok(state) => state,
                    Err(error) if error.is_passing() && Instant::now() < held_until => LeaseState::Held,
                    Err(_) => LeaseState::Lost,
                };
                if state != LeaseState::Held {
                    let _ = sender.send(state);
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = sender.closed() => return,
                }
            }
        });
        receiver
    }

    /// Gives the item back. What its session still needs is queued anew.
    pub async fn stop(&self) {
        for left in (0..TRIES).rev() {
            match self.client.post(&self.path("stop"), &[], &json!({ "force": true })).await {
                Err(error) if error.is_passing() && left > 0 => tokio::time::sleep(TRY_PAUSE).await,
                Err(error) if error.status() != Some(409) => {
                    super::note(&format!("{} was not given back: {error}", self.work));
                    break;
                }
                Ok(_) | Err(_) => break,
            }
        }
        self.forget();
    }

    /// Forgets the item.
    pub fn forget(&self) {
        self.items.forget(&self.work);
    }
}
