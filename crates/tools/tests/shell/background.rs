//! Bash in the background: it returns at once, is announced, and ends with its session.
//!
//! The register knows every running task, whole process groups included.

use std::time::Duration;

use crate::common::{Bench, HANG_LIMIT, appears, appears_as, is_gone, text};
use qoder_core::ports::ToolProgress;
use qoder_tools::SessionShared;
use qoder_types::{CallOutcome, TaskStatus};
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
        matches!(item, ToolProgress::TaskStarted { start, .. }
            if start.task_id == id && start.description == "waits" && start.tool_use_id == "call"
                && start.command == command && start.output_file == file && start.task_type == "local_bash")
    });
    assert!(started);
    bench.write("go", "");
    let end = bench.ended_task().await;
    assert_eq!((end.task_id, end.status, end.exit_code), (id, TaskStatus::Completed, Some(0)));
    let content = std::fs::read_to_string(file).unwrap();
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
    let end = bench.ended_task().await;
    assert_eq!((end.status, end.exit_code), (TaskStatus::Failed, Some(4)));
    assert!(end.summary.contains("exit code 4"), "{}", end.summary);
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
    assert_eq!(bench.ended_task().await.status, TaskStatus::Stopped);
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
    let mut context = bench.context(crate::common::never());
    context.shared = std::sync::Arc::new(());
    let input = json!({ "command": "touch trace", "run_in_background": true });
    let outcome = bench.tool("Bash").run(input, context).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert!(!bench.path("trace").exists(), "the command must not have started");
}

#[tokio::test]
async fn a_task_that_nobody_records_is_not_started() {
    let bench = Bench::new();
    let mut context = bench.context(crate::common::never());
    context.progress = std::sync::Arc::new(|_| {});
    let input = json!({ "command": "touch trace", "run_in_background": true });
    let outcome = bench.tool("Bash").run(input, context).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert!(text(&outcome).contains("not started"), "{}", text(&outcome));
    assert_eq!(bench.shared.running_tasks(), 0);
    assert!(!bench.path("trace").exists(), "the command must not have started");
    assert_eq!(std::fs::read_dir(&bench.outputs).unwrap().count(), 0, "no file is left behind");
}

#[tokio::test]
async fn a_task_is_on_record_before_its_command_starts() {
    let bench = Bench::new();
    let mut context = bench.context(crate::common::never());
    let (sender, mut announced) = tokio::sync::mpsc::unbounded_channel();
    context.progress = std::sync::Arc::new(move |item| drop(sender.send(item)));
    let call =
        bench.tool("Bash").run(json!({ "command": "touch trace", "run_in_background": true }), context);
    let call = tokio::spawn(call);
    let Some(ToolProgress::TaskStarted { receipt, .. }) = announced.recv().await else { panic!("no start") };
    tokio::task::yield_now().await;
    assert!(!call.is_finished() && !bench.path("trace").exists(), "it must wait for the record");
    receipt.confirm();
    assert_eq!(call.await.unwrap().outcome, CallOutcome::Completed);
    let Some(ToolProgress::TaskEnded(end)) = announced.recv().await else { panic!("no end") };
    assert_eq!(end.status, TaskStatus::Completed);
    assert!(bench.path("trace").exists());
}

#[tokio::test]
async fn a_command_that_cannot_start_ends_its_task_as_failed() {
    let bench = Bench::new();
    std::fs::remove_dir(&bench.cwd).unwrap();
    let outcome = bench.run("Bash", json!({ "command": "true", "run_in_background": true })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    let end = bench.ended_task().await;
    assert_eq!((end.status, end.exit_code), (TaskStatus::Failed, None));
    assert_eq!(bench.shared.running_tasks(), 0);
}

#[tokio::test]
async fn only_so_many_tasks_run_at_a_time() {
    let bench = Bench::new();
    for _ in 0..32 {
        bench.task("sleep 300").await;
    }
    let refusal = bench.fail("Bash", json!({ "command": "touch trace", "run_in_background": true })).await;
    assert!(refusal.contains("32") && refusal.contains("TaskStop"), "{refusal}");
    assert!(!bench.path("trace").exists());
    bench.shared.shutdown().await;
    assert_eq!(bench.shared.running_tasks(), 0);
    bench.task("true").await;
}

#[tokio::test]
async fn a_task_with_something_new_to_say_is_reported_now_and_then() {
    const EVERY: Duration = Duration::from_millis(20);
    let mut bench = Bench::new();
    bench.shared = SessionShared::reporting_every(EVERY);
    let (id, file) = bench.task("echo one; echo two; until [ -e go ]; do sleep 0.02; done").await;
    appears_as(&file, |text| text == "one\ntwo").await;
    let reports = || {
        let news = bench.news.lock().unwrap();
        let report = |item: &ToolProgress| match item {
            ToolProgress::TaskProgress { task_id, duration_ms, last_line, .. } => {
                assert_eq!(*task_id, id);
                Some((*duration_ms, last_line.clone()))
            }
            ToolProgress::TaskStarted { .. }
            | ToolProgress::TaskParked(_)
            | ToolProgress::TaskEnded(_)
            | ToolProgress::Output(_) => None,
        };
        news.iter().filter_map(report).collect::<Vec<_>>()
    };
    // A report may come before everything is read; then the rest comes with the next one.
    let begun = std::time::Instant::now();
    while reports().last().is_none_or(|(_, line)| line.as_deref() != Some("two")) {
        assert!(begun.elapsed() < HANG_LIMIT, "{:?}", reports());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let complete = reports();
    // Milliseconds are rounded down.
    let least = u64::try_from(EVERY.as_millis()).unwrap() - 1;
    assert!(
        complete.windows(2).all(|two| two[1].0 >= two[0].0 + least) && complete[0].0 >= least,
        "{complete:?}"
    );
    // Nothing new came since: time passes in silence.
    tokio::time::sleep(10 * EVERY).await;
    assert_eq!(reports(), complete);
}
