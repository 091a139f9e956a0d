//! [`SessionStore`] in memory: sessions that leave no trace on disk and end with the process. Their records are kept, so
//! that they can be read back meanwhile.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::record::{RecordBody, UserOrigin};
use qoder_types::{InboxEntry, InboxReply, Record};
use serde_json::Value;
use tokio::sync::Notify;

use crate::error::StoreError;
use crate::inbox::{InboxError, Item, MOST_WAITING, SessionInbox, Ticket, checked, is_plain_id};
use crate::jsonl::blob;
use crate::jsonl::line::{self, Line};
use crate::lease::Holder;
use crate::port::{OpenSession, SessionKey, SessionStore, StoredSession, Take};

/// Sessions in memory. A clone has the same sessions.
#[derive(Debug, Clone, Default)]
pub struct MemorySessions(Arc<Mutex<BTreeMap<SessionKey, MemorySession>>>);

/// One session.
#[derive(Debug)]
struct MemorySession {
    lines: Vec<Line>,
    modified: SystemTime,
    title: Option<String>,
    sidecar: Option<Value>,
    blobs: HashMap<String, Vec<u8>>,
    /// Grows with every lease.
    lease: u64,
    held: Option<(Weak<()>, SystemTime)>,
    entries: VecDeque<Waiting>,
    replies: HashMap<String, InboxReply>,
    arrival: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    entry: InboxEntry,
    /// The lease whose holder has taken it.
    taken_by: u64,
}

impl Default for MemorySession {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            modified: SystemTime::now(),
            title: None,
            sidecar: None,
            blobs: HashMap::new(),
            lease: 0,
            held: None,
            entries: VecDeque::new(),
            replies: HashMap::new(),
            arrival: Arc::default(),
        }
    }
}

impl MemorySession {
    fn holder(&self) -> Option<Holder> {
        let (alive, since) = self.held.as_ref()?;
        (alive.strong_count() > 0).then(|| Holder { pid: Some(std::process::id()), since: Some(*since) })
    }

    fn last_seq(&self) -> u64 {
        let numbers = self.lines.iter().rev().find_map(|line| match line {
            Line::Record(record) => Some(record.seq),
            Line::Foreign(_) => None,
        });
        numbers.unwrap_or(0)
    }

    fn first_prompt(&self) -> Option<String> {
        self.lines.iter().find_map(|line| match line {
            Line::Record(Record { body: RecordBody::User(entry), .. })
                if entry.origin == UserOrigin::Prompt =>
            {
                Some(entry.message.content.to_text())
            }
            Line::Record(_) | Line::Foreign(_) => None,
        })
    }
}

impl MemorySessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionKey, MemorySession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: &SessionKey, act: impl FnOnce(&mut MemorySession) -> T) -> Result<T, StoreError> {
        self.all().get_mut(key).map(act).ok_or_else(|| missing(key))
    }

    fn check(key: &SessionKey) -> Result<(), StoreError> {
        let bad = key.agents.iter().chain([&key.session]).find(|id| !is_plain_id(id));
        bad.map_or(Ok(()), |id| Err(StoreError::BadId { id: id.clone() }))
    }
}

fn missing(key: &SessionKey) -> StoreError {
    StoreError::NotFound { id: key.id().to_owned(), project: "memory".into(), elsewhere: None }
}

impl SessionStore for MemorySessions {
    fn open(
        &self,
        key: &SessionKey,
        take: Take,
        visit: &mut dyn FnMut(Line),
    ) -> Result<OpenSession, StoreError> {
        Self::check(key)?;
        let alive = Arc::new(());
        let (lines, lease, arrival, last_seq) = {
            let mut all = self.all();
            let kept = all.entry(key.clone()).or_default();
            if let (Take::IfFree, Some(holder)) = (take, kept.holder()) {
                return Err(StoreError::Locked { id: key.id().to_owned(), holder: holder.pid });
            }
            kept.lease += 1;
            kept.held = Some((Arc::downgrade(&alive), SystemTime::now()));
            // What the last holder took and did not settle arrives again.
            (kept.lines.clone(), kept.lease, Arc::clone(&kept.arrival), kept.last_seq())
        };
        lines.into_iter().for_each(visit);
        let (sessions, key) = (self.clone(), key.clone());
        let log = MemoryLog { sessions: sessions.clone(), key: key.clone(), lease, _alive: alive };
        let inbox = MemoryInbox { sessions, key, lease, arrival };
        Ok(OpenSession { log: Box::new(log), inbox: Box::new(inbox), last_seq })
    }

    fn read(&self, key: &SessionKey, visit: &mut dyn FnMut(Line)) -> Result<u64, StoreError> {
        let (lines, last_seq) = self.with(key, |kept| (kept.lines.clone(), kept.last_seq()))?;
        lines.into_iter().for_each(visit);
        Ok(last_seq)
    }

    fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let all = self.all();
        let main = all.iter().filter(|(key, kept)| key.agents.is_empty() && !kept.lines.is_empty());
        let mut listed: Vec<StoredSession> = main
            .map(|(key, kept)| StoredSession {
                id: key.session.clone(),
                modified: kept.modified,
                title: kept.title.clone(),
                first_prompt: kept.first_prompt(),
                holder: kept.holder(),
            })
            .collect();
        listed.sort_by_key(|session| std::cmp::Reverse(session.modified));
        Ok(listed)
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<Holder>, StoreError> {
        Self::check(key)?;
        Ok(self.all().get(key).and_then(MemorySession::holder))
    }

