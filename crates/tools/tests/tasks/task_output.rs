//! TaskOutput: how a task is and what is new of its output, each byte once; waiting that ends with the task, the time or
//! an interrupt; text for the task; tasks of earlier processes.

use std::collections::BTreeMap;

use crate::common::{Bench, HANG_LIMIT, appears, cancellable, never, text};
use qoder_core::state::TaskState;
use qoder_types::{CallOutcome, TaskEnded, TaskStarted, TaskStatus};
use serde_json::json;

#[tokio::test]
async fn the_end_is_awaited_and_told() {
    let bench = Bench::new();
    let (id, _) = bench.task("echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3").await;
    bench.write("go", "");
    let outcome = bench.run("TaskOutput", json!({ "task_id": id })).await;
    let (shown, structured) = (text(&outcome), &outcome.structured);
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{shown}");
    assert!(shown.contains("failed with exit code 3") && shown.ends_with("one\ntwo\n"), "{shown}");
    assert_eq!((&structured["status"], &structured["exitCode"]), (&json!("failed"), &json!(3)));
    assert_eq!(structured["output"], "one\ntwo\n");
    assert_eq!(outcome.ended_tasks, std::slice::from_ref(&id), "the model needs no other notice");
    let again = bench.succeed("TaskOutput", json!({ "task_id": id })).await;
    assert!(again.contains("nothing new"), "{again}");
}

#[tokio::test]
async fn a_look_without_waiting_shows_what_is_new() {
    let bench = Bench::new();
    let (id, file) = bench.task("echo one; until [ -e go ]; do sleep 0.02; done; echo two").await;
    appears(&file).await;
    let look = json!({ "task_id": id, "block": false });
    let outcome = bench.run("TaskOutput", look.clone()).await;
    assert_eq!(
        (&outcome.structured["status"], &outcome.structured["output"]),
        (&json!("running"), &json!("one\n"))
    );
    assert!(outcome.ended_tasks.is_empty() && outcome.structured.get("exitCode").is_none());
    assert_eq!(bench.run("TaskOutput", look.clone()).await.structured["output"], "");
    let outcome = bench.run("TaskOutput", json!({ "task_id": id, "timeout": 1 })).await;
    assert_eq!(outcome.structured["status"], "running");
    bench.write("go", "");
    bench.ended_task().await;
    let outcome = bench.run("TaskOutput", look).await;
    assert_eq!(
        (&outcome.structured["status"], &outcome.structured["output"]),
        (&json!("completed"), &json!("two\n"))
    );
}

#[tokio::test]
async fn two_looks_at_once_share_the_output() {
    let bench = Bench::new();
    let (id, _) = bench.task("until [ -e go ]; do sleep 0.02; done; echo only once").await;
    let look = || bench.run("TaskOutput", json!({ "task_id": id }));
    let go = async {
        bench.write("go", "");
    };
    let (first, second, ()) = tokio::join!(look(), look(), go);
    let outputs = [&first, &second].map(|outcome| outcome.structured["output"].as_str().unwrap().to_owned());
    assert_eq!(outputs.concat(), "only once\n");
    assert!([&first, &second].iter().all(|outcome| outcome.structured["status"] == "completed"));
}

#[tokio::test]
async fn an_interrupt_ends_the_waiting_and_not_the_task() {
    let bench = Bench::new();
    let (id, _) = bench.task("sleep 300").await;
    let (cancel, cancelled) = cancellable();
    let call = bench.run_until("TaskOutput", json!({ "task_id": id, "timeout": 600_000 }), cancelled);
    let (outcome, ()) = tokio::join!(call, async {
        tokio::task::yield_now().await;
        cancel.send(()).unwrap();
    });
    assert_eq!(outcome.outcome, CallOutcome::Interrupted);
    assert_eq!(bench.shared.running_tasks(), 1);
}

#[tokio::test]
async fn text_reaches_the_task_and_its_answer_comes_back() {
    let bench = Bench::new();
    let (id, _) =
        bench.task("while read -r line; do echo \"got $line\"; [ \"$line\" = end ] && exit 5; done").await;
    let answer = bench.succeed("TaskOutput", json!({ "task_id": id, "output": "hello\n" })).await;
    assert!(answer.contains("is running") && answer.ends_with("got hello\n"), "{answer}");
    bench.succeed("TaskOutput", json!({ "task_id": id, "output": "end\n" })).await;
    let ended = bench.succeed("TaskOutput", json!({ "task_id": id })).await;
    assert!(ended.contains("failed with exit code 5"), "{ended}");
    let late = bench.fail("TaskOutput", json!({ "task_id": id, "output": "more\n" })).await;
    assert!(late.contains("it has ended"), "{late}");
    let long = bench.fail("TaskOutput", json!({ "task_id": id, "output": "x".repeat(70_000) })).await;
    assert!(long.contains("70000 bytes"), "{long}");
}

