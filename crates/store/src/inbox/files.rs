//! The inbox in files: a folder beside the log with one file an entry, named by its time and id. The holder of the lease
//! touches it only once the session has run for a moment, so that a short run pays nothing for it.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_types::{InboxEntry, InboxOutcome, InboxReply};
use serde_json::Value;
use tokio::time::Instant;

use super::{InboxError, Item, LARGEST_ENTRY, MOST_WAITING, SessionInbox, Ticket, checked, is_plain_id};
use crate::layout::SessionPaths;
use crate::private_folder::{PrivateFolder, is_unfinished};
use crate::watch::{Wanted, Watch};

/// The folder of replies, in the inbox.
const REPLIES: &str = "replies";
/// The folder of what was refused, in the inbox.
const REFUSED: &str = "refused";
/// How names of entries and replies end.
const ENDING: &str = ".json";
/// The most files that are kept of what was refused.
const MOST_REFUSED: usize = 16;
/// Entries that one look takes; the next look takes more.
const MOST_AT_ONCE: usize = 64;
/// Replies that were not fetched are kept for this long.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a session runs before its inbox is looked at.
const QUIET_START: Duration = Duration::from_millis(20);

/// Leaves an entry for the process that drives the session, or will. It is there whole or not at all, also after a loss
/// of power.
pub fn leave(paths: &SessionPaths, entry: &InboxEntry) -> Result<Ticket, InboxError> {
    let text = checked(entry)?;
    if !paths.log.is_file() {
        return Err(InboxError::NoSession { path: paths.log.clone() });
    }
    let path = paths.inbox();
    crate::folders::create(&paths.side).map_err(|error| InboxError::io(&path, &error))?;
    let folder = PrivateFolder::create(&path).map_err(|error| InboxError::folder(&path, error))?;
    let waiting = folder.names().map_err(|error| InboxError::io(&path, &error))?;
    if waiting.len() >= MOST_WAITING {
        return Err(InboxError::Full { most: MOST_WAITING });
    }
    let name = format!("{:020}-{}{ENDING}", arrival_number(), entry.id);
    folder.write(OsStr::new(&name), &text).map_err(|error| InboxError::io(&path, &error))?;
    let id = entry.id.clone();
    Ok(Ticket::new(move || fetch_reply(&path, &id)))
}

/// Takes an entry back. Only the holder of the lease may: no other process can be about to obey it.
pub fn withdraw(paths: &SessionPaths, id: &str) -> Result<(), InboxError> {
    let path = paths.inbox();
    let fault = |error: std::io::Error| InboxError::io(&path, &error);
    let Some(folder) = PrivateFolder::open(&path).map_err(|error| InboxError::folder(&path, error))? else {
        return Ok(());
    };
    for name in folder.names().map_err(fault)? {
        if id_of(&name) == Some(id) {
            folder.remove(&name).map_err(fault)?;
        }
    }
    Ok(())
}

/// Nanoseconds since 1970, and later for every later call in this process.
fn arrival_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let last = LAST.fetch_max(now, Ordering::Relaxed);
    if last < now { now } else { LAST.fetch_add(1, Ordering::Relaxed) + 1 }
}

fn fetch_reply(inbox: &Path, id: &str) -> Option<InboxReply> {
    let replies = PrivateFolder::open(inbox).ok()??.inner(REPLIES).ok()??;
    let name = OsString::from(format!("{id}{ENDING}"));
    let reply = serde_json::from_slice(&replies.read(&name, LARGEST_ENTRY).ok()?).ok()?;
    // One that cannot be removed is removed when it is old.
    let _ = replies.remove(&name);
    Some(reply)
}

/// The inbox of a session in files, for the holder of its lease.
#[derive(Debug)]
pub struct Inbox {
    path: PathBuf,
    side: PathBuf,
    /// Files that were looked at.
    seen: Arc<Mutex<HashSet<OsString>>>,
    /// The files of entries that are not settled, by their ids.
    open: HashMap<String, Vec<OsString>>,
    is_tidy: bool,
    /// The last complaint about the folder itself.
    complaint: Option<String>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    opened: Instant,
    watch: Mutex<Option<Arc<Watch>>>,
    /// True when a look has left something.
    has_more: AtomicBool,
}

