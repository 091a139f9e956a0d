//! Whether the session runs, is idle or waits is reported to hosts that want it, and always ends with idle.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

fn states(variable: &str) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let file = sandbox.project().join("a");
    let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": "x" })), say("done")]);
    let mut command = Host::command(&sandbox, &replies, &["--permission-prompt-tool", "stdio"]);
    command.env(variable, "1");
    let mut host = Host::spawn(command);
    host.initialize(json!({}));
    host.prompt("write");
    let mut seen = Vec::new();
    loop {
        let line = host.next().unwrap();
        if line["request"]["subtype"] == "can_use_tool" {
            host.respond(&line, &json!({ "behavior": "deny", "message": "no" }));
        }
        if line["subtype"] == "session_state_changed" || line["type"] == "result" {
            seen.push(line.clone());
        }
        if line["state"] == "idle" {
            return seen;
        }
    }
}

#[test]
fn a_sdk_hears_the_states_and_hides_them() {
    for variable in ["QODER_SDK_READS_SESSION_STATE", "CLAUDE_CODE_SDK_READS_SESSION_STATE"] {
        let seen = states(variable);
        let words: Vec<&str> = seen.iter().map(|line| line["state"].as_str().unwrap_or("(result)")).collect();
        assert_eq!(words, ["running", "requires_action", "running", "(result)", "idle"]);
        let told = seen.iter().filter(|line| line["type"] == "system");
        assert!(
            told.clone().all(|line| line["sdk_host_only"] == true && line["uuid"].is_string()),
            "{seen:?}"
        );
    }
}

#[test]
fn a_caller_who_asks_for_them_sees_them() {
    let seen = states("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS");
    assert!(seen.iter().all(|line| line.get("sdk_host_only").is_none()), "{seen:?}");
}

#[test]
fn nobody_else_hears_of_them() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &json!([say("hi")]), &[], json!({}));
    host.prompt("hello");
    let (_, rest) = host.end();
    assert!(rest.iter().all(|line| line["subtype"] != "session_state_changed"));
}
