//! What real clients refuse to read is never written: replies without a model, thinking without a signature, results
//! that lack a field.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::protocol::host::{Host, call, say};

#[test]
fn every_message_has_what_clients_need() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "turn": 1 }, "thinking": "let me see", "text": "looking",
          "toolCalls": [{ "name": "Glob", "input": { "pattern": "*" } }] },
        say("done"),
    ]);
    let mut host = Host::connect(&sandbox, &replies, &["--include-partial-messages"], json!({}));
    host.prompt("look");
    let mut partial = 0;
    let result = loop {
        let line = host.next().unwrap();
        assert!(line["type"].is_string(), "{line}");
        match line["type"].as_str().unwrap() {
            "assistant" => {
                assert!(line["message"]["model"].is_string() && line["uuid"].is_string(), "{line}");
                for block in line["message"]["content"].as_array().unwrap() {
                    assert!(block["type"].is_string());
                    assert!(block["type"] != "thinking" || block["signature"].is_string(), "{block}");
                }
            }
            "stream_event" => {
                partial += 1;
                assert!(
                    line["uuid"].is_string()
                        && line["session_id"].is_string()
                        && line["event"]["type"].is_string()
                );
            }
            "result" => break line,
            _ => {}
        }
    };
    assert!(partial > 4, "{partial}");
    for key in ["subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id"] {
        assert!(!result[key].is_null(), "{key}: {result}");
    }
}

#[test]
fn the_first_message_names_a_version_that_clients_accept() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    host.prompt("hello");
    let init = host.next().unwrap();
    assert_eq!((&init["type"], &init["subtype"]), (&json!("system"), &json!("init")));
    let version: Vec<u32> =
        init["claude_code_version"].as_str().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version >= vec![2, 1, 248]);
    assert!(init["qodercli_version"].is_string());
}

#[test]
fn transcripts_are_where_clients_look_for_them() {
    let sandbox = Sandbox::new();
    let mut command =
        Host::command(&sandbox, &json!([call(1, "Glob", &json!({ "pattern": "*" })), say("hi")]), &[]);
    let root = sandbox.home().join("root");
    command.env("CLAUDE_CONFIG_DIR", &root).env("CLAUDE_AGENT_SDK_VERSION", "0.2.182");
    let mut host = Host::spawn(command);
    let id = host.initialize(json!({}))["session_id"].as_str().unwrap().to_owned();
    host.prompt("hello");
    host.result();
    let key: String = sandbox
        .project()
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    assert!(root.join("projects").join(key).join(format!("{id}.jsonl")).is_file());
}
