//! Options that come with the handshake: how plans are made, a proxy, what user messages carry, suggestions, and what
//! previews are written in. What there is not is refused by name.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::protocol::host::{Host, QODERCLI, call, say};

/// A host whose model is at an address.
fn with_model_at(sandbox: &Sandbox, address: &str, flags: &[&str]) -> Host {
    let mut command = sandbox.command(QODERCLI);
    command.args(["--output-format", "stream-json", "--input-format", "stream-json", "--model", "m"]);
    command.env("ANTHROPIC_BASE_URL", address).env("ANTHROPIC_API_KEY", "key-of-the-test").args(flags);
    Host::spawn(command)
}

#[test]
fn plans_and_previews_are_made_as_the_host_says() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("planned")]));
    let mut host = with_model_at(&sandbox, &server.base_url(), &["--permission-mode", "plan"]);
    let previews = json!({ "askUserQuestion": { "previewFormat": "markdown" } });
    host.initialize(json!({ "planModeInstructions": "Draw first.", "toolConfig": previews }));
    host.prompt("plan it");
    assert_eq!(host.result()["result"], "planned");
    let request = server.requests()[0].json();
    let system = request["system"].to_string();
    assert!(system.contains("# Plan mode") && system.contains("Draw first."), "{system}");
    assert!(request["tools"].to_string().contains("shown to the person as Markdown"), "{request:#}");
}

#[test]
fn requests_to_models_go_through_the_proxy_of_the_handshake() {
    let sandbox = Sandbox::new();
    let proxy = ScriptedServer::start(Script::list(vec![Reply::text("from the proxy")]));
    let mut host = with_model_at(&sandbox, "http://model.invalid", &[]);
    host.initialize(json!({ "proxy": proxy.base_url() }));
    host.prompt("hello");
    assert_eq!(host.result()["result"], "from the proxy");
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/messages");
}

#[test]
fn user_messages_carry_the_context_of_the_host() {
    let sandbox = Sandbox::new();
    let replies = json!([call(1, "Glob", &json!({ "pattern": "*" })), say("done")]);
    let context = json!({ "tenant": "t-1" });
    let declared = json!({ "customContext": context });
    let mut host = Host::connect(&sandbox, &replies, &["--replay-user-messages"], declared);
    host.prompt("go");
    let is_user = |line: &Value| line["type"] == "user";
    assert_eq!(host.until(is_user)["custom_context"], context, "the prompt");
    assert_eq!(host.until(is_user)["custom_context"], context, "the result of the call");
    assert_eq!(host.result()["result"], "done");
}

#[test]
fn a_suggestion_follows_the_result_and_nothing_else_is_late() {
    let sandbox = Sandbox::new();
    let replies =
        json!([{ "when": { "purpose": "suggestion" }, "text": "Run the tests.", "repeat": true }, say("hi")]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({ "promptSuggestions": true }));
    host.prompt("hello");
    assert_eq!(host.result()["result"], "hi");
    let line = host.until(|line| line["type"] == "prompt_suggestion");
    assert_eq!(line["suggestion"], "Run the tests.");
    assert!(line["uuid"].is_string() && line["session_id"].is_string());
    let (code, _) = host.end();
    assert_eq!(code, 0);
}

#[test]
fn a_title_is_found_and_kept_when_that_is_wanted() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "purpose": "title" }, "text": "Fixing the login.", "repeat": true }, say("hi")
    ]);
    let mut host = Host::connect(&sandbox, &replies, &[], json!({}));
    host.prompt("hello");
    host.result();
    let mut request = json!({ "subtype": "generate_session_title", "description": "the login is broken" });
    assert_eq!(host.request(&request).unwrap(), json!({ "title": "Fixing the login" }));
    let is_title = |line: &Value| line["type"] == "ai-title";
    assert!(!sandbox.transcript_lines().iter().any(is_title));
    request["persist"] = json!(true);
    host.request(&request).unwrap();
    host.prompt("more");
    host.result();
    host.end();
    let lines = sandbox.transcript_lines();
    assert_eq!(lines.iter().filter(|line| is_title(line)).count(), 1, "{lines:#?}");
    assert_eq!(lines.iter().find(|line| is_title(line)).unwrap()["aiTitle"], "Fixing the login");
    let spent = lines.iter().filter(|line| line["type"] == "side-call" && line["purpose"] == "title");
    assert_eq!(spent.count(), 2, "what it cost is on record");
    let listed = sandbox.run(QODERCLI, &["sessions", "list"]);
    assert!(String::from_utf8(listed.stdout).unwrap().contains("Fixing the login"));
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    for (declared, problem) in [
        (json!({ "goalMaxTurns": 3 }), "goalMaxTurns"),
        (json!({ "toolConfig": { "bash": {} } }), "toolConfig: `bash` is not known"),
        (json!({ "toolConfig": { "askUserQuestion": { "previewFormat": "pdf" } } }), "previewFormat"),
    ] {
        let sandbox = Sandbox::new();
        let mut host = Host::start(&sandbox, &json!([say("hi")]), &[]);
        let mut declared = declared.clone();
        declared["subtype"] = json!("initialize");
        let told = host.request(&declared).unwrap_err();
        assert!(told.contains(problem), "{told}");
        let (code, _) = host.end();
        assert_eq!(code, 42);
    }
}

#[test]
fn an_agent_needs_a_program_that_defines_it() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(QODERCLI, &["-p", "hi", "--agent", "reviewer"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(42), "{told}");
    assert!(told.contains("--agent"), "{told}");
}
