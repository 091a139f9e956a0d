//! Copies what is written to the logs of a session into a store. Entries and messages pass through here in one order:
//! entries are collected and handed over before the result of a turn is delivered, earlier when many wait, or at once if
//! asked for. A slow store delays nothing but results, and one that fails never stops the conversation: the batch is
//! tried again, then dropped, and a `mirror_error` message says so.

use std::collections::HashMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::config::home;
use qoder_runtime::layout;
use qoder_runtime::sessions::new_id;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::MessageSender;
use crate::callback::guarded;
use crate::error::Result;
use crate::messages::Message;
use crate::options::{OnStderr, QoderAgentOptions};
use crate::session_store::{SessionKey, SessionStore, SessionStoreFlush, SharedSessionStore};

/// How often an append is tried.
const ATTEMPTS: u32 = 3;
/// How long to wait before the second attempt; the third waits twice as long.
const RETRY: Duration = Duration::from_millis(200);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(60);
/// How long the end of a session waits for the store.
const CLOSING: Duration = Duration::from_secs(5);
/// When so many entries wait, they are handed over before the turn ends.
const BATCH_ENTRIES: usize = 500;
/// The same in bytes.
const BATCH_BYTES: usize = 1024 * 1024;
/// More is not kept for a store that is too slow.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// What passes through.
pub(crate) enum Item {
    /// A message for the reader of the session.
    Message(Result<Message>),
    /// Lines that were written to a log.
    Entries(PathBuf, Vec<Value>),
    /// Nothing follows.
    End,
}

/// Where lines of logs go.
#[derive(Clone)]
pub(crate) struct Copier(mpsc::UnboundedSender<Item>);

impl Copier {
    /// Takes lines that were just written to a log.
    pub(crate) fn take(&self, log: &Path, entries: &[Value]) {
        // When the courier is gone the session has ended.
        let _ = self.0.send(Item::Entries(log.to_path_buf(), entries.to_vec()));
    }
}

/// A courier at work.
pub(crate) struct Running {
    inbox: mpsc::UnboundedSender<Item>,
    task: JoinHandle<()>,
}

impl Running {
    /// Where lines of logs go.
    pub(crate) fn copier(&self) -> Copier {
        Copier(self.inbox.clone())
    }

    /// Where messages go while the courier is at work.
    pub(crate) fn inbox(&self) -> mpsc::UnboundedSender<Item> {
        self.inbox.clone()
    }

    /// Hands over what waits, if the store is quick, and ends.
    pub(crate) async fn end(self) {
        // It is there: it ends only after this.
        let _ = self.inbox.send(Item::End);
        let _ = self.task.await;
    }
}

/// Starts a courier that delivers to `direct`.
pub(crate) fn begin(
    options: &QoderAgentOptions,
    store: &SharedSessionStore,
    direct: MessageSender,
) -> Running {
    let (inbox, items) = mpsc::unbounded_channel();
    let courier = LogCopier {
        store: store.clone(),
        projects: layout::projects(&home::config_root(&options.environment())),
        is_eager: options.session_store_flush == SessionStoreFlush::Eager,
        direct,
        warn: options.stderr.clone(),
        keys: HashMap::new(),
        waiting: Waiting::default(),
    };
    Running { inbox, task: tokio::spawn(courier.run(items)) }
}

/// Entries that wait, by log, in the order in which the logs were first written to.
#[derive(Default)]
struct Waiting {
    batches: Vec<(SessionKey, Vec<Value>)>,
    entries: usize,
    bytes: usize,
}

struct LogCopier {
    store: SharedSessionStore,
    projects: PathBuf,
    is_eager: bool,
    direct: MessageSender,
    warn: Option<OnStderr>,
    /// The keys of logs that have been seen.
    keys: HashMap<PathBuf, Option<SessionKey>>,
    waiting: Waiting,
}

type Writing = BoxFuture<'static, Vec<Message>>;

impl LogCopier {
    async fn run(mut self, mut items: mpsc::UnboundedReceiver<Item>) {
        let mut writing: Option<Writing> = None;
        // A result that waits for the store, and with it everything after it.
        let mut held: Option<Result<Message>> = None;
        let mut ending: Option<Instant> = None;
        loop {
            if writing.is_none() {
                if self.is_due(held.is_some() || ending.is_some()) {
                    // One writer at a time keeps the entries of a log in their order.
                    writing = Some(write(self.store.clone(), take(&mut self.waiting).batches).boxed());
                } else if let Some(result) = held.take() {
                    self.direct.pass(result);
                } else if ending.is_some() {
                    return;
                }
            }
            tokio::select! {
                biased;
                problems = written(&mut writing) => {
                    writing = None;
                    problems.into_iter().for_each(|problem| self.direct.send(Ok(problem)));
                }
                item = items.recv(), if held.is_none() && ending.is_none() => match item {
                    Some(Item::Entries(log, entries)) => self.collect(log, entries),
                    Some(Item::Message(result @ Ok(Message::Result(_)))) => held = Some(result),
                    Some(Item::Message(message)) => self.direct.pass(message),
                    Some(Item::End) | None => ending = Some(Instant::now() + CLOSING),
                },
                () = until(ending), if ending.is_some() => return,
            }
        }
    }

