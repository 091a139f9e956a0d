//! Agents that the host defines: offered to the model, run with their own prompt and tools, and nothing more than the
//! session may do.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

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
    assert_eq!(hello["agents"][3], json!({ "name": "reviewer", "description": "Reviews code." }));
    host.prompt("go");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["agents"], json!(["general-purpose", "Explore", "Plan", "reviewer"]));
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
fn supported_agents_has_name_description_and_model_of_every_source() {
    let sandbox = Sandbox::new();
    let own = "---\nname: mine\ndescription: |\n  Two\n  lines.\nmodel: lite\n---\nP\n";
    sandbox.write(sandbox.config().join("agents/mine.md"), own);
    let declared = reviewer(&json!({ "model": "inherit", "background": true, "extra": null }));
    let mut host = Host::connect(&sandbox, &json!([say("x")]), &[], declared);
    let rows = host.request(&json!({ "subtype": "supported_agents" })).unwrap()["agents"].clone();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["general-purpose", "Explore", "Plan", "mine", "reviewer"]);
    assert_eq!(rows[3], json!({ "name": "mine", "description": "Two lines.", "model": "lite" }));
    assert_eq!(rows[4], json!({ "name": "reviewer", "description": "Reviews code." }));
    let usage = host.request(&json!({ "subtype": "get_context_usage" })).unwrap();
    let sources: Vec<&str> =
        usage["agents"].as_array().unwrap().iter().map(|row| row["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["built-in", "built-in", "built-in", "user", "flag"]);
    assert!(usage["agents"][3]["tokens"].as_u64().unwrap() > 0 && usage["agents"][3]["agentType"] == "mine");
}

#[test]
fn agents_of_the_flag_are_there_without_a_handshake_and_those_of_the_handshake_come_first() {
    let flag = json!({ "reviewer": { "description": "Of the flag.", "prompt": "p" },
        "other": { "description": "Other.", "prompt": "p" } });
    let flag = flag.to_string();
    let sandbox = Sandbox::new();
    let mut host = Host::start(&sandbox, &json!([say("x")]), &["--agents", &flag]);
    host.prompt("go");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["agents"], json!(["general-purpose", "Explore", "Plan", "other", "reviewer"]));
    let mut host = Host::start(&sandbox, &json!([say("x")]), &["--agents", &flag]);
    let hello = host.initialize(reviewer(&json!({})));
    assert_eq!(hello["agents"][4], json!({ "name": "reviewer", "description": "Reviews code." }));
}

#[test]
fn the_mode_of_the_main_agent_stays_when_settings_change() {
    let sandbox = Sandbox::new();
    let declared = reviewer(&json!({ "permissionMode": "plan" }));
    let mut host = Host::connect(&sandbox, &json!([say("x")]), &["--agent", "reviewer"], declared);
    let settings = json!({ "permissions": { "deny": ["Bash"] } });
    host.request(&json!({ "subtype": "apply_flag_settings", "settings": settings })).unwrap();
    host.prompt("go");
    let init = host.until(|line| line["subtype"] == "init");
    assert_eq!(init["permissionMode"], "plan");
}

#[test]
fn definitions_that_cannot_work_are_refused() {
    for (declared, flags, named) in [
        (reviewer(&json!({ "prompt": "" })), vec![], "agents.reviewer.prompt"),
        (reviewer(&json!({ "tools": "Read" })), vec![], "agents.reviewer.tools"),
        (reviewer(&json!({ "effort": "heroic" })), vec![], "agents.reviewer.effort"),
        (reviewer(&json!({ "permissionMode": "free" })), vec![], "agents.reviewer.permissionMode"),
        (reviewer(&json!({ "maxTurns": 0 })), vec![], "agents.reviewer.maxTurns"),
        (reviewer(&json!({ "skills": ["a/b"] })), vec![], "agents.reviewer.skills"),
        (reviewer(&json!({ "mcpServers": [{ "kb": {} }] })), vec![], "agents.reviewer.mcpServers"),
        (reviewer(&json!({})), vec!["--agent", "absent"], "general-purpose, Explore, Plan, reviewer"),
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

#[test]
fn forward_subagent_text_brings_what_agents_say_and_think() {
    let reads = json!({ "name": "Read", "input": { "file_path": "a.txt" } });
    let mut replies = delegates(&reads);
    replies[1]["text"] = json!("let me look");
    replies[1]["thinking"] = json!("where is it");
    for forward in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.write("a.txt", "content");
        let mut declared = reviewer(&json!({}));
        if forward {
            declared["forwardSubagentText"] = json!(true);
        }
        let flags = ["--allowedTools", "Agent", "--include-partial-messages"];
        let mut host = Host::connect(&sandbox, &replies, &flags, declared);
        host.prompt("go");
        let mut lines: Vec<Value> = Vec::new();
        while lines.last().is_none_or(|line| line["type"] != "result") {
            lines.push(host.next().unwrap());
        }
        let of_agent = |kind: &str| -> Vec<Value> {
            let marked = lines.iter().filter(|line| line["parent_tool_use_id"].is_string());
            marked.filter(|line| line["type"] == kind).cloned().collect()
        };
        let kinds: Vec<Value> = of_agent("assistant")
            .iter()
            .flat_map(|line| line["message"]["content"].as_array().unwrap().clone())
            .map(|block| block["type"].clone())
            .collect();
        let expected =
            if forward { json!(["thinking", "text", "tool_use", "text"]) } else { json!(["tool_use"]) };
        assert_eq!(json!(kinds), expected);
        assert_eq!(of_agent("user").len(), 1, "results are told in any case");
        assert_eq!(of_agent("stream_event").is_empty(), !forward);
    }
}
