//! What a seat shares with the log and the inbox that it gave to the runtime: what is appended and not committed yet, what was
//! left and not taken yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use qoder_core::ports::LogStoreError;
use qoder_store::line::Owner;
use qoder_types::{InboxBody, InboxEntry, Record};
use tokio::sync::{Notify, watch};

use super::threads::Threads;
use crate::model::event::NewEvent;
use crate::model::ids::EventId;
use crate::model::status::StopReason;
use crate::model::usage::SessionUsage;
use crate::project::{PreviewFrame, Previews, Projected, Projector, Resting};
use crate::store::{self, InboxRow, NewAction, NewRecord, ThreadAppend};

/// The sender of messages about an outcome.
const GRADER: &str = "grader";
/// The sender of notices about the session itself.
const SERVER: &str = "server";

fn starts_tool(record: &Record) -> bool {
    matches!(record.body, qoder_types::record::RecordBody::ToolStarted(_))
}

/// What is appended and not committed yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<NewRecord>,
    pub(super) events: Vec<NewEvent>,
    pub(super) actions: Vec<NewAction>,
    pub(super) processed: Vec<EventId>,
    pub(super) begins: bool,
    pub(super) is_progress: bool,
    pub(super) is_used: bool,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.events.is_empty()
    }

    /// Takes what a record came to. Only turns of the session itself begin one.
    fn take(&mut self, projected: Projected) {
        self.events.extend(projected.events);
        self.actions.extend(projected.actions);
        self.processed.extend(projected.processed);
        self.is_progress |= projected.is_progress;
        self.is_used |= projected.is_used;
    }
}

/// How many of the records that were handed over are committed, or why no more can be.
#[derive(Debug, Clone, Default)]
pub(super) struct Committed {
    pub(super) seq: u64,
    pub(super) error: Option<LogStoreError>,
}

struct Inner {
    threads: Threads,
    projector: Projector,
    previews: Previews,
    batch: Batch,
    /// The last record of the session's own log that was handed over.
    appended: u64,
    /// How many records were handed over here, of any log.
    handed: u64,
    wants_commit: bool,
    /// Since when the session waits for a commit.
    waits_since: Option<Instant>,
    /// True when the driver has nothing to do at this moment, as far as it knows.
    rests: bool,
    /// True while the session has no lease.
    is_parked: bool,
    /// Left and not taken.
    entries: VecDeque<(u64, InboxEntry)>,
    /// Taken and not settled.
    taken: VecDeque<(u64, String)>,
    /// Every entry up to this one is settled.
    settled: u64,
    /// The last entry that was seen.
    seen: u64,
    /// An entry that stops the turn and is not settled.
    interrupt: Option<u64>,
    /// A message about its outcome that the session has not read yet.
    prompt: Option<String>,
    is_prompted: bool,
    /// True when what the session works towards may have changed.
    has_input: bool,
    /// True when a tool was started since the last commit.
    has_acted: bool,
}

/// What a seat shares.
pub(super) struct Shared {
    session_id: String,
    inner: Mutex<Inner>,
    /// Something is to be committed.
    pub(super) changed: Notify,
    /// Something was left.
    pub(super) mail: Notify,
    committed: watch::Sender<Committed>,
}

/// What the next commit contains.
pub(super) struct Cut {
    pub(super) batch: Batch,
    /// The last record that is stored already.
    pub(super) expected: u64,
    /// Inbox entries up to this one are on record.
    pub(super) taken: u64,
    /// What happened in threads.
    pub(super) threads: Vec<ThreadAppend>,
    /// How many records were handed over.
    pub(super) handed: u64,
    /// The last inbox entry that was seen.
    pub(super) seen: u64,
    /// What the session has used, as JSON.
    pub(super) usage: Option<String>,
    /// Set when nothing is left to do.
    pub(super) resting: Option<Resting>,
    /// True when a client stopped what the session does.
    pub(super) is_interrupted: bool,
    /// True when a message about its outcome is on record.
    pub(super) is_prompted: bool,
    /// True when what the session works towards may have changed.
    pub(super) has_input: bool,
    /// True when a tool is started by one of its records.
    pub(super) has_acted: bool,
}

