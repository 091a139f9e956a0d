//! A seat: one session while it is awake on this node. It opens the session with the runtime, commits what happens, gives it what
//! clients send, and lets it rest. A session that rests stays open for a little while, without its lease.

use std::sync::Arc;
use std::time::Duration;

use qoder_core::ports::LogStoreError;
use qoder_runtime::error::{DriveError, SessionError};
use qoder_runtime::sessions::Finished;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until};

use super::node::{Node, SeatMessage};
use super::opening::{Open, open};
use super::outcomes::Outcomes;
use crate::model::event::NewEvent;
use crate::model::usage::SessionUsage;
use crate::store::{Append, Claim, DbError, Rest};

/// How long what is appended may wait for more of it.
const GATHERED: Duration = Duration::from_millis(20);
/// How long a session that rests stays open.
const LINGER: Duration = Duration::from_secs(10);
/// How long background commands may run without a turn.
const BACKGROUND: Duration = Duration::from_secs(10 * 60);
/// How long running tools may take to end when the node stops.
const GRACE: Duration = Duration::from_secs(5);
/// How long keeping the workspace may take then.
const KEPT_AT_STOP: Duration = Duration::from_secs(10);
/// How long a commit is tried while the database does not work.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);
const COMMIT_PAUSE: Duration = Duration::from_millis(100);
/// How long a seat waits before it reads an inbox again that could not be read.
const INBOX_PAUSE: Duration = Duration::from_millis(250);

/// Whether a session has its lease.
enum Holding {
    /// It has; the permit is the node's room for it.
    Lease { fence: i64, _permit: OwnedSemaphorePermit },
    /// It rests without one until then.
    Warm { until: Instant },
}

/// What ended a seat's work on a session.
enum Ending {
    /// It rested long enough, or the node stops and it has no lease.
    Rested,
    /// It has to be opened anew for this lease.
    Again(Claim, OwnedSemaphorePermit),
    /// The node stops.
    Stopped,
    /// Another holder has it.
    Fenced,
    /// The node lost contact: another holder may have it.
    Lost,
    /// What happened cannot be committed, because the database does not work.
    Broken,
    /// The runtime ended it.
    Ended(Arc<Finished>),
}

/// Serves a session until nothing is left of it on this node.
pub(super) async fn serve(node: Arc<Node>, key: i64, mut messages: mpsc::UnboundedReceiver<SeatMessage>) {
    let mut next = None;
    loop {
        let (claim, permit) = match next.take() {
            Some(leased) => leased,
            None => match node.next_lease(key, &mut messages) {
                Some(leased) => leased,
                None => return,
            },
        };
        let fence = claim.fence;
        let ending = match open(&node, &claim).await {
            Ok(mut open) => {
                node.statistics.wakes.inc();
                let mut seat = Seat {
                    node: Arc::clone(&node),
                    key,
                    holding: Holding::Lease { fence, _permit: permit },
                    rest_at: None,
                    outcomes: Outcomes::new(&mut open),
                    used: open.shared.usage(),
                    open,
                };
                seat.run(&mut messages).await
            }
            Err(error) => {
                drop(permit);
                node.give_back_failed(key, fence, error).await;
                Ending::Rested
            }
        };
        match ending {
            Ending::Again(claim, permit) => next = Some((claim, permit)),
            Ending::Rested
            | Ending::Fenced
            | Ending::Lost
            | Ending::Broken
            | Ending::Stopped
            | Ending::Ended(_) => {}
        }
    }
}

/// A session that is awake.
struct Seat {
    node: Arc<Node>,
    key: i64,
    open: Open,
    holding: Holding,
    /// Set while only background commands keep the session awake.
    rest_at: Option<Instant>,
    outcomes: Outcomes,
    /// What the session had used when it was last counted.
    used: SessionUsage,
}

