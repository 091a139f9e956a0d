//! File checkpoints: the same session with the engine in process and with the real program, rewound by its own messages.

use qoder_agent_sdk::{QoderAgentOptions, QoderSdkClient, UserMessage, get_session_messages};
use serde_json::json;

use crate::external_real::program;
use crate::support::{Place, all, within};

const FIRST: &str = "c0ffee00-0000-4000-8000-000000000001";
const SECOND: &str = "c0ffee00-0000-4000-8000-000000000002";

/// The second message creates a file.
fn options(place: &Place) -> QoderAgentOptions {
    let replies = json!([
        { "text": "hello" },
        { "toolCalls": [{ "name": "Write", "input": { "file_path": "new.txt", "content": "one\ntwo\n" }, "id": "call_1" }] },
        { "text": "done", "repeat": true },
    ]);
    place.playing(&replies).allowed_tools(["Write"]).enable_file_checkpointing(true)
}

async fn ask(client: &QoderSdkClient, text: &str, uuid: &str) {
    client.query(UserMessage::new(text).with_uuid(uuid)).await.unwrap();
    all(client.receive_response()).await;
}

async fn goes_back(place: &Place, options: QoderAgentOptions) {
    let file = place.0.project().join("new.txt");
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    ask(&client, "Hi.", FIRST).await;
    ask(&client, "Write.", SECOND).await;
    assert!(file.exists());
    let preview = within(client.rewind_files(SECOND, true)).await.unwrap();
    assert!(preview.can_rewind && file.exists(), "{preview:?}");
    assert_eq!((preview.files_changed.len(), preview.insertions, preview.deletions), (1, 0, 2));
    assert!(!within(client.rewind_files("absent", true)).await.unwrap().can_rewind);
    let error = within(client.rewind_files("absent", false)).await.unwrap_err();
    assert_eq!(error.code(), "control_request");
    let report = within(client.rewind(SECOND, None, false)).await.unwrap();
    assert_eq!(report["messagesRemoved"], 4, "{report}");
    assert!(!file.exists());
    let id = client.session_id().unwrap().to_owned();
    within(client.disconnect()).await.unwrap();
    // The conversation is the one before the message, also for readers of the session.
    let left: Vec<String> = get_session_messages(&id, &place.sessions())
        .unwrap()
        .into_iter()
        .map(|message| message.kind)
        .collect();
    assert_eq!(left, ["user", "assistant"]);
}

#[tokio::test]
async fn the_engine_in_process_goes_back() {
    let place = Place::new();
    goes_back(&place, options(&place)).await;
}

#[tokio::test]
async fn the_program_goes_back() {
    let place = Place::new();
    goes_back(&place, options(&place).cli_path(program())).await;
}

#[tokio::test]
async fn checkpoints_need_a_session_that_is_kept() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(options(&place).persist_session(false));
    let error = within(client.connect(None)).await.unwrap_err();
    assert_eq!(error.code(), "session_no_place_for_checkpoints");
}
