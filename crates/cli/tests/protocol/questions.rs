//! Questions about calls go to the host: its answer decides, and anything but a clear yes is a no.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

const ASKS: [&str; 2] = ["--permission-prompt-tool", "stdio"];

fn writes(sandbox: &Sandbox) -> Value {
    let file = sandbox.project().join("new.txt");
    json!([call(1, "Write", &json!({ "file_path": file, "content": "one" })), say("done")])
}

fn asked(sandbox: &Sandbox) -> (Host, Value) {
    let mut host = Host::connect(sandbox, &writes(sandbox), &ASKS, json!({}));
    host.prompt("write");
    let question = host.asked("can_use_tool");
    (host, question)
}

#[test]
fn the_question_has_what_a_person_needs() {
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    let request = &question["request"];
    let file = sandbox.project().join("new.txt");
    assert_eq!(request["tool_name"], "Write");
    assert_eq!(request["input"]["content"], "one");
    assert_eq!(request["tool_use_id"], "toolu_1");
    assert_eq!(request["blocked_path"], json!(file));
    assert_eq!(request["agent_id"], Value::Null);
    assert!(request["title"].as_str().unwrap().starts_with("Write: "));
    assert!(!request["decision_reason"].as_str().unwrap().is_empty());
    assert!(!request["decision_reason_type"].as_str().unwrap().is_empty());
    assert_eq!(request["permission_suggestions"][0]["type"], "setMode");
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": request["input"] }));
    assert_eq!(host.result()["result"], "done");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one");
}

#[test]
fn a_changed_input_is_what_runs() {
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    let file = sandbox.project().join("other.txt");
    let changed = json!({ "file_path": file, "content": "two" });
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": changed }));
    host.result();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "two");
    assert!(!sandbox.project().join("new.txt").exists());
}

#[test]
fn a_denial_is_told_in_the_hosts_words() {
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    host.respond(&question, &json!({ "behavior": "deny", "message": "not on a Sunday" }));
    assert_eq!(host.tool_result(), "not on a Sunday");
    let result = host.result();
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Write");
    assert!(!sandbox.project().join("new.txt").exists());
}

#[test]
fn a_denial_with_interrupt_ends_the_turn() {
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    host.respond(&question, &json!({ "behavior": "deny", "message": "stop", "interrupt": true }));
    let result = host.result();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["num_turns"], 1, "the model is not asked again: {result}");
    host.prompt("again");
    assert_eq!(host.result()["subtype"], "success", "the session continues");
}

#[test]
fn everything_but_a_clear_yes_is_a_no() {
    for answer in [json!({}), json!(null), json!({ "behavior": "perhaps" }), json!({ "behavior": ["allow"] })]
    {
        let sandbox = Sandbox::new();
        let (mut host, question) = asked(&sandbox);
        host.respond(&question, &answer);
        host.result();
        assert!(!sandbox.project().join("new.txt").exists(), "{answer}");
    }
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    host.respond_error(&question, "the callback raised ValueError: no");
    assert_eq!(host.tool_result(), "the callback raised ValueError: no");
    host.result();
    assert!(!sandbox.project().join("new.txt").exists());
}

#[test]
fn a_host_that_goes_away_denies() {
    let sandbox = Sandbox::new();
    let (host, _) = asked(&sandbox);
    let (code, rest) = host.end();
    let result = rest.iter().find(|line| line["type"] == "result").unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"], "Write");
    assert_eq!(code, 0, "the turn ran to its end: {result}");
    assert!(!sandbox.project().join("new.txt").exists());
}

#[test]
fn an_interrupt_withdraws_the_question() {
    let sandbox = Sandbox::new();
    let (mut host, question) = asked(&sandbox);
    let id = host.ask(&json!({ "subtype": "interrupt" }));
    let cancelled = host.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(cancelled["request_id"], question["request_id"]);
    // A late answer is nothing.
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": {} }));
    assert_eq!(host.result()["terminal_reason"], "aborted_tools");
    drop(id);
    assert!(!sandbox.project().join("new.txt").exists());
}

#[test]
fn an_answer_for_the_session_spares_the_next_question() {
    let sandbox = Sandbox::new();
    let file = |name: &str| sandbox.project().join(name);
    let replies = json!([
        call(1, "Write", &json!({ "file_path": file("a"), "content": "a" })),
        call(2, "Write", &json!({ "file_path": file("b"), "content": "b" })),
        say("done"),
    ]);
    let mut host = Host::connect(&sandbox, &replies, &ASKS, json!({}));
    host.prompt("write twice");
    let question = host.asked("can_use_tool");
    let input = &question["request"]["input"];
    let suggestion = &question["request"]["permission_suggestions"][0];
    host.respond(
        &question,
        &json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": [suggestion],
        "decisionClassification": "user_temporary", "toolUseID": "toolu_1" }),
    );
    let next = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
    assert_eq!(next["type"], "result", "nothing more is asked");
    assert!(file("a").exists() && file("b").exists());
}

#[test]
fn without_the_flag_nobody_is_asked() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &writes(&sandbox), &[], json!({}));
    host.prompt("write");
    let next = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
    assert_eq!(next["permission_denials"][0]["tool_name"], "Write");
}