impl Inbox {
    /// The inbox of a session whose lease is held. Nothing is read yet.
    #[must_use]
    pub fn open(paths: &SessionPaths) -> Self {
        let shared =
            Shared { opened: Instant::now(), watch: Mutex::new(None), has_more: AtomicBool::new(false) };
        Self {
            path: paths.inbox(),
            side: paths.side.clone(),
            seen: Arc::default(),
            open: HashMap::new(),
            is_tidy: false,
            complaint: None,
            shared: Arc::new(shared),
        }
    }

    /// What arrived since the last call, in order: each file once. What is not an entry is moved out of the way.
    pub fn take(&mut self) -> Vec<Item> {
        self.shared.has_more.store(false, Ordering::Relaxed);
        let folder = match PrivateFolder::open(&self.path) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Vec::new(),
            Err(error) => return self.complain(&InboxError::folder(&self.path, error)),
        };
        if !std::mem::replace(&mut self.is_tidy, true) {
            tidy(&folder);
        }
        let names = match folder.names() {
            Ok(names) => names,
            Err(error) => return self.complain(&InboxError::io(&self.path, &error)),
        };
        self.complaint = None;
        let mut items = Vec::new();
        for name in names.iter().filter(|name| *name != REPLIES && *name != REFUSED) {
            if self.seen().contains(name) {
                continue;
            }
            if items.len() >= MOST_AT_ONCE {
                self.shared.has_more.store(true, Ordering::Relaxed);
                break;
            }
            items.extend(self.look_at(&folder, name));
        }
        // Names of files that are gone need not be remembered.
        self.seen().retain(|name| names.binary_search(name).is_ok());
        items
    }

    /// Says what became of an entry and removes it. To be called after what it led to is durable: whatever happens
    /// before, the entry arrives again at the next holder.
    pub fn settle(&mut self, reply: &InboxReply) -> Result<(), InboxError> {
        let Some(names) = self.open.get(&reply.id) else { return Ok(()) };
        let fault = |error: std::io::Error| InboxError::io(&self.path, &error);
        let opened =
            PrivateFolder::open(&self.path).map_err(|error| InboxError::folder(&self.path, error))?;
        // Without the folder no sender waits.
        if let Some(folder) = opened {
            write_reply(&folder, reply)?;
            for name in names {
                folder.remove(name).map_err(fault)?;
            }
        }
        self.open.remove(&reply.id);
        Ok(())
    }

    /// Completes when something may have arrived. Dropping it loses nothing; the folder is not touched before the session
    /// has run for a moment.
    pub fn arrived(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        let (path, side, seen) = (self.path.clone(), self.side.clone(), Arc::clone(&self.seen));
        async move {
            tokio::time::sleep_until(shared.opened + QUIET_START).await;
            if shared.has_more.load(Ordering::Relaxed) {
                return;
            }
            let (watch, is_new) = shared.watch(&path, &side);
            if is_new && has_news(&path, &seen) {
                return;
            }
            watch.changed().await;
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<OsString>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once what is wrong with the folder.
    fn complain(&mut self, error: &InboxError) -> Vec<Item> {
        let reason = error.to_string();
        if self.complaint.as_ref() == Some(&reason) {
            return Vec::new();
        }
        self.complaint = Some(reason.clone());
        vec![Item::Refused { name: self.path.display().to_string(), reason }]
    }

    /// Looks at one file. An entry that waits already under another name is no news.
    fn look_at(&mut self, folder: &PrivateFolder, name: &OsStr) -> Option<Item> {
        self.seen().insert(name.to_owned());
        let reason = match read_entry(folder, name) {
            Ok(entry) => {
                let names = self.open.entry(entry.id.clone()).or_default();
                names.push(name.to_owned());
                return (names.len() == 1).then_some(Item::Entry(entry));
            }
            // It went away by itself.
            Err(_) if !folder.has(name) => return None,
            Err(reason) => reason,
        };
        set_aside(folder, name);
        if let Some(id) = id_of(name).filter(|id| !self.open.contains_key(*id)) {
            let (id, message) = (id.to_owned(), reason.clone());
            let reply = InboxReply { id, outcome: InboxOutcome::Refused, message, details: Value::Null };
            // When this fails, the sender times out.
            let _ = write_reply(folder, &reply);
        }
        Some(Item::Refused { name: name.to_string_lossy().into_owned(), reason })
    }
}

impl SessionInbox for Inbox {
    fn take(&mut self) -> Vec<Item> {
        Self::take(self)
    }

    fn settle(&mut self, reply: InboxReply) -> Result<(), InboxError> {
        Self::settle(self, &reply)
    }

    fn arrived(&self) -> BoxFuture<'static, ()> {
        Self::arrived(self).boxed()
    }
}

