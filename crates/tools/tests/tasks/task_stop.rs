//! TaskStop: the whole tree of a task ends, also one that ignores requests; what has ended or never was is an error.

use crate::common::{Bench, appears, is_gone, text};
use qoder_types::{CallOutcome, TaskStatus};
use serde_json::json;

#[tokio::test]
async fn a_task_ends_with_everything_it_started() {
    let bench = Bench::new();
    let (id, file) = bench.task("echo out; sleep 300 & echo $! > child; wait").await;
    let child = appears(&bench.path("child")).await;
    appears(&file).await;
    let outcome = bench.run("TaskStop", json!({ "task_id": id, "reason": "not needed" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    let structured = &outcome.structured;
    assert_eq!((&structured["success"], &structured["task_id"]), (&json!(true), &json!(id)));
    assert!(structured["message"].as_str().unwrap().contains("not needed"));
    assert!(structured["command"].as_str().unwrap().starts_with("echo out"));
    assert_eq!(outcome.ended_tasks, std::slice::from_ref(&id));
    // Told before the call returned, so nothing is waited for.
    let told = bench.news.lock().unwrap().iter().any(|item| {
        matches!(item, qoder_core::ports::ToolProgress::TaskEnded(end)
            if end.task_id == id && end.status == TaskStatus::Stopped)
    });
    assert!(told);
    is_gone(&child).await;
    let output = bench.succeed("TaskOutput", json!({ "task_id": id })).await;
    assert!(output.contains("was stopped") && output.ends_with("out\n"), "{output}");
}

#[tokio::test]
async fn one_that_ignores_requests_is_killed() {
    let bench = Bench::new();
    let command = "trap '' TERM; bash -c 'trap \"\" TERM; echo $$ > child; while true; do sleep 0.1; done'";
    let (id, _) = bench.task(command).await;
    let child = appears(&bench.path("child")).await;
    bench.succeed("TaskStop", json!({ "shell_id": id })).await;
    is_gone(&child).await;
    assert_eq!(bench.shared.running_tasks(), 0);
}

#[tokio::test]
async fn what_does_not_run_cannot_be_stopped() {
    let bench = Bench::new();
    let unknown = bench.fail("TaskStop", json!({ "task_id": "bash_0" })).await;
    assert!(unknown.contains("no task bash_0"), "{unknown}");
    let (id, _) = bench.task("true").await;
    bench.ended_task().await;
    bench.succeed("TaskOutput", json!({ "task_id": id })).await;
    let ended = bench.fail("TaskStop", json!({ "task_id": id })).await;
    assert!(ended.contains("not running") && ended.contains("completed"), "{ended}");
    let nameless = bench.fail("TaskStop", json!({})).await;
    assert!(nameless.contains("task_id"), "{nameless}");
}
