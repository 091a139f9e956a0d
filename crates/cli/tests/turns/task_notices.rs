//! The model reads of the end of a background task once, before its next reply, in a notice behind everything it has
//! seen already: inside the turn, or in the next one, also when another process drives that. A result that reports the
//! end makes the notice needless.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{assert_calls_in_order, bodies, calls, records, stream};

const SESSION: &str = "50000000-0000-4000-8000-0000000000a1";
const ALLOWED: [&str; 2] = ["--allowed-tools", "Bash"];

fn background(id: &str, command: &str) -> Reply {
    calls(&[(id, "Bash", json!({ "command": command, "run_in_background": true }))])
}

/// A call that waits until the log holds the end of a task.
fn wait_for_end() -> Reply {
    let command =
        "until grep -q '\"type\":\"task-end\"' \"$QODER_CONFIG_DIR\"/projects/*/*.jsonl; do sleep 0.02; done";
    calls(&[("toolu_wait", "Bash", json!({ "command": command }))])
}

fn notices(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let texts = messages.iter().flat_map(|message| match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
        }
        other => panic!("{other}"),
    });
    texts.filter(|text| text.contains("[Background task")).collect()
}

fn assert_only_growing(server: &ScriptedServer) {
    let requests = server.requests();
    for pair in requests.windows(2) {
        let open = pair[0].body.strip_suffix(b"]}").unwrap();
        assert!(pair[1].body.starts_with(open), "a request changed what an earlier one had sent");
    }
}

#[test]
fn inside_the_turn() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => background("toolu_task", "echo from the task; exit 3"),
        1 => wait_for_end(),
        _ => Reply::text("done"),
    }));
    let arguments = ["go", "--session-id", SESSION, "--allowed-tools", "Bash"];
    stream(&sandbox, &server, &arguments).success();
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 3);
    let told = notices(&bodies[2]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("failed with exit code 3") && told[0].contains("from the task"), "{}", told[0]);
    let start = &records(&sandbox, "task-start")[0];
    assert!(told[0].contains(start["taskId"].as_str().unwrap()));
    assert!(told[0].contains(start["outputFile"].as_str().unwrap()));
    assert_only_growing(&server);
    // The notice names its tasks, so no later turn repeats it.
    stream(&sandbox, &server, &["more", "--resume", SESSION]).success();
    assert_eq!(notices(crate::turns::support::bodies(&server).last().unwrap()).len(), 1);
    let entries: Vec<Value> =
        records(&sandbox, "user").into_iter().filter(|entry| entry.get("tasks").is_some()).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0]["origin"], &entries[0]["isMeta"]), (&json!("notice"), &json!(true)));
    assert_eq!(entries[0]["tasks"], json!([start["taskId"]]));
    assert_calls_in_order(&sandbox);
    assert_only_growing(&server);
}

#[test]
fn in_the_next_turn_of_another_process() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => background("toolu_task", "echo so far; sleep 60"),
        _ => Reply::text("done"),
    }));
    let first = stream(&sandbox, &server, &["go", "--session-id", SESSION, ALLOWED[0], ALLOWED[1]]);
    first.success();
    assert!(bodies(&server).iter().all(|body| notices(body).is_empty()), "it had not ended");
    let second = stream(&sandbox, &server, &["more", "--resume", SESSION]);
    second.success();
    assert!(second.system("task_notification").is_empty(), "the first process announced it");
    let told = notices(bodies(&server).last().unwrap());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("was stopped"), "{}", told[0]);
    stream(&sandbox, &server, &["even more", "--resume", SESSION]).success();
    assert_eq!(notices(bodies(&server).last().unwrap()).len(), 1);
    assert_only_growing(&server);
}

#[test]
fn a_result_that_tells_the_end_makes_it_needless() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|request, number| {
        let task = || {
            let text = request.to_string();
            let at = text.find("bash_").unwrap();
            text[at..at + "bash_".len() + 12].to_owned()
        };
        match number {
            0 => background("toolu_1", "sleep 60"),
            1 => calls(&[("toolu_2", "TaskStop", json!({ "task_id": task() }))]),
            2 => calls(&[("toolu_3", "TaskOutput", json!({ "task_id": task() }))]),
            _ => Reply::text("done"),
        }
    }));
    let finished = stream(&sandbox, &server, &["go", ALLOWED[0], ALLOWED[1]]);
    finished.success();
    assert!(notices(bodies(&server).last().unwrap()).is_empty());
    assert_eq!(finished.system("task_notification")[0]["status"], "stopped");
    // The end is on record before the result that reports it.
    let lines = sandbox.transcript_lines();
    let place = |found: &dyn Fn(&Value) -> bool| lines.iter().position(found).unwrap();
    let start = place(&|line| line["type"] == "task-start");
    let end = place(&|line| line["type"] == "task-end");
    let results = |id: &str| place(&|line| line["message"]["content"][0]["tool_use_id"] == id);
    assert!(start < results("toolu_1") && results("toolu_1") < end && end < results("toolu_2"));
    assert_eq!(lines[results("toolu_2")]["tasks"], json!([lines[start]["taskId"]]));
    assert!(lines[results("toolu_3")].get("tasks").is_none(), "the notice appears once");
    assert_eq!((&lines[end]["status"], lines[end].get("exitCode").is_some()), (&json!("stopped"), true));
}
