//! The protocol with an external program, whose part a shell script plays: what it is sent, what its questions are
//! answered with, and what its end means.

use std::os::unix::fs::PermissionsExt;

use futures::StreamExt;
use qoder_agent_sdk::{
    ElicitationResult, HookEvent, HookJsonOutput, HookMatcher, ModelPolicyResult, NoArguments,
    PermissionResult, QoderAgentOptions, QoderSdkClient, access_token, create_sdk_mcp_server, query, tool,
};
use serde_json::{Value, json};

use crate::support::{Place, all, result, within};

const READY: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"protocol_version":1,"qodercli_version":"0.1.0","agents":[{"name":"reviewer","description":"Reviews."}],"session_id":"s"}}}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"session_id":"s","result":"bye"}"#;

/// A program that runs these lines of shell; `say`, `hear` and `keep` speak the protocol.
fn script(place: &Place, lines: &str) -> QoderAgentOptions {
    let text = format!(
        "#!/bin/sh\nsay() {{ printf '%s\\n' \"$1\"; }}\nhear() {{ IFS= read -r line; }}\n\
         keep() {{ hear; printf '%s\\n' \"$line\" >> heard.jsonl; }}\n\
         greet() {{ keep; say '{READY}'; }}\nfinish() {{ say '{RESULT}'; }}\n{lines}\n"
    );
    let path = place.0.write("program.sh", text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.options().cli_path(path)
}

/// What the program kept of what it was sent.
fn heard(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.0.project().join("heard.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the program was answered when it asked this.
async fn asked(
    place: &Place,
    question: &Value,
    options: impl FnOnce(QoderAgentOptions) -> QoderAgentOptions,
) -> Value {
    let request = json!({ "type": "control_request", "request_id": "q1", "request": question });
    let lines = format!("greet; hear; say '{request}'; keep; finish");
    let messages = all(query("Go.", options(script(place, &lines))).unwrap()).await;
    assert_eq!(result(&messages).text(), "bye");
    let answer = heard(place).remove(1);
    assert_eq!(
        (&answer["type"], &answer["response"]["request_id"]),
        (&json!("control_response"), &json!("q1"))
    );
    answer["response"].clone()
}

#[tokio::test]
async fn the_handshake_comes_first_and_the_prompt_follows() {
    let place = Place::new();
    let options = script(&place, "greet; keep; finish").auth(access_token("pat-1"));
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "bye");
    let heard = heard(&place);
    assert_eq!(heard[0]["request"]["subtype"], "initialize");
    assert_eq!(heard[0]["request"]["auth"], json!({ "type": "accessToken", "accessToken": "pat-1" }));
    assert_eq!(heard[1]["message"], json!({ "role": "user", "content": "Go." }));
}

#[tokio::test]
async fn the_environment_tells_who_speaks_and_the_token_is_not_in_it() {
    let place = Place::new();
    let options = script(&place, "greet; hear; env > env.txt; echo \"$@\" > args.txt; finish")
        .auth(access_token("pat-1"))
        .env("EXTRA", "1");
    all(query("Go.", options).unwrap()).await;
    let read = |name: &str| std::fs::read_to_string(place.0.project().join(name)).unwrap();
    let environment = read("env.txt");
    for line in ["QODER_ENTRYPOINT=sdk-rust", "QODER_SDK_READS_SESSION_STATE=1", "EXTRA=1"] {
        assert!(environment.lines().any(|each| each == line), "{line}");
    }
    assert!(!environment.contains("pat-1") && !read("args.txt").contains("pat-1"));
}

#[tokio::test]
async fn a_question_about_a_call_is_answered_by_the_callback() {
    let question = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
        "tool_use_id": "t1", "permission_suggestions": [{ "type": "later" }], "decision_reason": "because" });
    let place = Place::new();
    let answer = asked(&place, &question, |options| {
        options.can_use_tool(|name, _, context| async move {
            assert_eq!((name.as_str(), context.decision_reason.as_deref()), ("Bash", Some("because")));
            assert!(context.suggestions.is_empty());
            PermissionResult::allow()
        })
    })
    .await;
    assert_eq!(
        answer["response"],
        json!({ "behavior": "allow", "updatedInput": { "command": "ls" }, "toolUseID": "t1" })
    );
    let place = Place::new();
    let answer = asked(&place, &question, |options| {
        options.can_use_tool(|_, _, _| async { Err::<PermissionResult, _>("broken") })
    })
    .await;
    assert_eq!(answer["response"], json!({ "behavior": "deny", "message": "broken", "toolUseID": "t1" }));
    let answer = asked(&Place::new(), &question, |options| options).await;
    assert_eq!(answer["subtype"], "error");
}

