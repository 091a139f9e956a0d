//! A session that stays open while its calls wait: answers and interrupts continue it, in the same process, and nothing is
//! driven in between.

use std::time::Duration;

use qoder_protocol::{ActionId, Answer};
use qoder_runtime::sessions::{FirstPrompt, OpenedSession, SessionHandle, SessionState};
use qoder_types::{Actor, ExternalResult, ToolResultContent};
use serde_json::json;

use crate::hooks::support::Stage;
use crate::sessions::support::{PATIENCE, booking, kinds, leave_for};

fn staying() -> Stage {
    let mut stage = booking();
    stage.options.stays_open = true;
    stage
}

/// Waits until the turn is not driven, with its question on record.
async fn parked(stage: &Stage, handle: &SessionHandle) {
    let waits = async {
        loop {
            let log = std::fs::read_to_string(&stage.paths().log).unwrap_or_default();
            let view = handle.view();
            if log.contains("permission-ask") && view.questions.is_empty() && view.state == SessionState::Idle
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap();
}

fn result() -> Answer {
    let content = ToolResultContent::Text("seat 4A".to_owned());
    Answer::of_result(ExternalResult { content, is_error: false }, Actor::Named("client".to_owned()))
}

#[tokio::test]
async fn an_answer_continues_the_turn_of_a_session_that_waits() {
    let stage = staying();
    let (OpenedSession { handle, attachment }, heard) = stage.open(FirstPrompt::Text("go".to_owned()));
    parked(&stage, &handle).await;
    handle.answer(&ActionId::main("call_1"), result()).await.unwrap();
    let finished = handle.finished();
    drop((handle, attachment));
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    assert!(finished.take_error().is_none());
    let ran = stage.ran(&finished, heard);
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("booked"));
    assert_eq!(kinds(&ran).iter().filter(|kind| **kind == "permission-ask").count(), 1);
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_of_a_session_that_waits() {
    let stage = staying();
    let (OpenedSession { handle, attachment }, heard) = stage.open(FirstPrompt::Text("go".to_owned()));
    parked(&stage, &handle).await;
    let mut ticket = leave_for(&stage, json!({ "kind": "interrupt" }));
    let reply = tokio::task::spawn_blocking(move || ticket.wait(PATIENCE)).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(reply.outcome).unwrap(), "accepted", "{}", reply.message);
    let finished = handle.finished();
    drop((handle, attachment));
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    let ran = stage.ran(&finished, heard);
    assert_eq!(ran.outcomes(), ["not_run"]);
    assert!(kinds(&ran).ends_with(&["turn-end"]), "{:?}", kinds(&ran));
    assert_eq!(ran.of_type("interrupt")[0]["by"], "worker-7");
}
