//! A conversation: turns of one session, and what it can be asked while it runs.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{
    Message, NoArguments, PermissionMode, QoderSdkClient, ToolAnnotations, UserMessage,
    create_sdk_mcp_server, tool,
};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, tool_results, within};

pub(crate) async fn ask(client: &QoderSdkClient, prompt: &str) -> Vec<Message> {
    client.query(prompt).await.unwrap();
    all(client.receive_response()).await
}

#[tokio::test]
async fn turns_follow_one_another_in_one_session() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([{ "text": "one" }, { "text": "two" }])));
    within(client.connect(None)).await.unwrap();
    let id = client.session_id().unwrap().to_owned();
    let (first, second) = (ask(&client, "One.").await, ask(&client, "Two.").await);
    assert_eq!((result(&first).text(), result(&second).text()), ("one", "two"));
    assert_eq!(
        (result(&first).session_id.as_str(), result(&second).session_id.as_str()),
        (id.as_str(), id.as_str())
    );
    within(client.disconnect()).await.unwrap();
    assert!(!client.is_connected());
}

#[tokio::test]
async fn connecting_may_ask_at_once() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([{ "text": "one" }])));
    within(client.connect(Some("Hi.".into()))).await.unwrap();
    assert_eq!(result(&all(client.receive_response()).await).text(), "one");
}

#[tokio::test]
async fn a_client_that_is_not_connected_says_so() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([])));
    assert_eq!(client.query("Hi.").await.unwrap_err().code(), "not_connected");
    assert_eq!(client.interrupt().await.unwrap_err().code(), "not_connected");
    assert_eq!(client.disconnect().await.unwrap_err().code(), "not_connected");
    let item = client.receive_messages().next().await.unwrap();
    assert_eq!(item.unwrap_err().code(), "not_connected");
    assert!(client.supported_agents().is_empty());
    within(client.connect(None)).await.unwrap();
    assert_eq!(client.connect(None).await.unwrap_err().code(), "already_connected");
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_the_session_goes_on() {
    let place = Place::new();
    let replies = json!([
        { "when": { "contains": "Two." }, "text": "again" }, { "text": "slow", "delayMs": 600_000, "repeat": true },
    ]);
    let mut client = QoderSdkClient::new(place.playing(&replies));
    within(client.connect(None)).await.unwrap();
    client.query("One.").await.unwrap();
    let mut response = client.receive_response();
    let first = within(response.next()).await.unwrap().unwrap();
    assert!(matches!(first, Message::System(_)), "{first:?}");
    client.query(UserMessage::new("Two.").with_uuid("two")).await.unwrap();
    let receipt = within(client.interrupt()).await.unwrap();
    assert_eq!(receipt.still_queued, ["two"]);
    let rest = all(response).await;
    assert_eq!(result(&rest).terminal_reason.as_deref(), Some("aborted_streaming"));
    let next = all(client.receive_response()).await;
    assert_eq!(result(&next).text(), "again", "{next:#?}");
}

#[tokio::test]
async fn a_message_that_waits_can_be_taken_back() {
    let place = Place::new();
    let replies = json!([{ "text": "slow", "delayMs": 600_000 }]);
    let mut client = QoderSdkClient::new(place.playing(&replies));
    within(client.connect(Some("One.".into()))).await.unwrap();
    within(client.receive_response().next()).await.unwrap().unwrap();
    client.query(UserMessage::new("Two.").with_uuid("two")).await.unwrap();
    assert!(within(client.cancel_async_message("two")).await.unwrap());
    assert!(!within(client.cancel_async_message("two")).await.unwrap());
    within(client.disconnect()).await.unwrap();
}

#[tokio::test]
async fn the_model_can_be_changed_between_turns() {
    let place = Place::new();
    let other = place.playbook(&json!([{ "text": "from the other model", "repeat": true }]));
    let mut client =
        QoderSdkClient::new(place.playing(&json!([{ "text": "from the first", "repeat": true }])));
    within(client.connect(None)).await.unwrap();
    assert_eq!(result(&ask(&client, "One.").await).text(), "from the first");
    within(client.set_model(Some(&other))).await.unwrap();
    assert_eq!(result(&ask(&client, "Two.").await).text(), "from the other model");
    within(client.set_model(None)).await.unwrap();
    assert_eq!(result(&ask(&client, "Three.").await).text(), "from the first");
    let problem = within(client.set_model(Some("scripted:nowhere"))).await.unwrap_err();
    assert_eq!(problem.code(), "control_request");
    assert!(problem.to_string().contains("nowhere"), "{problem}");
}

