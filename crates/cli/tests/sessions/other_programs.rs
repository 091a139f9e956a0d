//! Transcripts written by other programs: a chain of user and assistant entries without numbers or checksums is resumed
//! like one of ours, tool results included.

use std::path::PathBuf;

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{
    ID, OTHER_ID, assert_success, kinds, log_text, records, run, run_with, server, tool_results,
};

/// Where the log of a session of the project is, before there is any.
fn place(sandbox: &Sandbox, id: &str) -> PathBuf {
    let path = sandbox.project().display().to_string();
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    sandbox.config().join("projects").join(key).join(format!("{id}.jsonl"))
}

fn write(sandbox: &Sandbox, entries: &[Value]) -> String {
    let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    sandbox.write(place(sandbox, ID), &text);
    text
}

fn user(uuid: &str, parent: &Value, content: &Value) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "type": "user", "userType": "external", "uuid": uuid,
        "message": {"role": "user", "content": content}, "sessionId": ID, "timestamp": "2026-01-01T00:00:00.000Z"})
}

fn assistant(uuid: &str, parent: &str, content: &Value, stop_reason: &str) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "type": "assistant", "uuid": uuid, "sessionId": ID,
        "message": {"id": "msg_x", "type": "message", "role": "assistant", "model": "other-model",
            "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 4, "service_tier": "standard"}},
        "timestamp": "2026-01-01T00:00:01.000Z"})
}

fn finished_chain() -> Vec<Value> {
    let call =
        json!([{"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "a.txt"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_9", "content": "1\tcontent of a"}]);
    vec![
        json!({"type": "summary", "summary": "about a", "leafUuid": "u"}),
        user("u1", &Value::Null, &json!("what is in a.txt")),
        assistant("a1", "u1", &call, "tool_use"),
        user("u2", &json!("a1"), &result),
        assistant("a2", "u2", &json!([{"type": "text", "text": "It has content."}]), "end_turn"),
    ]
}

#[test]
fn a_finished_chain_goes_on_with_a_prompt() {
    let sandbox = Sandbox::new();
    let before = write(&sandbox, &finished_chain());
    let server = server(vec![Reply::text("x"), Reply::text("y"), Reply::text("and more")]);
    let resumed =
        run_with(&sandbox, &server, &["-p", "what else", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "and more");
    let log = log_text(&sandbox, ID);
    assert!(log.starts_with(&before), "what the other program wrote stays as it is");
    let request = server.requests()[0].json();
    let shape: Vec<(String, String)> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let kind = message["content"][0]["type"].as_str().unwrap_or("text");
            (message["role"].as_str().unwrap().to_owned(), kind.to_owned())
        })
        .collect();
    let expected = [
        ("user", "text"),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
        ("assistant", "text"),
        ("user", "text"),
    ];
    assert_eq!(shape, expected.map(|(role, kind)| (role.to_owned(), kind.to_owned())));
    let prompt = records(&sandbox, ID).into_iter().find(|record| record["message"]["content"] == "what else");
    let prompt = prompt.unwrap();
    assert_eq!(prompt["parentUuid"], "a2", "the chain continues");
    assert_eq!(prompt["cwd"], sandbox.project().display().to_string());
    run_with(&sandbox, &server, &["-p", "again", "--resume", ID]).exits(0);
}

#[test]
fn tools_of_a_resumed_chain_run_in_the_working_directory() {
    let sandbox = Sandbox::new();
    write(&sandbox, &finished_chain());
    let called = run(&sandbox, &["-p", "call Bash with {\"command\": \"pwd -P\"}", "--resume", ID, "--yolo"]);
    let called = called.exits(0);
    assert!(called.stdout.contains(&sandbox.project().display().to_string()), "{}", called.stdout);
}

#[test]
fn a_chain_that_ends_with_a_prompt_is_continued() {
    let sandbox = Sandbox::new();
    write(&sandbox, &[user("u1", &Value::Null, &json!([{"type": "text", "text": "say something"}]))]);
    let server = server(vec![Reply::text("something")]);
    let resumed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&resumed.json(), ID, "something");
    assert!(kinds(&sandbox, ID).contains(&"turn-end".to_owned()));
}

#[test]
fn an_open_call_of_another_program_gets_an_outcome() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "real content\n");
    write(&sandbox, &finished_chain()[..3]);
    let server = server(vec![Reply::text("x"), Reply::text("as you like")]);
    let resumed =
        run_with(&sandbox, &server, &["-p", "stop that", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "as you like");
    assert_eq!(tool_results(&sandbox, ID)[0].0, "not_run");
}

#[test]
fn a_copied_session_of_ours_with_new_ids_is_resumed() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("one"), Reply::text("two")]);
    run_with(&sandbox, &server, &["-p", "first", "--session-id", OTHER_ID]).exits(0);
    let copied: Vec<Value> = records(&sandbox, OTHER_ID)
        .into_iter()
        .filter(|record| record["type"] == "user" || record["type"] == "assistant")
        .map(|mut record| {
            record["forkedFrom"] = json!({"sessionId": OTHER_ID, "messageUuid": record["uuid"]});
            record["sessionId"] = json!(ID);
            record
        })
        .collect();
    assert_eq!(copied.len(), 2);
    write(&sandbox, &copied);
    let resumed = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "two");
    assert_eq!(server.requests()[1].json()["messages"].as_array().unwrap().len(), 3);
}
