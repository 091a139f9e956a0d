//! Agents that the host defines: offered to the model, run with their own prompt and tools, and nothing more than the
//! session may do.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::host::{Host, call, say};

fn reviewer(more: &Value) -> Value {
    let mut agent =
        json!({ "description": "Reviews code.", "prompt": "You are a strict reviewer.", "tools": ["Read"] });
    for (key, value) in more.as_object().unwrap() {
        agent[key] = value.clone();
    }
    json!({ "agents": { "reviewer": agent } })
}

fn delegates(child: &Value) -> Value {
    json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [
            { "name": "Agent", "input": { "subagent_type": "reviewer", "prompt": "review it", "description": "x" } }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "toolCalls": [child] },
        { "when": { "purpose": "subagent", "turn": 2 }, "text": "reviewed" },
        { "when": { "lastToolResultContains": "reviewed" }, "text": "all good" },
    ])
}

#[test]
fn an_agent_of_the_host_does_a_task() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "content");
    let replies = delegates(&json!({ "name": "Read", "input": { "file_path": "a.txt" } }));
    let mut host = Host::start(&sandbox, &replies, &["--allowedTools", "Agent"]);
    let hello = host.initialize(reviewer(&json!({})));
    assert_eq!(hello["agents"][1], json!({ "name": "reviewer", "description": "Reviews code." }));
    host.prompt("go");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["agents"], json!(["general-purpose", "reviewer"]));
    assert_eq!(host.result()["result"], "all good");
}

#[test]
fn an_agent_has_no_more_tools_than_its_definition_says() {
    let sandbox = Sandbox::new();
    let replies = delegates(&json!({ "name": "Bash", "input": { "command": "touch made" } }));
    let flags = ["--allowedTools", "Agent,Bash"];
    let mut host = Host::connect(&sandbox, &replies, &flags, reviewer(&json!({})));
    host.prompt("go");
    let told = host.until(|line| {
        line["parent_tool_use_id"].is_string() && line["message"]["content"][0]["type"] == "tool_result"
    });
    let text = told["message"]["content"][0]["content"].as_str().unwrap();
    assert!(text.contains("There is no tool named Bash"), "{text}");
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn an_agent_can_be_the_main_one() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "contains": "begin at once" }, "text": "begun" }, say("more")]);
    let declared = reviewer(&json!({ "initialPrompt": "begin at once" }));
    let mut host = Host::connect(&sandbox, &replies, &["--agent", "reviewer"], declared);
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["tools"], json!(["Read"]));
    assert_eq!(host.result()["result"], "begun");
}

#[test]
fn the_main_agent_keeps_its_model_when_settings_change() {
    let sandbox = Sandbox::new();
    let own = sandbox.write("../own.json", json!([say("from its own model")]).to_string());
    let declared = reviewer(&json!({ "model": format!("scripted:{}", own.display()) }));
    let flags = ["--agent", "reviewer"];
    let mut host = Host::connect(&sandbox, &json!([say("from the usual model")]), &flags, declared);
    let settings = json!({ "permissions": { "deny": ["Bash"] } });
    host.request(&json!({ "subtype": "apply_flag_settings", "settings": settings })).unwrap();
    host.prompt("go");
    assert_eq!(host.result()["result"], "from its own model");
}

#[test]
fn definitions_that_cannot_work_are_refused() {
    for (declared, flags, named) in [
        (reviewer(&json!({ "prompt": "" })), vec![], "agents.reviewer"),
        (reviewer(&json!({ "tools": "Read" })), vec![], "agents.reviewer"),
        (reviewer(&json!({})), vec!["--agent", "nobody"], "nobody"),
    ] {
        let sandbox = Sandbox::new();
        let mut host = Host::start(&sandbox, &json!([call(1, "Glob", &json!({}))]), &flags);
        let mut request = declared;
        request["subtype"] = json!("initialize");
        let problem = host.request(&request).unwrap_err();
        assert!(problem.contains(named), "{problem}");
        assert_ne!(host.end().0, 0);
    }
}
