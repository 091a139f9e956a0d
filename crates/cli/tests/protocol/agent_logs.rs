//! The logs of agents: repeated to a host that keeps sessions elsewhere, with the sidecar, before the result; and what the
//! host sees of an agent that works in the background while a turn is over.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::Host;

fn delegates(more: &Value) -> Value {
    let mut input = json!({ "prompt": "look around", "description": "look around" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [{ "name": "Agent", "input": input }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "toolCalls": [{ "name": "Glob", "input": { "pattern": "*" } }] },
        { "when": { "purpose": "subagent", "turn": 2 }, "text": "seen" },
        { "when": { "turn": 2 }, "text": "two" },
        { "when": { "turn": 3 }, "text": "three" },
    ])
}

#[test]
fn the_lines_of_an_agent_are_mirrored_with_agent_metadata_before_the_result() {
    let sandbox = Sandbox::new();
    let flags = ["--session-mirror", "--allowedTools", "Agent"];
    let mut host = Host::connect(&sandbox, &delegates(&json!({})), &flags, json!({}));
    host.prompt("go");
    let mut mirrored: Vec<(String, Value)> = Vec::new();
    loop {
        let line = host.next().unwrap();
        match line["type"].as_str() {
            Some("transcript_mirror") => {
                let path = line["filePath"].as_str().unwrap().to_owned();
                mirrored.extend(
                    line["entries"].as_array().unwrap().iter().map(|entry| (path.clone(), entry.clone())),
                );
            }
            Some("result") => break,
            _ => {}
        }
    }
    host.end();
    let session = sandbox.session_files().remove(0);
    let folder = session.with_extension("").join("subagents");
    let of_agent: Vec<&(String, Value)> =
        mirrored.iter().filter(|(path, _)| path.starts_with(folder.to_str().unwrap())).collect();
    let metadata: Vec<&Value> =
        of_agent.iter().map(|(_, entry)| entry).filter(|entry| entry["type"] == "agent_metadata").collect();
    assert_eq!((metadata.len(), &metadata[0]["agentType"]), (1, &json!("general-purpose")), "{mirrored:#?}");
    assert!(metadata[0]["toolUseId"].is_string());
    let log = std::fs::read_to_string(&of_agent[0].0).unwrap();
    let mut kept: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut kept {
        for key in ["seq", "v", "crc"] {
            line.as_object_mut().unwrap().remove(key);
        }
    }
    let lines: Vec<Value> = of_agent
        .iter()
        .map(|(_, entry)| entry.clone())
        .filter(|entry| entry["type"] != "agent_metadata")
        .collect();
    assert_eq!(lines, kept, "in order, and nothing is missing before the result");
}

#[test]
fn the_session_stays_running_while_a_background_agent_lives() {
    let sandbox = Sandbox::new();
    let replies = delegates(&json!({ "run_in_background": true }));
    let mut command = Host::command(&sandbox, &replies, &["--allowedTools", "Agent"]);
    command.env("QODER_EMIT_SESSION_STATE_EVENTS", "1");
    let mut host = Host::spawn(command);
    host.initialize(json!({}));
    host.prompt("go");
    let mut seen = Vec::new();
    loop {
        let line = host.next().unwrap();
        let word = match (line["type"].as_str().unwrap(), line["subtype"].as_str()) {
            ("system", Some("session_state_changed")) => line["state"].as_str().unwrap().to_owned(),
            ("system", Some(subtype @ ("task_started" | "task_notification"))) => subtype.to_owned(),
            ("result", _) => "result".to_owned(),
            _ => continue,
        };
        let idle = word == "idle";
        seen.push(word);
        if idle {
            break;
        }
    }
    host.end();
    let place = |word: &str| seen.iter().position(|one| one == word).unwrap();
    assert_eq!(seen.iter().filter(|word| *word == "idle").count(), 1);
    assert_eq!(seen.last().unwrap(), "idle");
    assert!(place("task_started") < place("task_notification"), "{seen:?}");
    assert!(place("task_notification") < place("idle"), "{seen:?}");
}

#[test]
fn stop_task_stops_a_background_agent() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [{ "name": "Agent",
            "input": { "prompt": "hang", "description": "hang", "run_in_background": true } }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "text": "never", "delayMs": 600_000 },
        { "when": { "turn": 2 }, "text": "two" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Agent"], json!({}));
    host.prompt("go");
    let started = host.until(|line| line["subtype"] == "task_started");
    assert_eq!(host.result()["result"], "two");
    host.request(&json!({ "subtype": "stop_task", "task_id": started["task_id"] })).unwrap();
    host.end();
    let end = sandbox.transcript_lines().into_iter().find(|line| line["type"] == "task-end").unwrap();
    assert_eq!((&end["taskId"], &end["status"]), (&started["task_id"], &json!("stopped")));
}

#[test]
fn background_tasks_moves_a_running_agent() {
    let sandbox = Sandbox::new();
    let replies = json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [{ "id": "toolu_agent", "name": "Agent",
            "input": { "prompt": "hang", "description": "hang" } }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "text": "never", "delayMs": 600_000 },
        { "when": { "turn": 2 }, "text": "two" },
    ]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Agent"], json!({}));
    host.prompt("go");
    let started = host.until(|line| line["subtype"] == "task_started");
    let moved =
        host.request(&json!({ "subtype": "background_tasks", "tool_use_id": "toolu_agent" })).unwrap();
    assert_eq!(moved["moved"], true);
    assert_eq!(host.result()["result"], "two");
    host.request(&json!({ "subtype": "stop_task", "task_id": started["task_id"] })).unwrap();
    host.end();
}
