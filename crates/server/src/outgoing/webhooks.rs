//! Sends notices to endpoints: takes what is due, signs it, posts it and reports what came of it. A slow endpoint keeps no other one
//! waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use tokio::task::JoinSet;

use super::{Outgoing, OutgoingError};
use crate::model::delivery::{Attempt, RetrySchedule, sign};
use crate::model::endpoint::key_of;
use crate::model::ids::{NodeId, WebhookEndpointId};
use crate::model::time::Time;
use crate::observe::Log;
use crate::secrets::{Keys, SealError};
use crate::store::{ClaimDeliveries, DbError, DueDelivery, Store};

/// Notices that are sent at the same time, and those of them to one endpoint.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 4;
/// How long a notice is its sender's; longer than a request can take.
const CLAIMED_MS: i64 = 60_000;
/// How often notices are looked for when none is known to be due.
const PAUSE: Duration = Duration::from_millis(500);
/// The most characters of a problem that are kept.
const LONGEST_ERROR: usize = 500;

/// What was sent.
#[derive(Debug, Default)]
pub struct WebhookStatistics {
    /// Notices that endpoints took.
    pub delivered: Counter,
    /// Attempts that failed.
    pub failed: Counter,
}

/// Sends notices to endpoints.
pub struct Webhooks {
    store: Store,
    keys: Keys,
    outgoing: Outgoing,
    schedule: RetrySchedule,
    node: NodeId,
    log: Log,
    /// What was sent.
    pub statistics: Arc<WebhookStatistics>,
    busy: Mutex<HashMap<WebhookEndpointId, usize>>,
}

impl Webhooks {
    /// For a node.
    #[must_use]
    pub fn new(
        store: Store,
        keys: Keys,
        outgoing: Outgoing,
        schedule: RetrySchedule,
        (node, log): (NodeId, Log),
    ) -> Arc<Self> {
        let (statistics, busy) = (Arc::default(), Mutex::default());
        Arc::new(Self { store, keys, outgoing, schedule, node, log, statistics, busy })
    }

    /// Sends what is due, for as long as it is polled. What is being sent when it is dropped is sent again by the next node.
    pub async fn deliver(self: Arc<Self>) {
        let mut sending = JoinSet::new();
        let mut released = false;
        loop {
            let due = match self.claim(MOST.saturating_sub(sending.len()), &mut released).await {
                Ok(due) => due,
                Err(error) => {
                    self.log.warn("webhooks_failed", &[("error", &error.to_string())]);
                    Vec::new()
                }
            };
            let is_idle = due.is_empty();
            for delivery in due {
                *self.busy().entry(delivery.endpoint).or_default() += 1;
                sending.spawn(Arc::clone(&self).send(delivery));
            }
            if is_idle && sending.is_empty() {
                tokio::time::sleep(PAUSE).await;
            } else if is_idle {
                tokio::select! {
                    _ = sending.join_next() => {}
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, HashMap<WebhookEndpointId, usize>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn claim(&self, most: usize, released: &mut bool) -> Result<Vec<DueDelivery>, DbError> {
        if !*released {
            self.store.db.void_deliveries(self.node).await?;
            *released = true;
        }
        let now = Time::now();
        // A read that most often spares a write.
        if most == 0 || self.store.db.next_delivery().await?.is_none_or(|next| next > now) {
            return Ok(Vec::new());
        }
        let busy = self.busy().clone().into_iter();
        let except = busy.filter(|(_, count)| *count >= MOST_OF_ONE).map(|(endpoint, _)| endpoint).collect();
        let until = now.after(CLAIMED_MS);
        let claim = ClaimDeliveries { node: self.node, most, most_of_one: MOST_OF_ONE, except, until };
        self.store.db.claim_deliveries(claim).await
    }

    async fn send(self: Arc<Self>, due: DueDelivery) {
        let attempt = match self.attempt(&due).await {
            Ok(attempt) => attempt,
            Err(error) => Attempt { status: None, error: Some(error.to_string()) },
        };
        let counter = if attempt.is_success() { &self.statistics.delivered } else { &self.statistics.failed };
        counter.inc();
        if let Some(error) = &attempt.error {
            let fields = [("endpoint", due.endpoint.to_string()), ("event", due.event.to_string())];
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.log.warn("webhook_not_delivered", &[&fields[..], &[("error", error)]].concat());
        }
        let finished = self.store.db.finish_delivery(due.id, self.node, attempt, self.schedule).await;
        if let Err(error) = finished {
            // It is sent again when the claim is over.
            self.log.warn("webhooks_failed", &[("error", &error.to_string())]);
        }
        let mut busy = self.busy();
        if let Some(count) = busy.get_mut(&due.endpoint) {
            *count -= 1;
            if *count == 0 {
                busy.remove(&due.endpoint);
            }
        }
    }

    async fn attempt(&self, due: &DueDelivery) -> Result<Attempt, SealError> {
        let key = self.keys.data_key(due.tenant, &due.data_key)?;
        let secret = key.open("webhook_endpoints", &due.endpoint.to_string(), &due.sealed)?;
        let secret = key_of(&String::from_utf8_lossy(&secret)).ok_or(SealError::Unreadable)?;
        let posted = self.outgoing.post(&due.url, headers(due, &secret), due.body.clone()).await;
        Ok(match posted {
            Ok(reply) if (200..300).contains(&reply.status) => {
                Attempt { status: Some(reply.status), error: None }
            }
            Ok(reply) => {
                let error = format!("the endpoint answered with status {}", reply.status);
                Attempt { status: Some(reply.status), error: Some(error) }
            }
            Err(OutgoingError::Refused(host)) => {
                let error = format!("the address {host} is not public, and this server does not list it");
                Attempt { status: None, error: Some(error) }
            }
            Err(OutgoingError::Failed(error)) => {
                let error = error.chars().take(LONGEST_ERROR).collect();
                Attempt { status: None, error: Some(error) }
            }
        })
    }
}

fn headers(due: &DueDelivery, key: &[u8]) -> HeaderMap {
    let seconds = Time::now().0 / 1_000_000;
    let values = [
        ("webhook-id", due.event.to_string()),
        ("webhook-event-type", due.kind.clone()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", sign(key, due.event, seconds, &due.body)),
    ];
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    headers.insert(USER_AGENT, HeaderValue::from_static("QoderCloudAgents-Webhook/1.0"));
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}