    fn is_due(&self, all: bool) -> bool {
        let waiting = &self.waiting;
        let enough = waiting.entries >= BATCH_ENTRIES || waiting.bytes >= BATCH_BYTES;
        !waiting.batches.is_empty() && (all || self.is_eager || enough)
    }

    fn collect(&mut self, log: PathBuf, mut entries: Vec<Value>) {
        let projects = &self.projects;
        let key = self.keys.entry(log).or_insert_with_key(|log| {
            let key = key_of(projects, log);
            if let (None, Some(warn)) = (&key, &self.warn) {
                warn(&format!("warning: {} is not a session log; it is not copied", log.display()));
            }
            key
        });
        let Some(key) = key.clone() else { return };
        self.waiting.entries += entries.len();
        self.waiting.bytes += entries.iter().map(|entry| entry.to_string().len()).sum::<usize>();
        match self.waiting.batches.iter_mut().find(|(each, _)| *each == key) {
            Some((_, batch)) => batch.append(&mut entries),
            None => self.waiting.batches.push((key, entries)),
        }
        if self.waiting.bytes > MOST_BYTES {
            let problem = format!("the session store is too slow: more than {MOST_BYTES} bytes wait");
            for (key, _) in take(&mut self.waiting).batches {
                self.direct.send(Ok(mirror_error(&key, &problem)));
            }
        }
    }
}

async fn written(writing: &mut Option<Writing>) -> Vec<Message> {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Hands batches over; what is left are messages about those that could not be.
async fn write(store: SharedSessionStore, batches: Vec<(SessionKey, Vec<Value>)>) -> Vec<Message> {
    let mut problems = Vec::new();
    for (key, entries) in batches {
        if let Err(problem) = append(&store, &key, &entries).await {
            problems.push(mirror_error(&key, &problem));
        }
    }
    problems
}

async fn append(store: &SharedSessionStore, key: &SessionKey, entries: &[Value]) -> Result<(), String> {
    let mut problem = String::new();
    for attempt in 0..ATTEMPTS {
        tokio::time::sleep(RETRY * attempt).await;
        let asked = guarded("the session store", async {
            store.append(key, entries).await.map_err(|error| error.to_string())
        });
        match tokio::time::timeout(ATTEMPT, asked).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => problem = failure,
            // It may still be at work; another attempt would only add to that.
            Err(_) => {
                return Err(format!("the session store did not answer within {} s", ATTEMPT.as_secs()));
            }
        }
    }
    Err(problem)
}

fn mirror_error(key: &SessionKey, problem: &str) -> Message {
    Message::from_value(json!({
        "type": "system", "subtype": "mirror_error", "uuid": new_id(), "session_id": key.session_id,
        "key": key, "error": problem,
    }))
}

/// The key of a log, by its path.
fn key_of(projects: &Path, log: &Path) -> Option<SessionKey> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (projects, log) = (canonical(projects), canonical(log));
    let relative = log.strip_prefix(projects).ok()?.to_str()?;
    let parts: Vec<&str> = relative.strip_suffix(layout::LOG_ENDING)?.split('/').collect();
    match parts.as_slice() {
        [project, session] => Some(SessionKey::new(*project, *session)),
        [project, session, _, _, ..] => {
            Some(SessionKey::new(*project, *session).with_subpath(parts[2..].join("/")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_log_is_in_its_path() {
        let key =
            |log: &str| key_of(Path::new("/nowhere/projects"), &Path::new("/nowhere/projects").join(log));
        let main = SessionKey::new("-p", "s");
        assert_eq!(key("-p/s.jsonl"), Some(main.clone()));
        assert_eq!(key("-p/s/subagents/agent-a.jsonl"), Some(main.with_subpath("subagents/agent-a")));
        assert_eq!(key("-p/s/subagents/x/agent-a.jsonl"), Some(main.with_subpath("subagents/x/agent-a")));
        assert_eq!(key("-p/s/agent-a.jsonl"), None);
        assert_eq!(key("-p/s.txt"), None);
        assert_eq!(key_of(Path::new("/nowhere/projects"), Path::new("/elsewhere/-p/s.jsonl")), None);
    }
}