impl Seat {
    async fn run(&mut self, messages: &mut mpsc::UnboundedReceiver<SeatMessage>) -> Ending {
        let finished = self.open.opened.handle.finished();
        let ending = loop {
            let wait_until = self.deadline();
            tokio::select! {
                biased;
                message = messages.recv() => match message {
                    Some(SeatMessage::Inbox) => self.read_inbox().await,
                    Some(SeatMessage::Lease(claim, permit)) => {
                        if let Some(ending) = self.take_up(claim, permit).await {
                            break ending;
                        }
                    }
                    Some(SeatMessage::Stop) | None => break Ending::Stopped,
                    Some(SeatMessage::Lost) => break Ending::Lost,
                },
                finished = finished.clone() => break Ending::Ended(finished),
                () = self.open.shared.changed.notified() => {}
                () = self.outcomes.graded(&self.open) => {}
                () = sleep_until(wait_until.unwrap_or_else(Instant::now)), if wait_until.is_some() => {
                    if let Some(ending) = self.late().await {
                        break ending;
                    }
                }
            }
            if let Some(ending) = self.commit_if_wanted().await {
                break ending;
            }
        };
        self.end(ending).await
    }

    /// When something is to be done although nothing happens.
    fn deadline(&self) -> Option<Instant> {
        match &self.holding {
            Holding::Warm { until } => Some(*until),
            Holding::Lease { .. } if self.open.shared.has_batch() => Some(Instant::now() + GATHERED),
            Holding::Lease { .. } => self.rest_at,
        }
    }

    /// The deadline has come.
    async fn late(&mut self) -> Option<Ending> {
        match &self.holding {
            Holding::Warm { until } => (*until <= Instant::now()).then_some(Ending::Rested),
            Holding::Lease { .. } if self.open.shared.has_batch() => {
                drop(self.open.shared.want_commit(false));
                None
            }
            Holding::Lease { .. } => {
                // Background commands end with the session, on record.
                self.rest_at = None;
                self.open.opened.handle.stopper().close();
                None
            }
        }
    }

    async fn read_inbox(&mut self) {
        if matches!(self.holding, Holding::Warm { .. }) {
            return;
        }
        match self.node.store.db.inbox_after(self.key, self.open.shared.seen()).await {
            Ok(rows) => {
                let last = rows.last().map_or(0, |row| row.seq);
                self.open.shared.feed(rows, last);
            }
            Err(_) => {
                // A session that was taken up for what is in there has nothing else to do, and would never look again.
                let (node, key) = (Arc::clone(&self.node), self.key);
                tokio::spawn(async move {
                    tokio::time::sleep(INBOX_PAUSE).await;
                    node.call_seat(key);
                });
            }
        }
    }

    /// The session got a lease again. One that was changed meanwhile, here or elsewhere, is opened anew.
    async fn take_up(&mut self, claim: Claim, permit: OwnedSemaphorePermit) -> Option<Ending> {
        let is_warm = matches!(self.holding, Holding::Warm { .. });
        let is_same =
            self.open.shared.appended() == claim.record_seq && self.open.configured_at == claim.configured_at;
        if !is_warm || !is_same {
            return Some(Ending::Again(claim, permit));
        }
        self.node.statistics.warm_wakes.inc();
        self.open.shared.set_parked(false);
        let problems = self.open.memories.synchronise().await;
        problems.into_iter().for_each(|event| self.open.shared.report(event));
        self.holding = Holding::Lease { fence: claim.fence, _permit: permit };
        self.read_inbox().await;
        None
    }

    /// Commits what is wanted. Answers with what ends the seat's work, when that cannot be.
    async fn commit_if_wanted(&mut self) -> Option<Ending> {
        while let Holding::Lease { fence, .. } = self.holding
            && self.open.shared.wants_commit()
        {
            match self.commit(fence).await {
                Ok(()) => {}
                Err(DbError::Fenced(_)) => {
                    self.node.statistics.fenced.inc();
                    self.open.shared.fenced();
                    return Some(Ending::Fenced);
                }
                Err(error) => {
                    self.open.shared.broken(error.to_string());
                    return Some(Ending::Broken);
                }
            }
        }
        None
    }

