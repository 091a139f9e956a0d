//! System inputs: text of the operator that the model reads before the next prompt. It opens no turn by itself.

use std::time::Duration;

use qoder_runtime::sessions::{FirstPrompt, OpenedSession};
use qoder_types::Message;
use qoder_types::record::InputAdmitted;
use serde_json::json;

use crate::hooks::support::{Stage, text};
use crate::sessions::support::{PATIENCE, leave_for, to_the_end};

fn replies() -> serde_json::Value {
    json!([text("first"), text("second")])
}

#[tokio::test]
async fn it_opens_no_turn_and_is_read_before_the_next_prompt() {
    let stage = Stage::new(replies());
    let (OpenedSession { handle, attachment }, heard) = stage.open(FirstPrompt::FromHost);
    handle.submit(InputAdmitted::system("note-1", Message::user("answer in Norwegian"))).unwrap();
    handle.submit(InputAdmitted::system("note-1", Message::user("sent twice"))).unwrap();
    let finished = handle.finished();
    drop((handle, attachment));
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    let ran = stage.ran(&finished, heard);
    assert!(ran.end.is_none(), "no turn");
    assert!(ran.of_type("model-request").is_empty());

    let ran = to_the_end(&stage, FirstPrompt::Text("hello".to_owned())).await;
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("first"));
    let said: Vec<bool> = ran.conversation.iter().map(|text| text.contains("answer in Norwegian")).collect();
    assert_eq!(said, [true, false, false], "{:?}", ran.conversation);
    assert!(ran.conversation[0].contains("operator"), "{}", ran.conversation[0]);
    assert!(ran.conversation[1].contains("hello"));
    let notice = ran.of_type("user")[0];
    assert_eq!((&notice["origin"], &notice["isMeta"]), (&json!("notice"), &json!(true)));
    let prompt = ran.of_type("user")[1];
    assert_eq!(prompt["parentUuid"], notice["uuid"], "one chain");

    // The model reads it once.
    let ran = to_the_end(&stage, FirstPrompt::Text("again".to_owned())).await;
    let told = ran.conversation.iter().filter(|text| text.contains("answer in Norwegian")).count();
    assert_eq!(told, 1, "{:?}", ran.conversation);
}

#[tokio::test]
async fn another_process_may_leave_one() {
    let stage = Stage::new(replies());
    let (OpenedSession { handle, attachment }, heard) = stage.open(FirstPrompt::FromHost);
    let message = json!({ "role": "user", "content": "the deadline moved" });
    let mut ticket = leave_for(&stage, json!({ "kind": "input", "origin": "system", "message": message }));
    let taken = async {
        while ticket.look().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, taken).await.unwrap();
    handle.submit(InputAdmitted::user("prompt-1", Message::user("and now"))).unwrap();
    let finished = handle.finished();
    drop((handle, attachment));
    let ran = stage.ran(&tokio::time::timeout(PATIENCE, finished).await.unwrap(), heard);
    assert_eq!(ran.of_type("turn-end").len(), 1);
    assert!(ran.conversation[0].contains("the deadline moved"), "{:?}", ran.conversation);
    assert!(ran.conversation[1].contains("and now"), "{:?}", ran.conversation);
}
