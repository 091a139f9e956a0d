//! Agents in the background: the call returns at once, the host sees a task, the model reads of the end in a turn of its
//! own, and the run is held open until then.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_logs, family, is_child};
use crate::turns::support::{
    Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream, wait_until,
};

fn launch() -> Reply {
    calls(&[agent("toolu_agent", &json!({ "run_in_background": true }))])
}

/// A child that waits until the parent lets it continue.
fn waiting() -> Vec<Reply> {
    let wait = ("toolu_wait", "Bash", json!({ "command": "until [ -e go ]; do sleep 0.02; done" }));
    vec![calls(&[wait]), Reply::text("answer of the child")]
}

fn results(server: &ScriptedServer) -> Vec<Value> {
    bodies(server).into_iter().filter(|request| !is_child(request)).collect()
}

#[test]
fn the_launch_result_returns_at_once_and_the_end_wakes_another_turn() {
    let sandbox = Sandbox::new();
    let server = family(vec![launch(), Reply::text("launched it"), Reply::text("heard of it")], waiting());
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Agent,Bash"]);
    let live = Live::start(command);
    // The end of a child before the end of the turn is reported in that turn.
    let has_ended = |file: &std::path::PathBuf| {
        std::fs::read_to_string(file).is_ok_and(|log| log.contains("\"type\":\"turn-end\""))
    };
    wait_until("the first turn ends", || sandbox.session_files().iter().any(has_ended));
    sandbox.write("go", "");
    let finished = live.finish();
    let results_told: Vec<Value> = finished.of("result");
    let texts: Vec<&Value> = results_told.iter().map(|result| &result["result"]).collect();
    assert_eq!(texts, [&json!("launched it"), &json!("heard of it")], "{}", finished.stdout);
    let launched = finished
        .of("user")
        .into_iter()
        .find(|line| line["tool_use_result"]["status"] == "async_launched")
        .unwrap();
    let launched = &launched["tool_use_result"];
    let started = finished.system("task_started");
    assert_eq!(started.len(), 1);
    assert_eq!(
        (&started[0]["task_type"], &started[0]["task_id"], &started[0]["tool_use_id"]),
        (&json!("local_agent"), &launched["agentId"], &json!("toolu_agent"))
    );
    let progress = finished.system("task_progress");
    assert!(progress.iter().any(|line| line["last_tool_name"] == "Bash"), "{progress:?}");
    assert!(progress.iter().all(|line| line["usage"]["total_tokens"].as_u64() > Some(0)), "{progress:?}");
    let ended = finished.system("task_notification");
    assert_eq!((ended.len(), &ended[0]["status"]), (1, &json!("completed")));
    assert_eq!(ended[0]["output_file"], launched["outputFile"]);
    let requests = results(&server);
    let last = requests.last().unwrap()["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("completed") && last.contains("answer of the child"), "{last}");
    assert_calls_in_order(&sandbox);
}

#[test]
fn background_of_the_definition_counts() {
    let sandbox = Sandbox::new();
    let text = "---\nname: slow\ndescription: d\nbackground: true\n---\nYou are slow.\n";
    sandbox.write(sandbox.config().join("agents/slow.md"), text);
    let server = family(
        vec![calls(&[agent("toolu_agent", &json!({ "agent": "slow" }))])],
        vec![Reply::text("at last")],
    );
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    assert!(finished.stdout.contains("async_launched"), "{}", finished.stdout);
    assert_eq!(finished.system("task_notification")[0]["status"], "completed");
}

#[test]
fn task_output_reads_it_and_task_stop_stops_it() {
    for (tool, more, told, status) in [
        ("TaskOutput", json!({ "timeout": 60_000 }), "answer of the child", "completed"),
        ("TaskStop", json!({}), "Stopped", "stopped"),
    ] {
        let sandbox = Sandbox::new();
        if tool == "TaskOutput" {
            sandbox.write("go", "");
        }
        let child = waiting();
        let server = ScriptedServer::start(qoder_testkit::Script::by(move |request, _| {
            let replied = qoder_testkit::assistant_count(request);
            match (is_child(request), replied) {
                (true, replied) => child.get(replied).cloned().unwrap_or_else(|| Reply::text("done")),
                (false, 0) => launch(),
                (false, 1) => {
                    let (_, text, _) = results_in(request).remove(0);
                    let at = text.find("task ").unwrap() + "task ".len();
                    let mut input = json!({ "task_id": text[at..at + 32] });
                    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                    calls(&[("toolu_task", tool, input)])
                }
                (false, _) => Reply::text("done"),
            }
        }));
        let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]);
        assert_eq!(finished.success()["result"], "done", "no second turn: the model knows of the end");
        let requests = results(&server);
        let (_, text, failed) = results_in(requests.last().unwrap()).remove(0);
        assert!(text.contains(told) && !failed, "{text}");
        let ended = finished.system("task_notification");
        assert_eq!((ended.len(), &ended[0]["status"]), (1, &json!(status)));
    }
}

#[test]
fn a_running_agent_moves_to_the_background() {
    let sandbox = Sandbox::new();
    let started =
        ("toolu_wait", "Bash", json!({ "command": "touch started; until [ -e go ]; do sleep 0.02; done" }));
    let go = ("toolu_go", "Bash", json!({ "command": "touch go" }));
    let server = family(
        vec![
            calls(&[agent("toolu_agent", &json!({}))]),
            calls(&[go]),
            Reply::text("went on"),
            Reply::text("heard"),
        ],
        vec![calls(&[started]), Reply::text("answer of the child")],
    );
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Agent,Bash"]);
    let live = Live::start(command);
    wait_until("the child works", || sandbox.project().join("started").exists());
    live.signal(Signal::USR2);
    let finished = live.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let requests = results(&server);
    let (_, text, failed) = results_in(&requests[1]).remove(0);
    assert!(text.contains("works in the background") && !failed, "{text}");
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("answer of the child"), "{last}");
    assert_eq!(finished.system("task_notification").len(), 1);
}

#[test]
fn killed_in_the_middle_it_is_reported() {
    let sandbox = Sandbox::new();
    let session = "73000000-0000-4000-8000-000000000001";
    let started = ("toolu_wait", "Bash", json!({ "command": "touch started; sleep 600" }));
    let server = family(
        vec![launch(), Reply::text("launched it"), Reply::text("I see")],
        vec![calls(&[started]), Reply::text("never")],
    );
    let mut first = command(&sandbox, &server, Wire::Messages);
    first.args(["-p", "go", "--output-format", "stream-json", "--session-id", session]);
    first.args(["--allowed-tools", "Agent,Bash"]);
    let mut live = Live::start(first);
    live.until(|line| line["type"] == "result");
    wait_until("the child works", || sandbox.project().join("started").exists());
    live.signal(Signal::KILL);
    drop(live);
    let finished = stream(&sandbox, &server, &["and now?", "--resume", session]);
    assert_eq!(finished.success()["result"], "I see");
    let ended = finished.system("task_notification");
    assert_eq!((ended.len(), &ended[0]["status"]), (1, &json!("stopped")), "{}", finished.stdout);
    let last = results(&server).pop().unwrap().to_string();
    assert!(last.contains("has an unknown outcome"), "{last}");
    let ends = records(&sandbox, "task-end");
    assert_eq!((ends.len(), &ends[0]["account"]["num_turns"]), (1, &json!(1)));
    assert_eq!(child_logs(&sandbox).len(), 1);
}
