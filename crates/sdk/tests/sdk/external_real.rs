//! The real program behind the same interface: `QODERCLI_PATH`, or the one beside the tests in the target folder.

use std::path::PathBuf;

use qoder_agent_sdk::{
    Message, NoArguments, PermissionMode, PermissionResult, QoderAgentOptions, QoderSdkClient,
    create_sdk_mcp_server, query, tool,
};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, tool_results, within};

fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("QODERCLI_PATH") {
        return path.into();
    }
    let tests = std::env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("qodercli");
    assert!(
        built.exists(),
        "build the program first (cargo build -p qodercli), or name one with QODERCLI_PATH"
    );
    built
}

fn playing(place: &Place, replies: &serde_json::Value) -> QoderAgentOptions {
    place.playing(replies).cli_path(program())
}

#[tokio::test]
async fn a_question_is_answered_by_the_program() {
    let place = Place::new();
    let options = playing(&place, &json!([{ "text": "Hello." }]));
    let messages = all(query("Say hello.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "Hello.");
    assert!(matches!(&messages[0], Message::System(init) if init.subtype == "init"), "{messages:#?}");
}

#[tokio::test]
async fn tools_and_decisions_of_this_process_reach_the_program() {
    let place = Place::new();
    let replies = call_then_done("mcp__clock__now", &json!({}));
    let options = playing(&place, &replies);
    let now = tool("now", "Tells the time.", |_: NoArguments| async { "noon" });
    let options = options
        .mcp_server("clock", create_sdk_mcp_server("clock", "1.0.0", [now]).unwrap())
        .can_use_tool(|name, _, _| async move {
            if name == "mcp__clock__now" { PermissionResult::allow() } else { PermissionResult::deny("no") }
        });
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(tool_results(&messages), [("noon".to_owned(), false)]);
    assert_eq!(result(&messages).text(), "done");
}

#[tokio::test]
async fn a_conversation_can_be_changed_and_interrupted() {
    let place = Place::new();
    let replies = json!([{ "text": "one" }, { "text": "slow", "delayMs": 600_000 }, { "text": "three" }]);
    let options = playing(&place, &replies);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    client.query("One.").await.unwrap();
    assert_eq!(result(&all(client.receive_response()).await).text(), "one");
    within(client.set_permission_mode(PermissionMode::Plan)).await.unwrap();
    client.query("Two.").await.unwrap();
    let mut response = client.receive_response();
    within(futures::StreamExt::next(&mut response)).await.unwrap().unwrap();
    within(client.interrupt()).await.unwrap();
    let rest = all(response).await;
    assert_eq!(result(&rest).terminal_reason.as_deref(), Some("aborted_streaming"));
    within(client.disconnect()).await.unwrap();
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_told() {
    let place = Place::new();
    let options = playing(&place, &json!([]));
    let options = options.resume("123e4567-e89b-42d3-a456-426614174000");
    let items: Vec<_> = within(futures::StreamExt::collect(query("Go.", options).unwrap())).await;
    let told = items.iter().any(|item| match item {
        Ok(message) => message.as_result().is_some_and(|result| result.is_error),
        Err(error) => error.code() == "QODER_CLI_PROCESS_ERROR",
    });
    assert!(told, "{items:#?}");
}