#[tokio::test]
async fn hooks_are_called_by_their_names() {
    let question = json!({ "subtype": "hook_callback", "callback_id": "hook_0", "tool_use_id": "t1",
        "input": { "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": "rm -rf x" } } });
    let guard = || {
        HookMatcher::for_tools("Bash").hook(|input, id, _| async move {
            assert_eq!((input.tool_name(), id.as_deref()), (Some("Bash"), Some("t1")));
            HookJsonOutput::deny("no")
        })
    };
    let place = Place::new();
    let answer = asked(&place, &question, |options| options.hook(HookEvent::PreToolUse, guard())).await;
    assert_eq!(answer["response"]["hookSpecificOutput"]["permissionDecision"], "deny");
    let failing = HookMatcher::new().hook(|_, _, _| async { Err::<HookJsonOutput, _>("broken") });
    let answer =
        asked(&Place::new(), &question, |options| options.hook(HookEvent::PreToolUse, failing)).await;
    assert_eq!((&answer["subtype"], &answer["error"]), (&json!("error"), &json!("broken")));
    let answer = asked(&Place::new(), &question, |options| options).await;
    assert_eq!(answer["error"], "there is no hook `hook_0`");
}

#[tokio::test]
async fn servers_of_this_process_speak_mcp() {
    let server = || {
        let now = tool("now", "Returns the time.", |_: NoArguments| async { "noon" });
        create_sdk_mcp_server("clock", "2.0.0", [now]).unwrap()
    };
    let ask = |message: Value| async move {
        let question = json!({ "subtype": "mcp_message", "server_name": "clock", "message": message });
        let answer = asked(&Place::new(), &question, |options| options.mcp_server("clock", server())).await;
        answer["response"]["mcp_response"].clone()
    };
    let greeting =
        ask(json!({ "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-03-26" } })).await;
    assert_eq!(greeting["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(greeting["result"]["serverInfo"], json!({ "name": "clock", "version": "2.0.0" }));
    let list = ask(json!({ "id": "a", "method": "tools/list" })).await;
    assert_eq!((&list["id"], &list["result"]["tools"][0]["name"]), (&json!("a"), &json!("now")));
    let call =
        ask(json!({ "id": 2, "method": "tools/call", "params": { "name": "now", "arguments": {} } })).await;
    assert_eq!(call["result"], json!({ "content": [{ "type": "text", "text": "noon" }], "isError": false }));
    let missing = ask(json!({ "id": 3, "method": "tools/call", "params": { "name": "later" } })).await;
    assert_eq!(missing["result"]["isError"], true);
    assert_eq!(ask(json!({ "id": 4, "method": "resources/list" })).await["error"]["code"], -32601);
    assert_eq!(
        ask(json!({ "method": "notifications/initialized" })).await,
        json!({ "jsonrpc": "2.0", "result": {} })
    );
}

#[tokio::test]
async fn models_and_forms_are_answered() {
    let question = json!({ "subtype": "get_model_policy", "purpose": "main", "sessionId": "s", "agentId": "main",
        "turnIndex": 0, "availableModels": [] });
    let place = Place::new();
    let answer = asked(&place, &question, |options| {
        options.resolve_model(|context| async move {
            ModelPolicyResult::model(format!("for-{}", context.purpose))
        })
    })
    .await;
    assert_eq!(answer["response"], json!({ "model": "for-main" }));
    assert_eq!(heard(&place)[0]["request"]["modelPolicy"], true);
    let question =
        json!({ "subtype": "elicitation", "server_name": "kb", "message": "Name?", "mode": "form" });
    let answer = asked(&Place::new(), &question, |options| {
        options
            .on_elicitation(|_| async { ElicitationResult::Accept { content: Some(json!({ "name": "x" })) } })
    })
    .await;
    assert_eq!(answer["response"], json!({ "action": "accept", "content": { "name": "x" } }));
    let answer = asked(&Place::new(), &question, |options| options).await;
    assert_eq!(answer["response"], json!({ "action": "cancel" }));
    let answer = asked(&Place::new(), &json!({ "subtype": "later_kind" }), |options| options).await;
    assert_eq!(answer["error"], "Unsupported control request subtype: later_kind");
}

#[tokio::test]
async fn a_question_that_is_taken_back_gets_no_answer() {
    let place = Place::new();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let lines = r#"greet; hear
        say '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}'
        say '{"type":"control_cancel_request","request_id":"q1"}'
        say '{"type":"control_request","request_id":"q2","request":{"subtype":"later_kind"}}'
        keep; finish"#;
    let options = script(&place, lines).can_use_tool(move |_, _, context| {
        let sender = sender.lock().unwrap().take();
        async move {
            drop(sender.map(|sender| sender.send(context.signal)));
            std::future::pending::<()>().await;
            PermissionResult::allow()
        }
    });
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "bye");
    assert_eq!(heard(&place)[1]["response"]["request_id"], "q2");
    // It was withdrawn before or while the callback ran.
    if let Ok(signal) = within(receiver).await {
        assert!(signal.is_cancelled());
    }
}

