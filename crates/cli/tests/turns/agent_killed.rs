//! A child killed in the middle continues from its own log: nothing that has effects runs again, and its answer comes back to
//! the call that started it. A new prompt instead reports what it had done.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::json;

use crate::turns::agents::{agent, child_logs, family, is_child, lines};
use crate::turns::support::{
    Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream, wait_until,
};

const SESSION: &str = "74000000-0000-4000-8000-000000000001";

/// A child that counts its starts and then hangs.
fn server() -> ScriptedServer {
    let first = ("toolu_first", "Bash", json!({ "command": "echo once >> effects" }));
    let hang = ("toolu_hang", "Bash", json!({ "command": "echo hang >> effects; sleep 600" }));
    family(
        vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")],
        vec![calls(&[first]), calls(&[hang]), Reply::text("went on")],
    )
}

fn killed(sandbox: &Sandbox, server: &ScriptedServer) {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--session-id", SESSION]);
    command.args(["--allowed-tools", "Agent,Bash"]);
    let live = Live::start(command);
    let effects = || std::fs::read_to_string(sandbox.project().join("effects")).unwrap_or_default();
    wait_until("the child hangs", || effects().ends_with("hang\n"));
    live.signal(Signal::KILL);
    drop(live);
}

#[test]
fn a_child_killed_in_the_middle_is_resumed() {
    let (sandbox, server) = (Sandbox::new(), server());
    killed(&sandbox, &server);
    let finished = stream(&sandbox, &server, &["--resume", SESSION, "--allowed-tools", "Agent,Bash"]);
    let result = finished.success();
    assert_eq!(result["result"], "done");
    let requests = bodies(&server);
    let told = results_in(requests.iter().rfind(|request| !is_child(request)).unwrap());
    assert_eq!(told, [("toolu_agent".to_owned(), "went on".to_owned(), false)]);
    let child = results_in(requests.iter().rfind(|request| is_child(request)).unwrap());
    assert!(child[0].2 && child[0].1.starts_with("Outcome unknown"), "{child:?}");
    let effects = std::fs::read_to_string(sandbox.project().join("effects")).unwrap();
    assert_eq!(effects, "once\nhang\n", "nothing ran twice");
    let logs = child_logs(&sandbox);
    assert_eq!(logs.len(), 1, "it is the same child");
    let prompts = lines(&logs[0]).into_iter().filter(|line| line["origin"] == "prompt").count();
    assert_eq!(prompts, 1);
    assert_calls_in_order(&sandbox);
    assert_eq!((records(&sandbox, "task-start").len(), records(&sandbox, "task-end").len()), (1, 1));
    assert_eq!(result["subagents"][0]["num_turns"], 3, "the calls of both processes: {result:#}");
    assert_eq!(finished.system("task_started").len(), 1, "the host of this process sees it start");
    assert_eq!(finished.system("task_notification")[0]["status"], "completed");
}

#[test]
fn a_new_prompt_reports_what_the_child_had_done() {
    let (sandbox, server) = (Sandbox::new(), server());
    killed(&sandbox, &server);
    let finished = stream(&sandbox, &server, &["something else", "--resume", SESSION]);
    finished.success();
    let requests = bodies(&server);
    let last = requests.last().unwrap().to_string();
    for part in
        ["general-purpose", "was cut off after 2 model calls", "agent-", "how these calls of it ended: Bash"]
    {
        assert!(last.contains(part), "{part}: {last}");
    }
    let ends = records(&sandbox, "task-end");
    assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!("unknown")));
    assert!(!last.contains("Background task"), "the model reads of it once");
    assert_calls_in_order(&sandbox);
    let effects = std::fs::read_to_string(sandbox.project().join("effects")).unwrap();
    assert_eq!(effects, "once\nhang\n");
}
