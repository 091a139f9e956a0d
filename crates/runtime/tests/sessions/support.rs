//! Short ways to let a session wait, to leave something for it as another process does, and to continue it.

use std::sync::Arc;
use std::time::Duration;

use qoder_protocol::Question;
use qoder_runtime::error::{DriveError, WaitingCall};
use qoder_runtime::sessions::{FirstPrompt, OpenedSession, SessionHandle};
use qoder_runtime::store::inbox::{Ticket, leave};
use qoder_types::{AskKind, InboxBody, InboxEntry, ToolDefinition};
use serde_json::{Value, json};

use crate::hooks::support::{Ran, Stage, call, text};

/// A guard against hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The tools of a client.
pub fn external_tools() -> Vec<ToolDefinition> {
    vec![ToolDefinition {
        name: "book_flight".to_owned(),
        description: "Books a flight.".into(),
        input_schema:
            json!({ "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"] })
                .into(),
    }]
}

/// A session whose model calls the client's tool once.
pub fn booking() -> Stage {
    let mut stage = Stage::new(json!([call("book_flight", json!({ "to": "Oslo" })), text("booked")]));
    stage.options.external_tools = external_tools();
    stage
}

/// A session whose questions wait.
pub fn parking(replies: Value) -> Stage {
    let mut stage = Stage::new(replies);
    stage.options.settings = Some(json!({ "permissions": { "unattended": "park" } }).to_string());
    stage
}

/// Drives a session until it ends; answers with the calls that wait.
pub async fn until_it_waits(stage: &Stage, first: FirstPrompt) -> Vec<WaitingCall> {
    let (ran, waiting) = drive(stage, first).await;
    assert!(!waiting.is_empty(), "nothing waits: {:?}", ran.end);
    waiting
}

/// Drives a session to its end, which nothing may keep it from.
pub async fn to_the_end(stage: &Stage, first: FirstPrompt) -> Ran {
    let (ran, waiting) = drive(stage, first).await;
    assert_eq!(waiting, []);
    ran
}

async fn drive(stage: &Stage, first: FirstPrompt) -> (Ran, Vec<WaitingCall>) {
    let (OpenedSession { handle, attachment }, heard) = stage.open(first);
    let finished = handle.finished();
    drop(handle);
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    drop(attachment);
    let waiting = match finished.take_error() {
        None => Vec::new(),
        Some(DriveError::Waiting(calls)) => calls,
        Some(error) => panic!("{error}"),
    };
    (stage.ran(&finished, heard), waiting)
}

/// Leaves something in the inbox of the session, as another process does.
pub fn leave_for(stage: &Stage, body: Value) -> Ticket {
    let body: InboxBody = serde_json::from_value(body).unwrap();
    let id = qoder_runtime::sessions::new_id();
    let at = qoder_runtime::sessions::timestamp();
    leave(&stage.paths(), &InboxEntry { id, at, by: "worker-7".to_owned(), body }).unwrap()
}

/// Waits until a question of this kind is open.
pub async fn question(handle: &SessionHandle, kind: AskKind) -> Arc<Question> {
    let open = async {
        loop {
            let questions = handle.view().questions;
            if let Some(question) = questions.into_iter().find(|question| question.kind == kind) {
                return question;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, open).await.unwrap()
}

/// The types of the records, in order.
pub fn kinds(ran: &Ran) -> Vec<&str> {
    ran.records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}