    fn leave(&self, key: &SessionKey, entry: &InboxEntry) -> Result<Ticket, InboxError> {
        checked(entry)?;
        let left = self.with(key, |kept| {
            if kept.entries.len() >= MOST_WAITING {
                return Err(InboxError::Full { most: MOST_WAITING });
            }
            if !kept.entries.iter().any(|waiting| waiting.entry.id == entry.id) {
                kept.entries.push_back(Waiting { entry: entry.clone(), taken_by: 0 });
            }
            kept.arrival.notify_one();
            Ok(())
        });
        left.map_err(|_| InboxError::NoSession { path: key.id().into() })??;
        let (sessions, key, id) = (self.clone(), key.clone(), entry.id.clone());
        Ok(Ticket::new(move || sessions.with(&key, |kept| kept.replies.remove(&id)).ok().flatten()))
    }

    fn note(&self, key: &SessionKey, line: &Value) -> Result<(), StoreError> {
        let text = line.to_string();
        let (custom, made) = (line["customTitle"].as_str(), line["aiTitle"].as_str());
        let decoded = line::decode(text.as_bytes(), Path::new("")).map_err(|error| StoreError::Corrupt {
            path: key.id().into(),
            line: 0,
            problem: error.to_string(),
        })?;
        self.with(key, |kept| {
            kept.lines.push(decoded);
            // A title that a person gave outranks one that a model made.
            let title = custom.map(str::to_owned).or(kept.title.take());
            kept.title = title.or(made.map(str::to_owned));
        })
    }

    fn put_blob(&self, key: &SessionKey, content: &[u8]) -> Result<String, StoreError> {
        let name = blob::name(content);
        self.with(key, |kept| drop(kept.blobs.insert(name.clone(), content.to_vec())))?;
        Ok(name)
    }

    fn blob(&self, key: &SessionKey, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.all().get(key).and_then(|kept| kept.blobs.get(name).cloned()))
    }

    fn write_sidecar(&self, key: &SessionKey, sidecar: &Value) -> Result<(), StoreError> {
        Self::check(key)?;
        self.all().entry(key.clone()).or_default().sidecar = Some(sidecar.clone());
        Ok(())
    }

    fn sidecar(&self, key: &SessionKey) -> Result<Option<Value>, StoreError> {
        Ok(self.all().get(key).and_then(|kept| kept.sidecar.clone()))
    }

    fn children(&self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        let is_child = |other: &&SessionKey| {
            other.session == key.session
                && other.agents.len() == key.agents.len() + 1
                && other.agents.starts_with(&key.agents)
        };
        Ok(self.all().keys().filter(is_child).cloned().collect())
    }

    fn delete(&self, key: &SessionKey) -> Result<(), StoreError> {
        let mut all = self.all();
        let kept = all.get(key).ok_or_else(|| missing(key))?;
        if let Some(holder) = kept.holder() {
            return Err(StoreError::Locked { id: key.id().to_owned(), holder: holder.pid });
        }
        all.retain(|other, _| !(other.session == key.session && other.agents.starts_with(&key.agents)));
        Ok(())
    }

    fn outlives_process(&self) -> bool {
        false
    }
}

/// Appends to a session in memory.
#[derive(Debug)]
struct MemoryLog {
    sessions: MemorySessions,
    key: SessionKey,
    lease: u64,
    _alive: Arc<()>,
}

impl MemoryLog {
    fn fenced(&self) -> LogStoreError {
        LogStoreError::Fenced { place: format!("{} in memory", self.key.id()) }
    }
}

impl LogStore for MemoryLog {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        let appended = self.sessions.with(&self.key, |kept| {
            let is_holder = kept.lease == self.lease;
            if is_holder {
                kept.lines.extend(records.iter().cloned().map(Line::Record));
                kept.modified = SystemTime::now();
            }
            is_holder
        });
        // One that is gone was deleted by a later holder.
        if appended.unwrap_or(false) { Ok(()) } else { Err(self.fenced()) }
    }

    fn note(&mut self, line: &Value) -> Result<(), LogStoreError> {
        let place = || format!("{} in memory", self.key.id());
        let noted = self.sessions.note(&self.key, line);
        noted.map_err(|error| LogStoreError::Failed { place: place(), problem: error.to_string() })
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        Ok(())
    }
}

/// The inbox of a session in memory.
#[derive(Debug)]
struct MemoryInbox {
    sessions: MemorySessions,
    key: SessionKey,
    lease: u64,
    arrival: Arc<Notify>,
}

impl SessionInbox for MemoryInbox {
    fn take(&mut self) -> Vec<Item> {
        let lease = self.lease;
        let taken = self.sessions.with(&self.key, |kept| {
            let fresh = kept.entries.iter_mut().filter(|waiting| waiting.taken_by < lease);
            let take = |waiting: &mut Waiting| {
                waiting.taken_by = lease;
                Item::Entry(waiting.entry.clone())
            };
            fresh.map(take).collect()
        });
        taken.unwrap_or_default()
    }

    fn settle(&mut self, reply: InboxReply) -> Result<(), InboxError> {
        let lease = self.lease;
        let settled = self.sessions.with(&self.key, |kept| {
            let is_it = |waiting: &Waiting| waiting.entry.id == reply.id && waiting.taken_by == lease;
            if let Some(at) = kept.entries.iter().position(is_it) {
                kept.entries.remove(at);
                kept.replies.insert(reply.id.clone(), reply);
            }
        });
        settled.map_err(|_| InboxError::NoSession { path: self.key.id().into() })
    }

    fn arrived(&self) -> BoxFuture<'static, ()> {
        let (sessions, key, lease) = (self.sessions.clone(), self.key.clone(), self.lease);
        let arrival = Arc::clone(&self.arrival);
        async move {
            let waits =
                |kept: &mut MemorySession| kept.entries.iter().any(|waiting| waiting.taken_by < lease);
            if !sessions.with(&key, waits).unwrap_or(false) {
                arrival.notified().await;
            }
        }
        .boxed()
    }
}
