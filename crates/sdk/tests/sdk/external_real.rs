//! The real program behind the same interface: `QODERCLI_PATH`, or the one beside the tests in the target folder.

use std::path::PathBuf;

use qoder_agent_sdk::{
    HookEvent, HookJsonOutput, HookMatcher, Message, ModelPolicyResult, NoArguments, PermissionMode,
    PermissionResult, QoderAgentOptions, QoderSdkClient, create_sdk_mcp_server, query, tool,
};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, tool_results, within};

/// The program.
pub fn program() -> PathBuf {
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
    let now = tool("now", "Returns the time.", |_: NoArguments| async { "noon" });
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

#[tokio::test]
async fn hooks_of_this_process_stop_calls_of_the_program() {
    let place = Place::new();
    let replies = call_then_done("Write", &json!({ "file_path": "a.txt", "content": "x" }));
    let guard =
        HookMatcher::for_tools("Write").hook(|_, _, _| async { HookJsonOutput::deny("not on Fridays") });
    let options = playing(&place, &replies).allowed_tools(["Write"]).hook(HookEvent::PreToolUse, guard);
    let messages = all(query("Go.", options).unwrap()).await;
    let (text, failed) = tool_results(&messages).remove(0);
    assert!(failed && text.contains("not on Fridays"), "{text}");
    assert!(!place.0.project().join("a.txt").exists());
}

#[tokio::test]
async fn this_process_chooses_the_model_of_the_program() {
    let place = Place::new();
    let chosen = place.playbook(&json!([{ "text": "from the chosen model" }]));
    let options = place.options().cli_path(program()).model("offline").resolve_model(move |_| {
        let chosen = chosen.clone();
        async move { ModelPolicyResult::model(chosen) }
    });
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "from the chosen model");
}

#[tokio::test]
async fn a_program_says_how_it_is_doing() {
    let place = Place::new();
    let now = tool("now", "Returns the time.", |_: NoArguments| async { "noon" });
    let options = playing(&place, &json!([{ "text": "one", "chunks": 3 }]))
        .include_partial_messages(true)
        .mcp_server("clock", create_sdk_mcp_server("clock", "1.0.0", [now]).unwrap());
    let mut client = QoderSdkClient::new(options);
    within(client.connect(Some("Go.".into()))).await.unwrap();
    let messages = all(client.receive_response()).await;
    let pieces = messages.iter().filter_map(|message| match message {
        Message::StreamEvent(event) => event.text(),
        _ => None,
    });
    assert_eq!(pieces.collect::<String>(), "one");
    let status = within(client.get_mcp_status()).await.unwrap();
    assert_eq!((status[0].name.as_str(), status[0].status.as_str()), ("clock", "connected"));
    assert!(within(client.get_context_usage()).await.unwrap().total_tokens > 0);
    assert_eq!(client.supported_agents()[0].name, "general-purpose");
    let error = within(client.rewind_files("u", false)).await.unwrap_err();
    assert_eq!(error.code(), "control_request");
    within(client.disconnect()).await.unwrap();
    assert_eq!(qoder_agent_sdk::list_sessions(&place.sessions()).unwrap().len(), 1);
}
