//! Endpoints that count calls anew in every reply: each call of a session has an id of its own, what is sent to any endpoint
//! has every id once and in a shape that its protocol accepts, and a session moves from one provider to another.

use std::collections::HashSet;

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::agents::{TASK, family};
use crate::turns::support::{Wire, assert_calls_in_order, bodies, calls, command, run};

const SESSION: &str = "74000000-0000-4000-8000-000000000003";

fn bash(id: &str, command: &str) -> Reply {
    calls(&[(id, "Bash", json!({ "command": command }))])
}

/// Asks once in the session over a wire protocol.
fn turn(sandbox: &Sandbox, wire: Wire, resumes: bool, replies: Vec<Reply>) -> (Vec<Value>, ScriptedServer) {
    let server = ScriptedServer::start(qoder_testkit::Script::list(replies));
    let mut command = command(sandbox, &server, wire);
    command.args(["-p", "go", "--output-format", "stream-json", "--include-partial-messages"]);
    command.args(["--allowed-tools", "Bash", if resumes { "--resume" } else { "--session-id" }, SESSION]);
    let finished = run(command);
    finished.success();
    (finished.lines(), server)
}

/// Ids of calls and of results in a request, in order.
fn ids(request: &Value) -> (Vec<String>, Vec<String>) {
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<String>, id: &Value| list.push(id.as_str().unwrap().to_owned());
    for item in request["input"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("function_call") => add(&mut called, &item["call_id"]),
            Some("function_call_output") => add(&mut answered, &item["call_id"]),
            _ => {}
        }
    }
    for message in request["messages"].as_array().into_iter().flatten() {
        message["tool_calls"].as_array().into_iter().flatten().for_each(|call| add(&mut called, &call["id"]));
        if message["role"] == "tool" {
            add(&mut answered, &message["tool_call_id"]);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => add(&mut called, &block["id"]),
                Some("tool_result") => add(&mut answered, &block["tool_use_id"]),
                _ => {}
            }
        }
    }
    (called, answered)
}

#[track_caller]
fn assert_acceptable(request: &Value, wire: Wire, count: usize) {
    let (called, answered) = ids(request);
    assert_eq!(called, answered, "{request:#}");
    assert_eq!(called.len(), count, "{request:#}");
    assert_eq!(called.iter().collect::<HashSet<_>>().len(), count, "every id comes once: {called:?}");
    let longest = if wire == Wire::Chat { 40 } else { 64 };
    let plain = |id: &String| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    assert!(called.iter().all(|id| id.len() <= longest), "{called:?}");
    assert!(wire == Wire::Chat || called.iter().all(plain), "{called:?}");
}

#[test]
fn a_session_with_reused_ids_moves_between_all_protocols() {
    let sandbox = Sandbox::new();
    let mut sent = 0;
    let long = "functions.Bash:0 é ".repeat(20);
    for (number, wire) in Wire::ALL.into_iter().chain(Wire::ALL).enumerate() {
        let replies =
            vec![bash("call_0", "echo a >> effects"), bash(&long, "echo b >> effects"), Reply::text("done")];
        let (lines, server) = turn(&sandbox, wire, number > 0, replies);
        let requests = bodies(&server);
        assert_acceptable(requests.last().unwrap(), wire, sent + 2);
        sent += 2;
        // What is streamed in pieces has the ids of the messages.
        let told = |kind: &str, path: &str| -> Vec<Value> {
            let of_kind = lines.iter().filter(|line| line["type"] == kind);
            of_kind.filter_map(|line| line.pointer(path)).filter(|id| id.is_string()).cloned().collect()
        };
        let pieces = told("stream_event", "/event/content_block/id");
        assert_eq!(pieces, told("assistant", "/message/content/0/id"));
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces, told("user", "/message/content/0/tool_use_id"));
    }
    assert_calls_in_order(&sandbox);
    let effects = std::fs::read_to_string(sandbox.project().join("effects")).unwrap();
    assert_eq!(effects, "a\nb\n".repeat(6));
}

#[test]
fn an_endpoint_gets_back_the_ids_that_it_gave() {
    for (wire, id) in
        [(Wire::Messages, "toolu_01A"), (Wire::Chat, "functions.Bash:0"), (Wire::Responses, "call_x-1")]
    {
        let sandbox = Sandbox::new();
        let (_, server) = turn(&sandbox, wire, false, vec![bash(id, "true"), Reply::text("done")]);
        assert_eq!(ids(bodies(&server).last().unwrap()).0, [id]);
    }
}

#[test]
fn a_log_in_which_ids_come_again_can_be_continued() {
    let sandbox = Sandbox::new();
    let mut lines = String::new();
    let mut parent = Value::Null;
    let mut add = |kind: &str, content: Value| {
        let uuid = format!("00000000-0000-4000-8000-{:012}", lines.lines().count());
        let role = kind;
        let message = json!({ "role": role, "model": "m", "id": uuid, "content": content });
        let line = json!({ "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION,
            "timestamp": "2026-01-02T03:04:05.678Z", "cwd": sandbox.project(), "message": message });
        lines.push_str(&format!("{line}\n"));
        parent = json!(uuid);
    };
    add("user", json!("begin"));
    for number in 0..3 {
        add(
            "assistant",
            json!([{ "type": "tool_use", "id": "call_0", "name": "Bash", "input": { "command": number } }]),
        );
        add(
            "user",
            json!([{ "type": "tool_result", "tool_use_id": "call_0", "content": format!("result {number}") }]),
        );
    }
    add("assistant", json!([{ "type": "text", "text": "that was it" }]));
    let name: String = sandbox
        .project()
        .to_string_lossy()
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    sandbox.write(sandbox.config().join("projects").join(name).join(format!("{SESSION}.jsonl")), lines);
    let (_, server) = turn(&sandbox, Wire::Messages, true, vec![bash("call_0", "true"), Reply::text("done")]);
    assert_acceptable(bodies(&server).last().unwrap(), Wire::Messages, 4);
    let (_, again) = turn(&sandbox, Wire::Messages, true, vec![Reply::text("done")]);
    let (before, after) = (bodies(&server), bodies(&again));
    assert_eq!(
        ids(before.last().unwrap()),
        ids(after.last().unwrap()),
        "the ids are the same in every process"
    );
}

#[test]
fn two_agents_whose_calls_have_one_id_are_two_agents() {
    let sandbox = Sandbox::new();
    let start = |word: &str| {
        let input = json!({ "prompt": format!("{TASK}: {word}"), "description": word });
        calls(&[("call_0", "Agent", input)])
    };
    let server = family(
        vec![start("one"), start("two"), Reply::text("done")],
        vec![bash("call_0", "echo x >> effects"), Reply::text("child is done")],
    );
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Agent,Bash"]);
    let finished = run(command);
    finished.success();
    assert_eq!(std::fs::read_to_string(sandbox.project().join("effects")).unwrap(), "x\nx\n");
    let started = finished.system("task_started");
    assert_eq!(started.len(), 2);
    assert_ne!(started[0]["tool_use_id"], started[1]["tool_use_id"]);
    assert_calls_in_order(&sandbox);
}