#[tokio::test]
async fn what_a_session_is_told_travels_and_is_answered() {
    let place = Place::new();
    let lines = r#"greet; keep
        say '{"type":"control_response","response":{"subtype":"success","request_id":"req_2","response":{"still_queued":["a"]}}}'
        keep
        say '{"type":"control_response","response":{"subtype":"error","request_id":"req_3","error":"not built yet"}}'
        hear"#;
    let mut client = QoderSdkClient::new(script(&place, lines));
    within(client.connect(None)).await.unwrap();
    assert_eq!(client.supported_agents()[0].name, "reviewer");
    assert_eq!(within(client.interrupt()).await.unwrap().still_queued, ["a"]);
    let error = within(client.rewind_files("u", true)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("control_request", "rewind_files: not built yet")
    );
    within(client.disconnect()).await.unwrap();
    let heard = heard(&place);
    assert_eq!(heard[1]["request"], json!({ "subtype": "interrupt" }));
    assert_eq!(
        heard[2]["request"],
        json!({ "user_message_id": "u", "dry_run": true, "subtype": "rewind_files" })
    );
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_time_is_taken_back() {
    let place = Place::new();
    let options = script(&place, "greet; hear; keep; hear").control_request_timeout_ms(300);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    let error = within(client.interrupt()).await.unwrap_err();
    assert_eq!(error.to_string(), "interrupt was not answered within 300 ms");
    within(client.disconnect()).await.unwrap();
    assert_eq!(heard(&place)[1], json!({ "type": "control_cancel_request", "request_id": "req_2" }));
}

#[tokio::test]
async fn a_program_that_does_not_fit_is_refused() {
    let place = Place::new();
    let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"qodercli_version":"9.9.0"}}}"#;
    let mut client = QoderSdkClient::new(script(&place, &format!("hear; say '{answer}'; hear")));
    let error = within(client.connect(None)).await.unwrap_err();
    assert_eq!(error.code(), "protocol_version_mismatch");
    assert!(error.to_string().contains("9.9.0 (protocol none)"), "{error}");
}

#[tokio::test]
async fn a_program_that_ends_early_says_its_last_words() {
    let place = Place::new();
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = std::sync::Arc::clone(&lines);
    let options = script(&place, "echo 'unknown flag' >&2; exit 42")
        .stderr(move |line| list.lock().unwrap().push(line.to_owned()));
    let mut client = QoderSdkClient::new(options);
    let error = within(client.connect(None)).await.unwrap_err();
    assert_eq!(error.code(), "QODER_CLI_PROCESS_ERROR");
    assert_eq!(error.to_string(), "qodercli ended with exit code 42: unknown flag");
    assert_eq!(*lines.lock().unwrap(), ["unknown flag"]);
}

#[tokio::test]
async fn a_failing_end_is_told_once() {
    let failed = RESULT.replace("\"is_error\":false", "\"is_error\":true");
    let place = Place::new();
    let messages =
        all(query("Go.", script(&place, &format!("greet; hear; say '{failed}'; exit 1"))).unwrap()).await;
    assert!(result(&messages).is_error, "the result explains the exit");
    let place = Place::new();
    let items: Vec<_> = within(query("Go.", script(&place, "greet; hear; exit 3")).unwrap().collect()).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.to_string(), "qodercli ended with exit code 3");
}

#[tokio::test]
async fn words_that_are_no_protocol_are_skipped_or_told() {
    let place = Place::new();
    let lines = r#"greet; hear; say 'debug: hello'; say ''; say '{"type":"keep_alive"}'; say '{"type":"later","x":1}'; finish"#;
    let messages = all(query("Go.", script(&place, lines)).unwrap()).await;
    assert_eq!(messages.len(), 2, "{messages:#?}");
    let place = Place::new();
    let items: Vec<_> =
        within(query("Go.", script(&place, "greet; hear; say '{broken'; hear")).unwrap().collect()).await;
    assert_eq!(items[0].as_ref().unwrap_err().code(), "protocol");
}

#[tokio::test]
async fn states_are_hidden_and_hold_the_input_open() {
    let place = Place::new();
    let state = |state: &str| {
        format!(
            r#"say '{{"type":"system","subtype":"session_state_changed","state":"{state}","sdk_host_only":true}}'"#
        )
    };
    // The program counts what it hears between its result and the end of its input.
    let lines = format!(
        "greet; hear; {}; finish; {}; while hear; do :; done; echo over > end.txt",
        state("running"),
        state("idle")
    );
    let messages = all(query("Go.", script(&place, &lines)).unwrap()).await;
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(place.0.project().join("end.txt").exists(), "the program ended by itself");
}
