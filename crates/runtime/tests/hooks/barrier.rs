//! Effects wait for the barrier: while the record that announces one is not durable, no tool runs, no request leaves, no
//! background task starts, and no answer is confirmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_protocol::{ActionId, Answer};
use qoder_runtime::sessions::{FirstPrompt, OpenedSession};
use qoder_runtime::store::inbox::{InboxError, Ticket};
use qoder_runtime::store::jsonl::Durability;
use qoder_runtime::store::lease::Holder;
use qoder_runtime::store::line::{self, Line};
use qoder_runtime::store::{
    JsonlSessions, OpenSession, SessionKey, SessionLocation, SessionStore, StoreError, StoredSession, Take,
};
use qoder_types::{Actor, AskKind, ExternalResult, InboxEntry, Record, ToolResultContent};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::hooks::support::{SESSION, Stage, call, text};
use crate::sessions::support::{PATIENCE, booking, leave_for, question};

/// Holds the barriers back that follow a record of this kind, once.
#[derive(Debug)]
struct Gate {
    kind: &'static str,
    was_held: AtomicBool,
    is_held: watch::Sender<bool>,
    reached: Notify,
}

impl Gate {
    fn new(kind: &'static str) -> Arc<Self> {
        let (was_held, is_held, reached) = (AtomicBool::new(false), watch::Sender::new(false), Notify::new());
        Arc::new(Self { kind, was_held, is_held, reached })
    }

    fn open(&self) {
        self.is_held.send_replace(false);
    }
}

#[derive(Debug)]
struct Gated(JsonlSessions, Arc<Gate>);

struct GatedLog(Box<dyn LogStore>, Arc<Gate>);

impl LogStore for GatedLog {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        let is_it = records.iter().any(|record| line::kind(&record.body) == self.1.kind);
        if is_it && !self.1.was_held.swap(true, Ordering::SeqCst) {
            self.1.is_held.send_replace(true);
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
            let mut held = gate.is_held.subscribe();
            if *held.borrow_and_update() {
                gate.reached.notify_one();
                held.wait_for(|held| !held).await.unwrap();
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
    gated(stage, &Gate::new(""))
}

fn gated(stage: &Stage, gate: &Arc<Gate>) -> Arc<dyn SessionStore> {
    let sessions = JsonlSessions::new(stage.folder().to_path_buf(), Durability::Process);
    Arc::new(Gated(sessions, Arc::clone(gate)))
}

/// Runs a turn whose barrier after a record of this kind is held back. Answers with the kinds of the records that were
/// there meanwhile, whether the file `a.txt` was, and the outcomes of all calls in the end.
async fn held_back(kind: &'static str, replies: Value) -> (Vec<String>, bool, Vec<String>) {
    let stage = Stage::new(replies).rules(&["Write", "Bash"], &[]);
    let gate = Gate::new(kind);
    let store = gated(&stage, &gate);
    let location = SessionLocation::new(store, SessionKey::main(SESSION), stage.folder().join("outputs"));
    let looks = async {
        gate.reached.notified().await;
        // Time for an effect that does not wait.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let log = std::fs::read_to_string(stage.log()).unwrap();
        let is_there = stage.path("a.txt").exists();
        gate.open();
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

/// A session whose call waits for a result from outside, in a store whose barriers are held back once there is one.
async fn until_asked(gate: &Arc<Gate>) -> (Stage, OpenedSession) {
    let mut stage = booking().answering(true);
    stage.store = Some(gated(&stage, gate));
    let (opened, _heard) = stage.open(FirstPrompt::Text("go".to_owned()));
    question(&opened.handle, AskKind::External).await;
    (stage, opened)
}

#[tokio::test]
async fn no_answer_is_confirmed_to_a_handle_before_it_is_durable() {
    let gate = Gate::new("permission-answer");
    let (_stage, OpenedSession { handle, attachment }) = until_asked(&gate).await;
    let content = ToolResultContent::Text("seat 4A".to_owned());
    let answer = Answer::of_result(ExternalResult { content, is_error: false }, Actor::Host);
    let answering = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.answer(&ActionId::main("call_1"), answer).await })
    };
    tokio::time::timeout(PATIENCE, gate.reached.notified()).await.unwrap();
    // Time for a receipt that does not wait.
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!answering.is_finished(), "it was confirmed");
    gate.open();
    assert_eq!(answering.await.unwrap(), Ok(()));
    handle.close().await;
    drop(attachment);
}

#[tokio::test]
async fn no_entry_is_settled_before_what_it_led_to_is_durable() {
    let gate = Gate::new("permission-answer");
    let (stage, OpenedSession { handle, attachment }) = until_asked(&gate).await;
    let mut ticket =
        leave_for(&stage, json!({ "kind": "result", "toolUseId": "call_1", "content": "seat 4A" }));
    tokio::time::timeout(PATIENCE, gate.reached.notified()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(ticket.look(), None, "it was settled");
    gate.open();
    let settled = tokio::task::spawn_blocking(move || ticket.wait(PATIENCE)).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(settled.outcome).unwrap(), "accepted");
    handle.close().await;
    drop(attachment);
}
