//! A child ends when its parent is interrupted, killed or its time is over: the call gets an outcome that says so, no
//! process is left, and the child's log stays.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::json;

use crate::turns::agents::{agent, child_logs, family, lines};
use crate::turns::support::{
    Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream, wait_until,
};

const SESSION: &str = "71000000-0000-4000-8000-000000000001";

/// A child that runs a command without an end.
fn endless(more: &serde_json::Value) -> ScriptedServer {
    let run = ("toolu_run", "Bash", json!({ "command": "touch running; sleep 600" }));
    family(
        vec![calls(&[agent("toolu_agent", more)]), Reply::text("done")],
        vec![calls(&[run]), Reply::text("never")],
    )
}

fn start(sandbox: &Sandbox, server: &ScriptedServer) -> Live {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--session-id", SESSION]);
    command.args(["--allowed-tools", "Agent,Bash"]);
    let live = Live::start(command);
    wait_until("the child works", || sandbox.project().join("running").exists());
    live
}

#[test]
fn an_interrupt_stops_the_child() {
    let (sandbox, server) = (Sandbox::new(), endless(&json!({})));
    let live = start(&sandbox, &server);
    live.interrupt();
    let finished = live.finish();
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    assert_eq!(finished.result()["terminal_reason"], "aborted_tools");
    assert_calls_in_order(&sandbox);
    let result = records(&sandbox, "user").into_iter().find(|line| line["origin"] == "tool_result").unwrap();
    assert_eq!(result["outcome"], "interrupted");
    let log = lines(&child_logs(&sandbox)[0]);
    assert_eq!(log.last().unwrap()["type"], "turn-end", "the child's log is closed");
}

#[test]
fn a_time_limit_stops_the_child() {
    let (sandbox, server) = (Sandbox::new(), endless(&json!({ "timeout_ms": 300 })));
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]);
    assert_eq!(finished.success()["result"], "done");
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told[0].2 && told[0].1.contains("time limit"), "{told:?}");
    let outcome = finished.of("user").pop().unwrap();
    assert_eq!(outcome["tool_use_result"]["status"], "failed");
    assert_eq!(child_logs(&sandbox).len(), 1);
}

#[test]
fn without_its_permission_a_killed_child_does_not_go_on() {
    let (sandbox, server) = (Sandbox::new(), endless(&json!({})));
    let live = start(&sandbox, &server);
    live.signal(Signal::KILL);
    drop(live);
    let finished = stream(&sandbox, &server, &["--resume", SESSION]);
    assert_eq!(finished.success()["result"], "done");
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told[0].2 && told[0].1.starts_with("Agent does not go on"), "{told:?}");
    assert!(told[0].1.contains("was cut off after 1 model calls"), "{told:?}");
    assert_calls_in_order(&sandbox);
    let logs = child_logs(&sandbox);
    assert_eq!(logs.len(), 1, "the child is not started again and its log is kept");
    assert!(lines(&logs[0]).iter().any(|line| line["type"] == "tool-start"));
}

#[test]
fn a_child_whose_model_fails_is_an_error_with_the_reason() {
    let fault = crate::turns::support::fault(400, "invalid_request_error", "the child's request is bad");
    let server = family(vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")], vec![fault]);
    let finished = stream(&Sandbox::new(), &server, &["go", "--allowed-tools", "Agent"]);
    assert_eq!(finished.success()["result"], "done");
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told[0].2 && told[0].1.contains("the child's request is bad"), "{told:?}");
}
