//! Bash: however a command ends, nothing of it survives and no call waits for it forever.
//!
//! Time limits, silence, cancellation, processes that ignore requests, and daemons that hold the pipe.

use std::time::{Duration, Instant};

use crate::common::{Bench, appears, cancellable, is_gone, text};
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn a_time_limit_stops_the_command_and_its_grandchildren() {
    let bench = Bench::new();
    let command = "echo started; (sleep 300 & echo $! > child; wait) ";
    let outcome = bench.run("Bash", json!({ "command": command, "timeout": 2000 })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert!(text(&outcome).contains("time limit of 2000 ms") && text(&outcome).contains("started"));
    assert_eq!(outcome.structured["timedOutAfterMs"], 2000);
    assert_eq!(outcome.structured["interrupted"], true);
    is_gone(&appears(&bench.path("child")).await).await;
}

#[tokio::test]
async fn a_process_that_ignores_the_request_is_killed() {
    let bench = Bench::new();
    let command = "trap '' TERM; bash -c 'trap \"\" TERM; echo $$ > child; while true; do sleep 0.1; done'";
    let outcome = bench.run("Bash", json!({ "command": command, "timeout": 2000 })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert_eq!(outcome.structured["exitCode"], 137);
    is_gone(&appears(&bench.path("child")).await).await;
}

#[tokio::test]
async fn a_silent_command_is_stopped_and_a_talking_one_is_not() {
    let mut bench = Bench::new();
    bench.settings.bash_inactivity_seconds = 2;
    let silent = bench.fail("Bash", json!({ "command": "sleep 300" })).await;
    assert!(silent.contains("printed nothing for 2 s"), "{silent}");
    let talking = "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.4; done";
    assert!(bench.succeed("Bash", json!({ "command": talking })).await.ends_with("7\n"));
}

#[tokio::test]
async fn cancelling_interrupts() {
    let bench = Bench::new();
    let (cancel, cancelled) = cancellable();
    let input = json!({ "command": "echo $$ > process; sleep 300" });
    let call = bench.run_until("Bash", input, cancelled);
    let canceller = async {
        let process = appears(&bench.path("process")).await;
        cancel.send(()).unwrap();
        process
    };
    let (outcome, process) = tokio::join!(call, canceller);
    assert_eq!(outcome.outcome, CallOutcome::Interrupted);
    assert!(text(&outcome).contains("interrupted"));
    is_gone(&process).await;
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let bench = Bench::new();
    let call = bench.run("Bash", json!({ "command": "sleep 300 & echo $! > child; wait" }));
    let path = bench.path("child");
    let child = tokio::select! {
        _ = call => panic!("the command must not end"),
        child = appears(&path) => child,
    };
    is_gone(&child).await;
}

#[tokio::test]
async fn a_daemon_that_keeps_the_pipe_is_not_waited_for() {
    let bench = Bench::new();
    let start = Instant::now();
    let outcome = bench.run("Bash", json!({ "command": "sleep 300 & echo $! > child; echo done" })).await;
    assert!(start.elapsed() < Duration::from_secs(30), "the daemon sleeps ten times longer");
    assert_eq!(outcome.outcome, CallOutcome::Completed);
    assert!(text(&outcome).starts_with("done\n") && text(&outcome).contains("left behind"));
    is_gone(&appears(&bench.path("child")).await).await;
}

#[tokio::test]
async fn a_daemon_in_its_own_session_is_not_waited_for() {
    let bench = Bench::new();
    let outcome = bench.run("Bash", json!({ "command": "setsid sleep 20 & echo done" })).await;
    assert_eq!(text(&outcome).lines().next(), Some("done"));
    assert_eq!(outcome.outcome, CallOutcome::Completed);
}

#[tokio::test]
async fn the_limit_is_clamped() {
    let mut bench = Bench::new();
    bench.settings.bash_max_timeout_ms = 200;
    let text = bench.fail("Bash", json!({ "command": "sleep 300", "timeout": 9_000_000 })).await;
    assert!(text.contains("time limit of 200 ms"), "{text}");
}