    async fn commit(&mut self, fence: i64) -> Result<(), DbError> {
        let mut cut = self.open.shared.cut();
        self.outcomes.consider(&self.node, self.key, &mut cut).await?;
        let outcomes = self.outcomes.changed();
        let mut batch = cut.batch;
        let mut threads = cut.threads;
        if cut.has_acted {
            self.open.workspace.act();
        }
        if let Some(resting) = &cut.resting {
            // A client that sees that the session rests may continue it on another node, with these files.
            batch.events.extend(self.open.workspace.save(resting.may_release).await);
        }
        let workspace = self.open.workspace.change();
        let is_changed = outcomes.is_some()
            || cut.resting.is_some()
            || cut.taken > 0
            || self.open.workspace.must_be_committed();
        if batch.is_empty() && threads.is_empty() && !is_changed {
            self.outcomes.committed(&self.node, &self.open);
            return Ok(());
        }
        let store = self.node.store.clone();
        store.spill_records(self.open.tenant, &mut batch.records).await?;
        for thread in &mut threads {
            store.spill_records(self.open.tenant, &mut thread.records).await?;
        }
        store.spill_events(self.open.tenant, &mut batch.events).await?;
        let releases = cut.resting.as_ref().is_some_and(|resting| resting.may_release);
        if cut.resting.is_some() {
            // Who sees that the session rests finds what it changed in its memory stores.
            batch.events.extend(self.open.memories.synchronise().await);
        }
        let rest = cut.resting.map(|resting| {
            let idle = NewEvent::new("session.status_idle", &resting.stop.idle_event());
            let thread = self.open.shared.primary_idle(&resting.stop);
            let events = self.usage_event().into_iter().chain(thread).chain([idle]).collect();
            Rest { seen: cut.seen, stop: resting.stop, events, releases }
        });
        let is_resting = rest.is_some();
        let (handed, is_used) = (cut.handed, cut.usage.is_some());
        let append = Append {
            key: self.key,
            session: self.open.session,
            tenant: self.open.tenant,
            fence,
            expected: cut.expected,
            records: batch.records,
            threads,
            events: batch.events,
            actions: batch.actions,
            outcomes,
            begins: batch.begins,
            processed: batch.processed,
            taken: cut.taken,
            usage: cut.usage,
            workspace,
            is_progress: batch.is_progress,
            rest,
            is_repeated: false,
        };
        let appended = self.persist(append).await?;
        self.node.hub.publish(self.key, appended.events);
        self.count(self.open.shared.committed(handed), is_used);
        self.open.workspace.committed();
        self.outcomes.committed(&self.node, &self.open);
        if appended.rests && releases {
            self.park().await;
        } else if appended.rests {
            self.rest_at.get_or_insert_with(|| Instant::now() + BACKGROUND);
        } else {
            self.rest_at = None;
            if is_resting {
                self.open.shared.feed(appended.inbox, appended.inbox_seq);
            }
        }
        Ok(())
    }

    /// Commits, also through a short fault of the database.
    async fn persist(&self, mut append: Append) -> Result<crate::store::Appended, DbError> {
        let until = Instant::now() + COMMIT_PATIENCE;
        loop {
            let done = tokio::select! {
                done = self.node.store.db.append(append.clone()) => done,
                () = self.node.lost() => return Err(DbError::Unavailable("contact was lost".to_owned())),
            };
            match done {
                Err(DbError::Unavailable(_)) if Instant::now() < until => {
                    append.is_repeated = true;
                    tokio::time::sleep(COMMIT_PAUSE).await;
                }
                done => return done,
            }
        }
    }

    /// Counts a commit that the session waited for, and what its models used since the last one.
    fn count(&mut self, waited: Option<Duration>, is_used: bool) {
        let statistics = &self.node.statistics;
        let number = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        if let Some(waited) = waited {
            statistics.barriers.inc();
            statistics.barrier_micros.inc_by(number(waited.as_micros()));
        }
        if is_used {
            let (before, now) = (self.used, self.open.shared.usage());
            statistics.tokens_read.inc_by(now.tokens_read().saturating_sub(before.tokens_read()));
            statistics
                .tokens_written
                .inc_by(now.tokens.output_tokens.saturating_sub(before.tokens.output_tokens));
            statistics.cost_micros.inc_by(now.cost_micros().saturating_sub(before.cost_micros()));
            self.used = now;
        }
    }

