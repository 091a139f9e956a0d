//! The Agent tool: a child works in a conversation and a log of its own, its messages are marked, and only its last words
//! come back. It sees nothing of the parent's conversation, and the parent pays for it.

use std::path::PathBuf;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{MODEL, assert_calls_in_order, bodies, calls, keys, records, results_in, stream};

/// What the task of a child begins with here; the script knows its requests by it.
pub const TASK: &str = "CHILD TASK";

/// True for a request of a child.
pub fn is_child(request: &Value) -> bool {
    request["messages"][0].to_string().contains(TASK)
}

/// A call that starts a child.
pub fn agent(id: &'static str, more: &Value) -> (&'static str, &'static str, Value) {
    let mut input = json!({ "prompt": format!("{TASK}: look around"), "description": "look around" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (id, "Agent", input)
}

/// A model that plays the parent and its children, each by how far its conversation is.
pub fn family(parent: Vec<Reply>, child: Vec<Reply>) -> ScriptedServer {
    let replied = |request: &Value| qoder_testkit::assistant_count(request);
    ScriptedServer::start(Script::by(move |request, _| {
        let replies = if is_child(request) { &child } else { &parent };
        replies.get(replied(request)).cloned().unwrap_or_else(|| Reply::text("done"))
    }))
}

/// The logs of children.
pub fn child_logs(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for session in sandbox.session_files() {
        let folder = session.with_extension("").join("subagents");
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        logs.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|end| end == "jsonl")),
        );
    }
    logs
}

/// The records of a log.
pub fn lines(log: &PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The requests of children.
pub fn child_requests(server: &ScriptedServer) -> Vec<Value> {
    bodies(server).into_iter().filter(is_child).collect()
}

#[test]
fn only_the_last_words_return_and_nothing_of_the_parent_goes_in() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "the secret of the notes\n");
    let read = ("toolu_read", "Read", json!({ "file_path": "notes.txt" }));
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("parent is done")],
        vec![calls(&[read]), Reply::text("there is one file")],
    );
    let arguments = ["PARENT PROMPT", "--allowed-tools", "Agent(general-purpose)"];
    let finished = stream(&sandbox, &server, &arguments);
    assert_eq!(finished.success()["result"], "parent is done");
    assert_calls_in_order(&sandbox);

    let requests = bodies(&server);
    assert_eq!(requests.iter().map(is_child).collect::<Vec<_>>(), [false, true, true, false]);
    assert!(!requests[1].to_string().contains("PARENT PROMPT"), "{:#}", requests[1]);
    assert_eq!(results_in(&requests[3]), [("toolu_agent".to_owned(), "there is one file".to_owned(), false)]);
    assert!(!requests[3].to_string().contains("the secret of the notes"));
    let tools: Vec<&str> =
        requests[1]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for hidden in ["Agent", "AskUserQuestion", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "Config"] {
        assert!(!tools.contains(&hidden), "{tools:?}");
    }
    assert!(tools.contains(&"Read") && tools.contains(&"Bash"), "{tools:?}");
}

#[test]
fn messages_of_a_child_are_marked() {
    let sandbox = Sandbox::new();
    let list = ("toolu_list", "Glob", json!({ "pattern": "*" }));
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")],
        vec![calls(&[list]), Reply::text("seen")],
    );
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    let session = finished.success()["session_id"].clone();
    let marked = |kind: &str| -> Vec<Value> {
        finished.of(kind).into_iter().filter(|line| line["parent_tool_use_id"] == "toolu_agent").collect()
    };
    // Its texts are on the stream only when the host asks for them.
    assert_eq!((marked("assistant").len(), marked("user").len()), (1, 1), "{}", finished.stdout);
    assert_eq!(marked("assistant")[0]["message"]["content"][0]["type"], "tool_use");
    assert!(marked("assistant").iter().chain(&marked("user")).all(|line| line["session_id"] == session));
    assert_eq!(finished.system("init").len(), 1, "a child is not announced as a session");
    let outcome = finished.of("user").pop().unwrap();
    assert_eq!(outcome["parent_tool_use_id"], Value::Null);
    let result = &outcome["tool_use_result"];
    assert_eq!((&result["status"], &result["agent"]), (&json!("completed"), &json!("general-purpose")));
    assert_eq!((&result["result"], &result["numTurns"]), (&json!("seen"), &json!(2)));
    assert!(keys(result).contains(&"agentId"), "{result}");
}

#[test]
fn a_child_has_a_log_of_its_own() {
    let sandbox = Sandbox::new();
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")],
        vec![Reply::text("words of the child")],
    );
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    let logs = child_logs(&sandbox);
    assert_eq!(logs.len(), 1);
    let entries = lines(&logs[0]);
    let spoken: Vec<&Value> =
        entries.iter().filter(|line| line["type"] == "user" || line["type"] == "assistant").collect();
    assert_eq!(spoken.len(), 2, "{entries:#?}");
    assert!(spoken.iter().all(|line| line["isSidechain"] == true), "{spoken:#?}");
    assert!(records(&sandbox, "assistant").iter().all(|line| line["isSidechain"] != true));
    assert!(logs[0].file_name().unwrap().to_str().unwrap().starts_with("agent-"));
}

#[test]
fn the_parent_pays_for_its_children() {
    let sandbox = Sandbox::new();
    let price = json!({ "input": 2.0, "output": 10.0, "cacheRead": 1.0, "cacheWrite": 4.0 });
    let settings = json!({ "model": { "prices": { MODEL: price } } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let usage = json!({ "input_tokens": 1000, "output_tokens": 100 });
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")],
        vec![crate::turns::support::counted("counted", usage)],
    );
    let result = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    // The parent's two replies have 10 and 5 tokens each.
    assert_eq!(
        (&result["usage"]["input_tokens"], &result["usage"]["output_tokens"]),
        (&json!(1020), &json!(110))
    );
    assert_eq!(result["modelUsage"][MODEL]["inputTokens"], 1020);
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert!((cost - (1020.0 * 2.0 + 110.0 * 10.0) / 1_000_000.0).abs() < 1e-9, "{cost}");
    let ended = records(&sandbox, "task-end");
    assert_eq!((ended.len(), &ended[0]["account"]["tool_use_id"]), (1, &json!("toolu_agent")));
}

#[test]
fn two_children_of_one_reply_run_together() {
    let sandbox = Sandbox::new();
    // Each child waits for the other one's file, so that neither ends alone.
    let meet = |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done");
    let commands = [meet("left", "right"), meet("right", "left")];
    let server = ScriptedServer::start(Script::by(move |request, _| {
        let replied = qoder_testkit::assistant_count(request);
        let first = request["messages"][0].to_string();
        let side = if first.contains("LEFT") { 0 } else { 1 };
        match (is_child(request), replied) {
            (false, 0) => calls(&[
                ("toolu_left", "Agent", json!({ "prompt": format!("{TASK} LEFT") })),
                ("toolu_right", "Agent", json!({ "prompt": format!("{TASK} RIGHT") })),
            ]),
            (true, 0) => calls(&[("toolu_meet", "Bash", json!({ "command": commands[side] }))]),
            (true, _) => Reply::text(["left met", "right met"][side]),
            (false, _) => Reply::text("done"),
        }
    }));
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]);
    finished.success();
    let expected = [("toolu_left", "left met"), ("toolu_right", "right met")];
    let told = results_in(bodies(&server).last().unwrap());
    assert_eq!(told, expected.map(|(id, text)| (id.to_owned(), text.to_owned(), false)));
    assert_eq!(child_logs(&sandbox).len(), 2);
}
