//! The handshake: answered once, first, and never with silence.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::protocol::host::{Host, say};

#[test]
fn the_runtime_says_what_it_is() {
    let sandbox = Sandbox::new();
    let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
    let hello = host.initialize(json!({ "hooks": null }));
    assert_eq!(hello["protocol_version"], 1);
    assert_eq!(hello["hook_on_failure_supported"], true);
    assert_eq!(hello["capabilities"], json!(["interrupt_receipt_v1"]));
    assert!(hello["commands"].is_array() && hello["models"].is_array() && hello["account"].is_object());
    assert_eq!(hello["agents"][0]["name"], "general-purpose");
    host.prompt("hello");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["session_id"], hello["session_id"]);
    assert_eq!(host.result()["result"], "hi");
    assert_eq!(host.end().0, 0);
}

#[test]
fn a_second_handshake_is_an_error() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    let problem = host.request(&json!({ "subtype": "initialize" })).unwrap_err();
    assert!(problem.contains("initialized already"), "{problem}");
}

#[test]
fn a_handshake_that_cannot_be_used_is_answered_and_ends_the_program() {
    for (declared, named) in [
        (
            json!({ "hooks": { "PreToolUse": [{ "hookCallbackIds": ["a"], "onFailure": "explode" }] } }),
            "explode",
        ),
        (json!({ "hooks": { "PreToolUse": [{ "hookCallbackIds": ["a"], "timeout": -1 }] } }), "timeout"),
        (json!({ "hooks": { "PreToolUse": [{ "hookCallbackIds": ["a"], "timeout": 0 }] } }), "above 0"),
        (json!({ "hooks": ["PreToolUse"] }), "initialize"),
        (json!({ "auth": { "type": "accessToken", "accessToken": " " } }), "auth.accessToken"),
        (json!({ "auth": { "type": "magic" } }), "magic"),
    ] {
        let sandbox = Sandbox::new();
        let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
        let mut request = declared.clone();
        request["subtype"] = json!("initialize");
        let problem = host.request(&request).unwrap_err();
        assert!(problem.contains(named), "{problem}");
        assert_ne!(host.end().0, 0, "{declared}");
    }
}

#[test]
fn what_is_not_known_is_an_error_and_the_program_lives_on() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    let problem = host.request(&json!({ "subtype": "make_coffee" })).unwrap_err();
    assert_eq!(problem, "Unsupported control request subtype: make_coffee");
    let problem = host.request(&json!({})).unwrap_err();
    assert!(problem.contains("subtype"), "{problem}");
    let problem = host.request(&json!({ "subtype": "set_permission_mode" })).unwrap_err();
    assert!(problem.contains("mode"), "{problem}");
    host.send(&json!({ "type": "control_request", "request": { "subtype": "interrupt" } }));
    host.send(
        &json!({ "type": "control_response", "response": { "subtype": "success", "request_id": "unknown" } }),
    );
    host.send(&json!({ "type": "control_cancel_request", "request_id": "unknown" }));
    host.send(&json!({ "type": "keep_alive" }));
    host.send(&json!({ "type": "from_the_future", "a": [1] }));
    host.send_text(b"\n   \n");
    host.prompt("hello");
    assert_eq!(host.result()["result"], "hi");
}

#[test]
fn prompts_work_without_a_handshake() {
    let sandbox = Sandbox::new();
    let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
    host.prompt("hello");
    assert_eq!(host.result()["result"], "hi");
    assert_eq!(host.end().0, 0);
}

#[test]
fn a_token_reaches_the_gateway_and_nothing_else() {
    let sandbox = Sandbox::new();
    let server = qoder_testkit::ScriptedServer::start(qoder_testkit::Script::list(vec![
        qoder_testkit::Reply::tool("Bash", json!({ "command": "env; echo done" })),
        qoder_testkit::Reply::text("ok"),
    ]));
    let mut command = sandbox.command(crate::protocol::host::QODERCLI);
    command.env("QODER_BASE_URL", server.base_url()).args([
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--allowedTools",
        "Bash",
    ]);
    let mut host = Host::spawn(command);
    let token = "pat-very-secret-0123456789";
    host.initialize(json!({ "auth": { "type": "accessToken", "accessToken": token } }));
    host.prompt(&format!("my token is {token}"));
    assert_eq!(host.result()["result"], "ok");
    host.end();
    let requests = server.requests();
    assert!(
        requests.iter().all(|request| request.header("authorization") == Some(&format!("Bearer {token}")))
    );
    for line in sandbox.transcript_lines() {
        assert!(!line.to_string().contains(token), "{line}");
    }
}
