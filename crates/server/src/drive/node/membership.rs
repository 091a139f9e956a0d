//! The life of a node among others. It beats; a node whose beats stay away has to assume that others take its sessions, so it ends
//! them before anyone can, and comes back under another id. It takes over the sessions of nodes whose beats stayed away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Node, SeatMessage};
use crate::model::ids::{self, NodeId};
use crate::model::time::Time;
use crate::store::{DbError, NodeRow};

/// How often a node beats. The database counts it as alive for 15 s after that.
const BEAT: Duration = Duration::from_secs(3);
/// Without a beat for this long a node ends its sessions.
const LOST: Duration = Duration::from_secs(12);
/// How long sessions may take to end then, before the node comes back.
const ENDED: Duration = Duration::from_secs(10);
/// The time between two sweeps, and how much longer it may be.
const SWEEP: Duration = Duration::from_secs(3);
const SWEEP_SPREAD_MS: u64 = 4_000;
const REJOIN_PAUSE: Duration = Duration::from_millis(500);

/// Who a node is to others.
#[derive(Debug, Clone)]
pub struct Membership {
    /// The data directory.
    pub home: NodeId,
    /// Where it listens.
    pub address: String,
}

/// Time since the machine started, with the time in which it was suspended.
fn elapsed() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

impl Node {
    /// Registers the node under a new id, and takes over what others left.
    ///
    /// # Errors
    /// When the database does not work.
    pub async fn join(&self, member: &Membership) -> Result<(), DbError> {
        let (id, now) = (NodeId::random(), Time::now());
        let row = NodeRow {
            id,
            home: member.home,
            address: member.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: now,
            // With SQLite the lock on the data folder says whether the process is there; this is for people.
            expires_at: now,
            is_draining: false,
        };
        self.store.db.register_node(row).await?;
        self.set_id(id);
        self.is_member.send_replace(true);
        self.take_over().await?;
        Ok(())
    }

    /// True while the node may drive sessions: others count it as alive.
    #[must_use]
    pub fn is_member(&self) -> bool {
        *self.is_member.borrow()
    }

    /// Completes when others may take its sessions.
    pub(in crate::drive) async fn lost(&self) {
        // The sender is the node's own.
        let _ = self.is_member.subscribe().wait_for(|is_member| !is_member).await;
    }

    /// Beats until the node stops.
    pub async fn beat(self: Arc<Self>, member: Membership) {
        let mut last = elapsed();
        while !self.stops.load(Ordering::Relaxed) {
            tokio::time::sleep(BEAT).await;
            let asked = elapsed();
            let left = LOST.saturating_sub(asked.saturating_sub(last));
            let outcome = tokio::time::timeout(left, self.store.db.beat(self.id())).await;
            match outcome {
                // A process that was stopped in between has missed the time, whatever the answer was.
                Ok(Ok(true)) if elapsed().saturating_sub(asked) < LOST => last = asked,
                Ok(Err(_)) if elapsed().saturating_sub(last) < LOST => {}
                Ok(_) | Err(_) => {
                    self.lose().await;
                    self.rejoin(&member).await;
                    last = elapsed();
                }
            }
        }
    }

    /// Ends every session without a word to the database: it may be another node's already.
    async fn lose(&self) {
        self.is_member.send_replace(false);
        self.statistics.losses.inc();
        self.log.error("contact_lost", &[("node", &self.id().to_string())]);
        for seat in self.seats().values() {
            // A seat that is gone needs no word.
            let _ = seat.send(SeatMessage::Lost);
        }
        let until = tokio::time::Instant::now() + ENDED;
        while !self.seats().is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn rejoin(&self, member: &Membership) {
        while !self.stops.load(Ordering::Relaxed) {
            match self.join(member).await {
                Ok(()) => {
                    self.log.info("contact_found", &[("node", &self.id().to_string())]);
                    return;
                }
                Err(_) => tokio::time::sleep(REJOIN_PAUSE).await,
            }
        }
    }

    /// Takes over what nodes leave that are gone, until the node stops.
    pub async fn sweep(self: Arc<Self>) {
        while !self.stops.load(Ordering::Relaxed) {
            let spread = u64::from(ids::random()[0]) * SWEEP_SPREAD_MS / 255;
            tokio::time::sleep(SWEEP + Duration::from_millis(spread)).await;
            if !self.is_member() {
                continue;
            }
            match self.take_over().await {
                Ok(0) => {}
                Ok(count) => self.log.info("sessions_taken_over", &[("count", &count.to_string())]),
                Err(error) => self.log.warn("sweep_failed", &[("error", &error.to_string())]),
            }
        }
    }
}
