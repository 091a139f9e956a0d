//! Bash in the background: it returns at once, is announced, and ends with its session.
//!
//! The register knows every running task, whole process groups included.

mod common;

use common::{Bench, appears, is_gone, text};
use qoder_core::ports::ToolProgress;
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn a_task_is_announced_and_its_output_kept() {
    let bench = Bench::new();
    let command = "echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; echo end";
    let input = json!({ "command": command, "run_in_background": true, "description": "waits" });
    let outcome = bench.run("Bash", input).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed);
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap().to_owned();
    let file = outcome.structured["persistedOutputPath"].as_str().unwrap().to_owned();
    assert!(text(&outcome).contains(&id) && text(&outcome).contains(&file));
    assert_eq!(bench.shared.running_tasks(), 1);
    let started = bench.news.lock().unwrap().iter().any(|item| {
        matches!(item, ToolProgress::TaskStarted { task_id, description } if *task_id == id && description == "waits")
    });
    assert!(started);
    bench.write("go", "");
    let (status, output) = bench.ended_task().await;
    assert_eq!((status, output.to_str()), ("completed", Some(file.as_str())));
    let content = std::fs::read_to_string(output).unwrap();
    assert!(
        content.contains("out\n") && content.contains("err\n") && content.ends_with("end\n"),
        "{content}"
    );
    assert_eq!(bench.shared.running_tasks(), 0);
}

#[tokio::test]
async fn a_failing_task_ends_as_failed() {
    let bench = Bench::new();
    bench.succeed("Bash", json!({ "command": "exit 4", "run_in_background": true })).await;
    assert_eq!(bench.ended_task().await.0, "failed");
    let told = bench.news.lock().unwrap().iter().any(
        |item| matches!(item, ToolProgress::TaskEnded { summary, .. } if summary.contains("exit code 4")),
    );
    assert!(told);
}

#[tokio::test]
async fn shutting_down_stops_tasks_that_ignore_requests() {
    let bench = Bench::new();
    let command = "trap '' TERM; bash -c 'trap \"\" TERM; echo $$ > child; while true; do sleep 0.1; done'";
    bench.succeed("Bash", json!({ "command": command, "run_in_background": true })).await;
    bench.succeed("Bash", json!({ "command": "sleep 300", "run_in_background": true })).await;
    let child = appears(&bench.path("child")).await;
    assert_eq!(bench.shared.running_tasks(), 2);
    bench.shared.shutdown().await;
    assert_eq!(bench.shared.running_tasks(), 0);
    assert_eq!(bench.ended_task().await.0, "stopped");
    is_gone(&child).await;
}

#[tokio::test]
async fn a_lost_session_takes_its_tasks_along() {
    let bench = Bench::new();
    let input = json!({ "command": "sleep 300 & echo $! > child; wait", "run_in_background": true });
    bench.succeed("Bash", input).await;
    let child = appears(&bench.path("child")).await;
    let Bench { shared, .. } = bench;
    drop(shared);
    is_gone(&child).await;
}

#[tokio::test]
async fn a_session_without_a_register_refuses() {
    let bench = Bench::new();
    let mut context = bench.context(common::never());
    context.shared = std::sync::Arc::new(());
    let input = json!({ "command": "touch trace", "run_in_background": true });
    let outcome = bench.tool("Bash").run(input, context).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert!(!bench.path("trace").exists(), "the command must not have started");
}