impl Shared {
    pub(super) fn new(session_id: &str, projector: Projector, threads: Threads, last_seq: u64) -> Self {
        Self {
            session_id: session_id.to_owned(),
            inner: Mutex::new(Inner {
                threads,
                projector,
                previews: Previews::default(),
                batch: Batch::default(),
                appended: last_seq,
                handed: 0,
                wants_commit: false,
                waits_since: None,
                rests: false,
                is_parked: false,
                entries: VecDeque::new(),
                taken: VecDeque::new(),
                settled: 0,
                seen: 0,
                interrupt: None,
                prompt: None,
                is_prompted: false,
                has_input: false,
                has_acted: false,
            }),
            changed: Notify::new(),
            mail: Notify::new(),
            committed: watch::Sender::new(Committed::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> String {
        format!("of {}", self.session_id)
    }

    fn fault(&self, problem: String) -> LogStoreError {
        LogStoreError::Failed { place: self.place(), problem }
    }

    /// Takes records over: encoded, projected and waiting for a commit.
    pub(super) fn append(&self, records: &[Record]) -> Result<(), LogStoreError> {
        if let Some(error) = self.committed.borrow().error.clone() {
            return Err(error);
        }
        let mut inner = self.lock();
        if inner.is_parked {
            return Err(LogStoreError::Fenced { place: self.place() });
        }
        let owner = Owner { session_id: &self.session_id, agent_id: None };
        for record in records {
            let row = store::encode(record, owner).map_err(|error| self.fault(error.to_string()))?;
            let Inner { projector, previews, batch, threads, .. } = &mut *inner;
            let projected = projector.project(record, previews);
            batch.records.push(row);
            batch.begins |= projected.begins;
            let parked: Vec<NewEvent> =
                projected.parked.iter().filter_map(|agent| threads.park(agent)).collect();
            let ended: Vec<NewEvent> =
                projected.ended.iter().filter_map(|(agent, _)| threads.end(agent)).collect();
            batch.take(projected);
            batch.events.extend(parked.into_iter().chain(ended));
            inner.appended = record.seq;
            inner.has_acted |= starts_tool(record);
            inner.handed += 1;
        }
        inner.rests = false;
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes records of an agent over.
    pub(super) fn append_to(&self, agent: &str, records: &[Record]) -> Result<(), LogStoreError> {
        if let Some(error) = self.committed.borrow().error.clone() {
            return Err(error);
        }
        let mut inner = self.lock();
        if inner.is_parked {
            return Err(LogStoreError::Fenced { place: self.place() });
        }
        for record in records {
            let Inner { projector, batch, threads, .. } = &mut *inner;
            let projected = threads.append(agent, record)?;
            batch.events.extend(projector.resumes(agent));
            batch.take(projected);
            inner.has_acted |= starts_tool(record);
            inner.handed += 1;
        }
        inner.rests = false;
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Looks at the threads, or changes them.
    pub(super) fn threads<T>(&self, work: impl FnOnce(&mut Threads) -> T) -> T {
        work(&mut self.lock().threads)
    }

    /// Adds an event that no record stands for.
    pub(super) fn report(&self, event: NewEvent) {
        let mut inner = self.lock();
        if !inner.is_parked {
            inner.batch.events.push(event);
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Wants everything committed that is appended by now. `rests` says that the driver has nothing to do.
    pub(super) fn want_commit(&self, rests: bool) -> (u64, watch::Receiver<Committed>) {
        let mut inner = self.lock();
        inner.wants_commit = true;
        inner.waits_since.get_or_insert_with(Instant::now);
        inner.rests |= rests;
        let handed = inner.handed;
        drop(inner);
        self.changed.notify_one();
        (handed, self.committed.subscribe())
    }

    /// Takes a piece of a reply; answers with what subscribers get.
    pub(super) fn preview(&self, piece: &str) -> Vec<PreviewFrame> {
        self.lock().previews.take(piece)
    }

    /// True when a commit is wanted now; false when there may be something that can wait a little.
    pub(super) fn wants_commit(&self) -> bool {
        self.lock().wants_commit
    }

    /// True when something waits for a commit.
    pub(super) fn has_batch(&self) -> bool {
        let inner = self.lock();
        !inner.batch.is_empty() || inner.threads.has_changes()
    }

    /// Cuts what the next commit contains.
    pub(super) fn cut(&self) -> Cut {
        let mut inner = self.lock();
        inner.wants_commit = false;
        let batch = std::mem::take(&mut inner.batch);
        let is_drained = inner.entries.is_empty() && inner.taken.is_empty();
        let of_agent = |agent: &str, call: &str| inner.threads.waiting(agent, call);
        let resting = if inner.rests && is_drained { inner.projector.resting(of_agent) } else { None };
        let total = || inner.projector.usage().plus(&inner.threads.usage());
        let usage = batch.is_used.then(|| serde_json::to_string(&total()).ok()).flatten();
        let is_interrupted = inner.interrupt.is_some_and(|seq| seq <= inner.settled);
        if is_interrupted {
            inner.interrupt = None;
        }
        Cut {
            is_interrupted,
            is_prompted: std::mem::take(&mut inner.is_prompted),
            has_input: std::mem::take(&mut inner.has_input),
            has_acted: std::mem::take(&mut inner.has_acted),
            threads: inner.threads.cut(),
            handed: inner.handed,
            expected: inner.appended - batch.records.len() as u64,
            taken: inner.settled,
            seen: inner.seen,
            usage,
            resting,
            batch,
        }
    }

    /// A commit is done: so many of the records that were handed over are stored. Answers with how long the session waited for it.
    pub(super) fn committed(&self, seq: u64) -> Option<Duration> {
        let mut inner = self.lock();
        let waited = inner.waits_since.take().map(|since| since.elapsed());
        if inner.wants_commit {
            // It waits for the next one already.
            inner.waits_since = Some(Instant::now());
        }
        drop(inner);
        self.committed.send_modify(|committed| committed.seq = committed.seq.max(seq));
        waited
    }

    /// Nothing more can be committed.
    pub(super) fn failed(&self, error: LogStoreError) {
        self.committed.send_modify(|committed| {
            committed.error.get_or_insert(error);
        });
    }

    /// Another holder has the session.
    pub(super) fn fenced(&self) {
        self.failed(LogStoreError::Fenced { place: self.place() });
    }

    /// The store does not work.
    pub(super) fn broken(&self, problem: String) {
        self.failed(self.fault(problem));
    }

    /// The session has no lease from now on, or has one again.
    pub(super) fn set_parked(&self, is_parked: bool) {
        self.lock().is_parked = is_parked;
    }

    /// Entries were left, and `last` is the number of the last one that ever was. Each is given to the session once.
    pub(super) fn feed(&self, rows: Vec<InboxRow>, last: u64) {
        let mut inner = self.lock();
        for row in rows {
            if row.seq > inner.seen {
                inner.seen = row.seq;
                inner.rests = false;
                match &row.entry.body {
                    InboxBody::Interrupt {} => inner.interrupt = Some(row.seq),
                    InboxBody::Input { .. } => inner.has_input = true,
                    InboxBody::Answer { .. } | InboxBody::Result { .. } | InboxBody::Request { .. } => {}
                }
                inner.entries.push_back((row.seq, row.entry));
            }
        }
        // What is no longer there was taken before.
        inner.seen = inner.seen.max(last);
        if inner.entries.is_empty() {
            inner.wants_commit = true;
            drop(inner);
            self.changed.notify_one();
        } else {
            drop(inner);
            self.mail.notify_one();
        }
    }

    /// Sends a message about its outcome to the session, behind what was left for it.
    pub(super) fn prompt(&self, id: String, text: &str) {
        let message = qoder_types::Message::user(text.to_owned());
        let body = InboxBody::Input { message, origin: qoder_types::record::InputOrigin::User };
        let mut inner = self.lock();
        let seq = inner.seen;
        let entry = InboxEntry { id: id.clone(), at: qoder_store::timestamp(), by: GRADER.to_owned(), body };
        inner.prompt = Some(id);
        inner.rests = false;
        inner.entries.push_back((seq, entry));
        drop(inner);
        self.mail.notify_one();
    }

    /// Says something to the model before it reads what was left for the session. It opens no turn.
    pub(super) fn prepend_notice(&self, id: String, text: &str) {
        let message = qoder_types::Message::user(text.to_owned());
        let body = InboxBody::Input { message, origin: qoder_types::record::InputOrigin::System };
        let entry = InboxEntry { id, at: qoder_store::timestamp(), by: SERVER.to_owned(), body };
        self.lock().entries.push_front((0, entry));
        self.mail.notify_one();
    }

    /// The last entry that was seen.
    pub(super) fn seen(&self) -> u64 {
        self.lock().seen
    }

    pub(super) fn take_entries(&self) -> Vec<InboxEntry> {
        let mut inner = self.lock();
        let entries: Vec<(u64, InboxEntry)> = inner.entries.drain(..).collect();
        inner.taken.extend(entries.iter().map(|(seq, entry)| (*seq, entry.id.clone())));
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.lock().entries.is_empty()
    }

    /// What an entry led to is appended.
    pub(super) fn settle(&self, id: &str) {
        let mut inner = self.lock();
        let last = inner.taken.back().map(|(seq, _)| *seq);
        inner.taken.retain(|(_, taken)| taken != id);
        if inner.prompt.as_deref() == Some(id) {
            inner.prompt = None;
            inner.is_prompted = true;
        }
        let first_open = inner.taken.front().map(|(seq, _)| seq.saturating_sub(1));
        let settled = first_open.or(last).unwrap_or(inner.settled);
        inner.settled = inner.settled.max(settled);
        // An entry that led to nothing, such as an interrupt without a turn, leaves the session as it was.
        inner.wants_commit = true;
        inner.rests |= inner.taken.is_empty() && inner.entries.is_empty();
        drop(inner);
        self.changed.notify_one();
    }

    /// Reports that the session's own thread rests, where threads are reported.
    pub(super) fn primary_idle(&self, stop: &StopReason) -> Option<NewEvent> {
        self.lock().projector.primary_idle(stop)
    }

    /// What the session has used.
    pub(super) fn usage(&self) -> SessionUsage {
        let inner = self.lock();
        inner.projector.usage().plus(&inner.threads.usage())
    }

    /// The last record that was handed over.
    pub(super) fn appended(&self) -> u64 {
        self.lock().appended
    }
}