#[tokio::test]
async fn the_mode_can_be_changed_between_turns() {
    let place = Place::new();
    let write = json!({ "name": "Write", "input": { "file_path": "a.txt", "content": "x" } });
    let replies = json!([
        { "when": { "contains": "Write" }, "toolCalls": [write], "repeat": true }, { "text": "done", "repeat": true },
    ]);
    let mut client = QoderSdkClient::new(place.playing(&replies));
    within(client.connect(None)).await.unwrap();
    assert!(tool_results(&ask(&client, "Write.").await)[0].1);
    within(client.set_permission_mode(PermissionMode::AcceptEdits)).await.unwrap();
    assert!(!tool_results(&ask(&client, "Write.").await)[0].1);
    let error = client.set_permission_mode(PermissionMode::BypassPermissions).await.unwrap_err();
    assert_eq!(error.code(), "invalid_option");
}

#[tokio::test]
async fn settings_can_be_laid_on_top() {
    let place = Place::new();
    let write = json!({ "name": "Write", "input": { "file_path": "a.txt", "content": "x" } });
    let replies = json!([
        { "when": { "contains": "Write" }, "toolCalls": [write], "repeat": true }, { "text": "done", "repeat": true },
    ]);
    let mut client = QoderSdkClient::new(place.playing(&replies));
    within(client.connect(None)).await.unwrap();
    let settings = json!({ "permissions": { "allow": ["Write"] } });
    within(client.apply_flag_settings(settings.as_object().unwrap().clone())).await.unwrap();
    assert!(!tool_results(&ask(&client, "Write.").await)[0].1);
    let wrong = json!({ "permissions": { "allow": "Write" } });
    let error = within(client.apply_flag_settings(wrong.as_object().unwrap().clone())).await.unwrap_err();
    assert_eq!(error.code(), "control_request");
}

#[tokio::test]
async fn servers_can_be_looked_at_and_switched() {
    let place = Place::new();
    let find = tool("find", "Finds.", |_: NoArguments| async { "found" })
        .with_annotations(ToolAnnotations::default().read_only(true).idempotent(true).title("Find"));
    let server = create_sdk_mcp_server("kb", "2.0.0", [find]).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    let options = place
        .playing(&call_then_done("mcp__kb__find", &json!({})))
        .mcp_server("kb", server)
        .on_mcp_status_change(move |rows| {
            list.lock().unwrap().extend(rows.into_iter().map(|row| row.status))
        });
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    let status = loop {
        let status = within(client.get_mcp_status()).await.unwrap().remove(0);
        if status.status == "connected" {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(status.server_info, Some(json!({ "name": "kb", "version": "2.0.0" })));
    assert_eq!(
        serde_json::to_value(&status.tools).unwrap(),
        json!([{ "name": "find", "description": "Finds.", "annotations": { "readOnly": true } }])
    );
    within(client.toggle_mcp_server("kb", false)).await.unwrap();
    assert_eq!(within(client.get_mcp_status()).await.unwrap()[0].status, "disabled");
    within(client.reconnect_mcp_server("kb")).await.unwrap();
    assert_eq!(within(client.get_mcp_status()).await.unwrap()[0].status, "connected");
    let error = within(client.reconnect_mcp_server("other")).await.unwrap_err();
    assert_eq!(error.to_string(), "mcp_reconnect: there is no MCP server named `other`; known are: kb");
    let all = ["connecting", "connected", "disabled", "connecting", "connected"];
    assert_eq!(*heard.lock().unwrap(), all);
    let messages = ask(&client, "Go.").await;
    let told = messages.iter().filter(|message| match message {
        Message::System(system) => system.subtype == "mcp_status_change",
        _ => false,
    });
    assert_eq!(told.count(), all.len());
}

#[tokio::test]
async fn a_session_says_what_it_is_and_how_full_it_is() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([{ "text": "one" }])));
    within(client.connect(None)).await.unwrap();
    assert_eq!(client.get_server_info().unwrap()["protocol_version"], 1);
    assert_eq!(client.supported_agents()[0].name, "general-purpose");
    ask(&client, "Hi.").await;
    let usage = within(client.get_context_usage()).await.unwrap();
    assert!(usage.total_tokens > 0 && usage.max_tokens > usage.total_tokens, "{usage:?}");
    assert_eq!(within(client.get_usage_info()).await.unwrap(), None);
    assert_eq!(within(client.list_byok_providers()).await, Some(Vec::new()));
    let folder = place.0.home().display().to_string();
    assert_eq!(within(client.add_directories(&[&folder])).await.unwrap(), [folder]);
    assert!(!within(client.background_tasks(None)).await.unwrap());
}

#[tokio::test]
async fn what_the_engine_in_process_cannot_do_is_named() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([])));
    within(client.connect(None)).await.unwrap();
    let error = within(client.set_goal_max_turns(Some(3))).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("unsupported", "set_goal_max_turns is not supported by the engine in process")
    );
    let error = within(client.stop_task("bash_9")).await.unwrap_err();
    assert_eq!(error.code(), "control_request");
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_an_error_of_connect() {
    let place = Place::new();
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let mut client = QoderSdkClient::new(place.playing(&json!([])).resume(id));
    let error = within(client.connect(None)).await.unwrap_err();
    assert_eq!(error.code(), "session_not_found");
    assert_eq!(error.hint(), "list_sessions() shows the sessions of a project");
    assert!(!client.is_connected());
}