    /// What the session has used, where it has a budget.
    fn usage_event(&self) -> Option<NewEvent> {
        let budget = self.open.budget.as_ref()?;
        let mut usage = self.open.shared.usage().view(0.0, self.open.credit_usd);
        if let Some(fields) = usage.as_object_mut() {
            fields.shift_remove("active_seconds");
        }
        Some(NewEvent::new("session.usage", &json!({ "usage": usage, "budget": budget })))
    }

    async fn park(&mut self) {
        if let Some(host) = &self.open.host {
            host.tools.close().await;
        }
        self.node.statistics.parks.inc();
        self.open.shared.set_parked(true);
        self.rest_at = None;
        self.holding = Holding::Warm { until: Instant::now() + LINGER };
    }

    /// Ends the seat's work, whatever ended it.
    async fn end(&mut self, ending: Ending) -> Ending {
        match &ending {
            Ending::Stopped => self.stop().await,
            Ending::Ended(finished) => {
                let finished = Arc::clone(finished);
                self.after_end(&finished).await;
            }
            Ending::Rested | Ending::Fenced | Ending::Again(..) => self.close().await,
            Ending::Lost => {
                self.open.shared.fenced();
                self.open.opened.handle.stopper().end("SIGTERM");
                drop(tokio::time::timeout(GRACE, self.open.opened.handle.finished()).await);
            }
            Ending::Broken => {
                self.close().await;
                self.give_back_broken().await;
            }
        }
        ending
    }

    /// The database does not work: the session is tried again when it does.
    async fn give_back_broken(&self) {
        if let Holding::Lease { fence, .. } = self.holding {
            self.node.give_back(self.key, fence, true).await;
        }
    }

    async fn close(&mut self) {
        let stopper = self.open.opened.handle.stopper();
        stopper.close();
        drop(tokio::time::timeout(GRACE, self.open.opened.handle.finished()).await);
    }

    /// The node stops: what runs ends within the grace time, and the session is due on the next node.
    async fn stop(&mut self) {
        let Holding::Lease { fence, .. } = self.holding else {
            self.close().await;
            return;
        };
        self.open.opened.handle.stopper().end("SIGTERM");
        let finished = self.open.opened.handle.finished();
        let until = Instant::now() + GRACE;
        loop {
            tokio::select! {
                _ = finished.clone() => break,
                () = self.open.shared.changed.notified() => {}
                () = sleep_until(until) => break,
            }
            if self.commit_if_wanted().await.is_some() {
                return;
            }
        }
        drop(self.open.shared.want_commit(false));
        if self.commit_if_wanted().await.is_some() {
            return;
        }
        // What is not kept in time stays on this node, which is asked first.
        drop(tokio::time::timeout(KEPT_AT_STOP, self.open.workspace.save(true)).await);
        drop(self.open.shared.want_commit(false));
        if self.commit_if_wanted().await.is_none() && matches!(self.holding, Holding::Lease { .. }) {
            self.node.give_back(self.key, fence, false).await;
        }
    }

    /// The runtime ended the session: because it was closed, or because something failed.
    async fn after_end(&mut self, finished: &Finished) {
        let Holding::Lease { fence, .. } = self.holding else { return };
        let error = finished.take_error();
        // What was appended before the end is committed, whatever ended it.
        drop(self.open.shared.want_commit(true));
        match self.commit_if_wanted().await {
            Some(Ending::Broken) => return self.give_back_broken().await,
            Some(_) => return,
            None if matches!(self.holding, Holding::Warm { .. }) => return,
            None => {}
        }
        match error {
            Some(DriveError::Session(SessionError::Store(LogStoreError::Fenced { .. }))) => {}
            None | Some(DriveError::Waiting(_)) => self.node.give_back(self.key, fence, false).await,
            Some(
                error @ (DriveError::Session(_)
                | DriveError::Output(_)
                | DriveError::Internal(_)
                | DriveError::Ended(_)),
            ) => {
                self.node.log_seat_failure(self.key, &error.to_string());
                self.node.give_back(self.key, fence, true).await;
            }
        }
    }
}
