//! What a node hears of others: hints over one connection that listens, and what it finds by asking. Asking is the truth; while
//! hints arrive it is done seldom.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Node, SeatMessage};
use crate::store::{Db, DbError, Hint, Hints};

/// How often the node asks without hints, and with them.
const WITHOUT_HINTS: Duration = Duration::from_millis(250);
const WITH_HINTS: Duration = Duration::from_secs(2);
/// How long the node waits before it tries to listen again.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);
/// Hints of this time go out together.
const GATHERED: Duration = Duration::from_millis(10);
/// A claim is answered within 10 s or never; a lease without a seat for longer has no one who knows of it.
const UNSEATED: Duration = Duration::from_secs(12);

/// What the node has found so far.
#[derive(Default)]
struct Observed {
    /// The last inbox entry that a seat was given word of, by session.
    inboxes: HashMap<i64, u64>,
    /// Leases without a seat, and since when.
    unseated: HashMap<(i64, i64), Instant>,
}

/// Gives hints to other nodes, until there is no one who has some.
pub async fn announce(db: Arc<dyn Db>, mut hints: mpsc::UnboundedReceiver<Hint>) {
    while let Some(first) = hints.recv().await {
        tokio::time::sleep(GATHERED).await;
        let mut gathered = vec![first];
        while let Ok(hint) = hints.try_recv() {
            gathered.push(hint);
        }
        // Others find by asking what does not reach them.
        drop(db.announce(gathered).await);
    }
}

impl Node {
    /// Follows what other nodes do until the node stops.
    pub async fn follow_others(self: Arc<Self>) {
        let mut found = Observed::default();
        let mut listen_at = Instant::now();
        while !self.stops.load(Ordering::Relaxed) {
            if listen_at <= Instant::now() {
                match self.store.db.listen(self.id()).await {
                    Ok(Some(hints)) => {
                        self.log.info("listening_for_hints", &[]);
                        self.listen(hints, &mut found).await;
                    }
                    Ok(None) => return,
                    Err(error) => {
                        self.log.warn("listener_failed", &[("error", &error.to_string())]);
                        listen_at = Instant::now() + LISTEN_PAUSE;
                    }
                }
            }
            tokio::time::sleep(WITHOUT_HINTS).await;
            self.ask(&mut found).await;
        }
    }

    /// Takes hints until the connection is lost, or the node has another id.
    async fn listen(&self, mut hints: Hints, found: &mut Observed) {
        let id = self.id();
        let mut ask_at = Instant::now();
        while id == self.id() && !self.stops.load(Ordering::Relaxed) {
            tokio::select! {
                hint = hints.recv() => match hint {
                    Some(hint) => self.hear(hint),
                    None => return,
                },
                () = tokio::time::sleep_until(ask_at) => {
                    self.ask(found).await;
                    ask_at = Instant::now() + WITH_HINTS;
                }
            }
        }
    }

    fn hear(&self, hint: Hint) {
        match hint {
            Hint::Events { key, seq } => self.hub.note(key, seq),
            Hint::Deleted { key } => self.hub.note_deleted(key),
            Hint::Wake => self.due.notify_one(),
            Hint::Inbox { key, .. } => self.call_seat(key),
        }
    }

    /// Has the seat of a session look into its inbox.
    pub(in crate::drive) fn call_seat(&self, key: i64) {
        if let Some(seat) = self.seats().get(&key) {
            // A seat that is gone has given its lease back.
            let _ = seat.send(SeatMessage::Inbox);
        }
    }

    async fn ask(&self, found: &mut Observed) {
        let asked = self.ask_events().await.and(self.ask_leases(found).await);
        if let Err(error) = asked {
            self.log.warn("asking_failed", &[("error", &error.to_string())]);
        }
    }

    /// Events of sessions that someone watches here and another node drives.
    async fn ask_events(&self) -> Result<(), DbError> {
        let watched = self.hub.watched_sessions();
        if watched.is_empty() {
            return Ok(());
        }
        let newest: HashMap<i64, u64> =
            self.store.db.newest_events(watched.clone()).await?.into_iter().collect();
        for key in watched {
            match newest.get(&key) {
                Some(seq) => self.hub.note(key, *seq),
                None => self.hub.note_deleted(key),
            }
        }
        Ok(())
    }

    /// What was left for sessions that are driven here, and leases that no seat knows of.
    async fn ask_leases(&self, found: &mut Observed) -> Result<(), DbError> {
        let leases = self.store.db.leases(self.id()).await?;
        let mut unseated = HashMap::new();
        found.inboxes.retain(|key, _| leases.iter().any(|lease| lease.key == *key));
        for lease in leases {
            if !self.seats().contains_key(&lease.key) {
                let place = (lease.key, lease.fence);
                let since = found.unseated.get(&place).copied().unwrap_or_else(Instant::now);
                if since.elapsed() < UNSEATED {
                    unseated.insert(place, since);
                } else if self.store.db.release(lease.key, lease.fence, false).await.is_ok() {
                    self.wake();
                }
                continue;
            }
            let known = found.inboxes.insert(lease.key, lease.inbox_seq);
            if known != Some(lease.inbox_seq) {
                self.call_seat(lease.key);
            }
        }
        found.unseated = unseated;
        Ok(())
    }
}