#[tokio::test]
async fn a_task_that_does_not_read_does_not_hold_the_call() {
    let bench = Bench::new();
    let (id, _) = bench.task("sleep 300").await;
    let input = json!({ "task_id": id, "output": "x".repeat(60_000), "block": false });
    bench.succeed("TaskOutput", input).await;
    let input = json!({ "task_id": id, "output": "x".repeat(60_000), "timeout": 50 });
    let refusal = bench.fail("TaskOutput", input).await;
    assert!(refusal.contains("does not read"), "{refusal}");
    bench.shared.shutdown().await;
    assert_eq!(bench.shared.running_tasks(), 0);
}

#[tokio::test]
async fn an_unknown_task_is_answered_with_the_known_ones() {
    let bench = Bench::new();
    let none = bench.fail("TaskOutput", json!({ "task_id": "bash_0" })).await;
    assert!(none.contains("no background task was started"), "{none}");
    let (id, _) = bench.task("sleep 300").await;
    let some = bench.fail("TaskOutput", json!({ "task_id": "bash_0" })).await;
    assert!(some.contains(&format!("{id} (running): sleep 300")), "{some}");
    let mut context = bench.context(never());
    context.shared = std::sync::Arc::new(());
    let outcome = bench.tool("TaskOutput").run(json!({ "task_id": id }), context).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
}

#[tokio::test]
async fn a_task_of_an_earlier_process_is_known_with_its_output() {
    let bench = Bench::new();
    let file = bench.write("left.txt", "how far it came\n");
    let start = TaskStarted {
        task_id: "bash_before".to_owned(),
        tool_use_id: "call".to_owned(),
        description: "builds".to_owned(),
        task_type: "local_bash".to_owned(),
        output_file: file.to_str().unwrap().to_owned(),
        command: "make".to_owned(),
    };
    let end = TaskEnded {
        task_id: "bash_before".to_owned(),
        status: TaskStatus::Unknown,
        summary: "unknown".to_owned(),
        exit_code: None,
        account: None,
    };
    let tasks = BTreeMap::from([(
        "bash_before",
        TaskState { start, end: Some(end), parked: None, told: true, counted: true, listed: true },
    )]);
    bench.shared.adopt(tasks.values());
    let outcome = bench.run("TaskOutput", json!({ "task_id": "bash_before" })).await;
    assert_eq!(outcome.structured["status"], "unknown");
    assert!(text(&outcome).contains("unknown outcome") && text(&outcome).ends_with("how far it came\n"));
    std::fs::remove_file(file).unwrap();
    let gone = bench.succeed("TaskOutput", json!({ "task_id": "bash_before" })).await;
    assert!(gone.contains("cannot be read"), "{gone}");
    assert_eq!(bench.shared.running_tasks(), 0);
}

#[tokio::test]
async fn a_flood_of_output_that_is_no_text_is_bounded() {
    let bench = Bench::new();
    let (id, file) = bench
        .task("printf 'first\\377 '; head -c 200000000 /dev/zero | tr '\\0' '\\201'; printf ' last'")
        .await;
    let outcome = bench.run("TaskOutput", json!({ "task_id": id, "timeout": HANG_LIMIT.as_millis() })).await;
    assert_eq!(outcome.structured["status"], "completed");
    let shown = text(&outcome);
    assert!(shown.chars().count() < 31_000 && shown.contains("first\u{FFFD} "), "{} characters", shown.len());
    assert!(shown.contains("bytes left out") && shown.contains("output is cut here"));
    let size = std::fs::metadata(file).unwrap().len();
    assert!((64 << 20..(64 << 20) + 200).contains(&size), "{size}");
}

#[tokio::test]
async fn a_daemon_that_keeps_the_pipe_does_not_keep_the_task() {
    let bench = Bench::new();
    let (id, _) = bench.task("sleep 300 & echo $! > child; echo done").await;
    let outcome = bench.run("TaskOutput", json!({ "task_id": id })).await;
    assert_eq!(
        (&outcome.structured["status"], &outcome.structured["output"]),
        (&json!("completed"), &json!("done\n"))
    );
    crate::common::is_gone(&appears(&bench.path("child")).await).await;
}
