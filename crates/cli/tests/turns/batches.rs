//! The calls of one reply: reading ones run together, others one at a time and in order, a failing one does not disturb
//! the others, and the model reads the results in the order of its calls. An interrupt gives each of them an outcome.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{
    Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream, wait_until,
};

fn server(wanted: &[(&str, &str, Value)]) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(vec![calls(wanted), Reply::text("done")]))
}

#[test]
fn reading_calls_are_started_together_and_others_in_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "alpha\n");
    let wanted = [
        ("toolu_1", "Read", json!({ "file_path": "a.txt" })),
        ("toolu_2", "Glob", json!({ "pattern": "*.txt" })),
        ("toolu_3", "Bash", json!({ "command": "touch b.txt" })),
        ("toolu_4", "Bash", json!({ "command": "mv b.txt c.txt" })),
        ("toolu_5", "Glob", json!({ "pattern": "*.txt" })),
        ("toolu_6", "Read", json!({ "file_path": "a.txt" })),
    ];
    let server = server(&wanted);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Bash"]).success();
    assert_calls_in_order(&sandbox);
    let results = results_in(&bodies(&server)[1]);
    let order: Vec<&str> = results.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(order, ["toolu_1", "toolu_2", "toolu_3", "toolu_4", "toolu_5", "toolu_6"]);
    assert!(results.iter().all(|(_, _, failed)| !failed), "{results:?}");
    assert!(!results[1].1.contains("c.txt") && results[4].1.contains("c.txt"), "{results:?}");
    assert_eq!(groups(&sandbox), [2, 1, 1, 2]);
}

/// How many calls were started before any of them ended.
fn groups(sandbox: &Sandbox) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut started = 0;
    for line in sandbox.transcript_lines() {
        if line["type"] == "tool-start" {
            started += 1;
        } else if line["origin"] == "tool_result" && started > 0 {
            groups.push(started);
            started = 0;
        }
    }
    groups
}

#[test]
fn a_failing_call_does_not_disturb_its_siblings() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "alpha\n");
    let wanted = [
        ("toolu_1", "Read", json!({ "file_path": "missing.txt" })),
        ("toolu_2", "Read", json!({ "file_path": "a.txt" })),
        ("toolu_3", "Bash", json!({ "command": "mkdir one && exit 3" })),
        ("toolu_4", "Nothing", json!({})),
        ("toolu_5", "Bash", json!({ "command": "mkdir two" })),
    ];
    let server = server(&wanted);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Bash"]).success();
    let failed: Vec<bool> =
        results_in(&bodies(&server)[1]).into_iter().map(|(_, _, failed)| failed).collect();
    assert_eq!(failed, [true, false, true, true, false]);
    assert!(sandbox.project().join("one").exists() && sandbox.project().join("two").exists());
}

#[test]
fn results_are_read_in_the_order_of_the_calls_whatever_ends_first() {
    let sandbox = Sandbox::new();
    // A child runs together with its neighbour and needs two replies, so it ends long after it.
    let slow = ("toolu_slow", "Agent", json!({ "prompt": "CHILD TASK" }));
    let fast = ("toolu_fast", "Glob", json!({ "pattern": "*" }));
    let server = ScriptedServer::start(Script::by(move |request, _| {
        let replied = qoder_testkit::assistant_count(request);
        match (crate::turns::agents::is_child(request), replied) {
            (false, 0) => calls(&[slow.clone(), fast.clone()]),
            (true, 0) => calls(&[("toolu_nap", "Bash", json!({ "command": "sleep 0.3" }))]),
            (true, _) => Reply::text("slow"),
            (false, _) => Reply::text("done"),
        }
    }));
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]).success();
    let order: Vec<String> =
        results_in(bodies(&server).last().unwrap()).into_iter().map(|(id, _, _)| id).collect();
    assert_eq!(order, ["toolu_slow", "toolu_fast"]);
}

#[test]
fn an_interrupt_gives_each_call_an_outcome() {
    let sandbox = Sandbox::new();
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "mkdir one" })),
        ("toolu_2", "Bash", json!({ "command": "touch running; sleep 600" })),
        ("toolu_3", "Bash", json!({ "command": "mkdir three" })),
    ];
    let server = server(&wanted);
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Bash"]);
    let live = Live::start(command);
    wait_until("the second call runs", || sandbox.project().join("running").exists());
    live.interrupt();
    assert_eq!(live.finish().code, 130);
    assert_calls_in_order(&sandbox);
    assert!(sandbox.project().join("one").exists() && !sandbox.project().join("three").exists());
    let outcomes: Vec<Value> = records(&sandbox, "user")
        .into_iter()
        .filter(|line| line["origin"] == "tool_result")
        .map(|line| line["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["completed", "interrupted", "not_run"]);
}