impl Shared {
    /// The watch of the inbox, or of the folder in which it will appear; and whether it is a new one.
    fn watch(&self, path: &Path, side: &Path) -> (Arc<Watch>, bool) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let there = path.is_dir();
        match watch.as_ref().filter(|watch| watch.is_of(path) == there && !watch.is_over()) {
            Some(watch) => (Arc::clone(watch), false),
            None => {
                let place = if there { path } else { side };
                let fresh = Arc::new(Watch::new(place, Wanted::Names));
                *watch = Some(Arc::clone(&fresh));
                (fresh, true)
            }
        }
    }
}

/// True when a file is there that was not looked at.
fn has_news(path: &Path, seen: &Mutex<HashSet<OsString>>) -> bool {
    let Ok(Some(folder)) = PrivateFolder::open(path) else { return path.symlink_metadata().is_ok() };
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let is_news = |name: &OsString| name != REPLIES && name != REFUSED && !seen.contains(name);
    folder.names().is_ok_and(|names| names.iter().any(is_news))
}

/// The id in an entry's name.
fn id_of(name: &OsStr) -> Option<&str> {
    let (number, id) = name.to_str()?.strip_suffix(ENDING)?.split_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && is_plain_id(id)).then_some(id)
}

fn read_entry(folder: &PrivateFolder, name: &OsStr) -> Result<InboxEntry, String> {
    let id = id_of(name).ok_or("its name is not that of an entry")?;
    let text = folder.read(name, LARGEST_ENTRY)?;
    let entry: InboxEntry =
        serde_json::from_slice(&text).map_err(|error| format!("it is not a valid entry ({error})"))?;
    if entry.id != id {
        return Err("its ID is not the one in its name".to_owned());
    }
    Ok(entry)
}

fn write_reply(folder: &PrivateFolder, reply: &InboxReply) -> Result<(), InboxError> {
    let path = folder.path();
    let replies = folder.create_inner(REPLIES).map_err(|error| InboxError::folder(path, error))?;
    let text =
        serde_json::to_vec(reply).map_err(|error| InboxError::Unwritable { problem: error.to_string() })?;
    let name = OsString::from(format!("{}{ENDING}", reply.id));
    replies.write(&name, &text).map_err(|error| InboxError::io(path, &error))
}

/// Moves what is not an entry out of the way; the oldest of it goes. Where that fails it stays and is not looked at again.
fn set_aside(folder: &PrivateFolder, name: &OsStr) {
    let Ok(refused) = folder.create_inner(REFUSED) else { return };
    let kept = refused.names().unwrap_or_default();
    let over = (kept.len() + 1).saturating_sub(MOST_REFUSED);
    let made_room = kept.iter().take(over).all(|old| refused.remove(old).is_ok());
    // A folder that cannot be emptied keeps what it has.
    let _ = if made_room { folder.move_into(name, &refused) } else { folder.remove(name) };
}

/// Removes replies that were not fetched and files that were never completed.
fn tidy(folder: &PrivateFolder) {
    // What stays harms nothing.
    let _ = folder.remove_old(STALE, is_unfinished);
    if let Ok(Some(replies)) = folder.inner(REPLIES) {
        let _ = replies.remove_old(STALE, |_| true);
    }
}
