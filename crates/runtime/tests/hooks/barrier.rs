//! Effects wait for the barrier: while the record that announces one is not durable, no tool runs, no request leaves and no
//! background task starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_runtime::store::inbox::{InboxError, Ticket};
use qoder_runtime::store::jsonl::Durability;
use qoder_runtime::store::lease::Holder;
use qoder_runtime::store::line::{self, Line};
use qoder_runtime::store::{
    JsonlSessions, OpenSession, SessionKey, SessionLocation, SessionStore, StoreError, StoredSession, Take,
};
use qoder_types::{InboxEntry, Record};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::hooks::support::{SESSION, Stage, call, text};

/// Holds the barrier back that follows a record of this kind, once.
#[derive(Debug)]
struct Gate {
    kind: &'static str,
    is_due: AtomicBool,
    was_due: AtomicBool,
    reached: Notify,
    opened: Notify,
}

#[derive(Debug)]
struct Gated(JsonlSessions, Arc<Gate>);

struct GatedLog(Box<dyn LogStore>, Arc<Gate>);

impl LogStore for GatedLog {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        let is_it = records.iter().any(|record| line::kind(&record.body) == self.1.kind);
        if is_it && !self.1.was_due.swap(true, Ordering::SeqCst) {
            self.1.is_due.store(true, Ordering::SeqCst);
        }
        self.0.append(records)
    }

    fn note(&mut self, line: &Value) -> Result<(), LogStoreError> {
        self.0.note(line)
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        self.0.sync()
    }

    fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        let (gate, durable) = (Arc::clone(&self.1), self.0.barrier());
        async move {
            if gate.is_due.swap(false, Ordering::SeqCst) {
                gate.reached.notify_one();
                gate.opened.notified().await;
            }
            durable.await
        }
        .boxed()
    }
}

impl SessionStore for Gated {
    fn open(
        &self,
        key: &SessionKey,
        take: Take,
        visit: &mut dyn FnMut(Line),
    ) -> Result<OpenSession, StoreError> {
        let opened = self.0.open(key, take, visit)?;
        Ok(OpenSession { log: Box::new(GatedLog(opened.log, Arc::clone(&self.1))), ..opened })
    }

    fn read(&self, key: &SessionKey, visit: &mut dyn FnMut(Line)) -> Result<u64, StoreError> {
        self.0.read(key, visit)
    }

    fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        self.0.list()
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<Holder>, StoreError> {
        self.0.holder(key)
    }

    fn leave(&self, key: &SessionKey, entry: &InboxEntry) -> Result<Ticket, InboxError> {
        self.0.leave(key, entry)
    }

    fn note(&self, key: &SessionKey, line: &Value) -> Result<(), StoreError> {
        SessionStore::note(&self.0, key, line)
    }

    fn put_blob(&self, key: &SessionKey, content: &[u8]) -> Result<String, StoreError> {
        self.0.put_blob(key, content)
    }

    fn blob(&self, key: &SessionKey, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.blob(key, name)
    }

    fn write_sidecar(&self, key: &SessionKey, sidecar: &Value) -> Result<(), StoreError> {
        self.0.write_sidecar(key, sidecar)
    }

    fn sidecar(&self, key: &SessionKey) -> Result<Option<Value>, StoreError> {
        self.0.sidecar(key)
    }

    fn children(&self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        self.0.children(key)
    }

    fn delete(&self, key: &SessionKey) -> Result<(), StoreError> {
        self.0.delete(key)
    }
}

/// The sessions of a stage in a store that names no files.
pub fn without_files(stage: &Stage) -> Arc<dyn SessionStore> {
    let (is_due, was_due) = (AtomicBool::new(false), AtomicBool::new(false));
    let (reached, opened) = (Notify::new(), Notify::new());
    let never = Gate { kind: "", is_due, was_due, reached, opened };
    Arc::new(Gated(JsonlSessions::new(stage.folder().to_path_buf(), Durability::Process), Arc::new(never)))
}

/// Runs a turn whose barrier after a record of this kind is held back. Answers with the kinds of the records that were
/// there meanwhile, whether the file `a.txt` was, and the outcomes of all calls in the end.
async fn held_back(kind: &'static str, replies: Value) -> (Vec<String>, bool, Vec<String>) {
    let stage = Stage::new(replies).rules(&["Write", "Bash"], &[]);
    let (is_due, was_due) = (AtomicBool::new(false), AtomicBool::new(false));
    let (reached, opened) = (Notify::new(), Notify::new());
    let gate = Arc::new(Gate { kind, is_due, was_due, reached, opened });
    let sessions = JsonlSessions::new(stage.folder().to_path_buf(), Durability::Process);
    let store = Arc::new(Gated(sessions, Arc::clone(&gate)));
    let location = SessionLocation::new(store, SessionKey::main(SESSION), stage.folder().join("outputs"));
    let looks = async {
        gate.reached.notified().await;
        // Time for an effect that does not wait.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let log = std::fs::read_to_string(stage.log()).unwrap();
        let is_there = stage.path("a.txt").exists();
        gate.opened.notify_one();
        (log, is_there)
    };
    let (ran, (log, is_there)) = futures::join!(stage.run_in(location, &["go"]), looks);
    let kinds = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone());
    let kinds: Vec<String> = kinds.map(|kind| kind.as_str().unwrap().to_owned()).collect();
    (kinds, is_there, ran.outcomes())
}

fn writes() -> Value {
    json!([call("Write", json!({"file_path": "a.txt", "content": "hi"})), text("done")])
}

#[tokio::test]
async fn no_request_leaves_before_it_is_durable() {
    let (kinds, _, outcomes) = held_back("model-request", writes()).await;
    assert_eq!(kinds.last().map(String::as_str), Some("model-request"));
    assert!(!kinds.contains(&"assistant".to_owned()), "{kinds:?}");
    assert_eq!(outcomes, ["completed"], "it continues then");
}

#[tokio::test]
async fn no_tool_runs_before_its_start_is_durable() {
    let (kinds, is_there, outcomes) = held_back("tool-start", writes()).await;
    assert_eq!(kinds.last().map(String::as_str), Some("tool-start"));
    assert!(!is_there, "the file was written");
    assert_eq!(outcomes, ["completed"], "it continues then");
}

#[tokio::test]
async fn no_background_task_starts_before_its_start_is_durable() {
    let command = json!({"command": "touch a.txt", "run_in_background": true});
    let (kinds, is_there, outcomes) =
        held_back("task-start", json!([call("Bash", command), text("done")])).await;
    assert!(kinds.contains(&"task-start".to_owned()), "{kinds:?}");
    assert!(!is_there, "the command has run");
    assert_eq!(outcomes, ["completed"], "it continues then");
}
