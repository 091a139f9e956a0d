//! A command in the foreground that is moved to the background: the call returns at once with the output so far, and
//! the rest goes to the task's file. No byte is lost and none comes twice.

use crate::common::{Bench, appears, text};
use qoder_types::{CallOutcome, TaskStatus};
use serde_json::json;

/// Prints what is given, waits for the file `go`, prints again.
const TWO_PARTS: &str = "echo before; echo wrong >&2; touch ready; until [ -e go ]; do sleep 0.02; done; echo after; echo worse >&2; exit 7";

#[tokio::test]
async fn the_call_returns_and_the_command_goes_on() {
    let bench = Bench::new();
    let call = bench.run("Bash", json!({ "command": TWO_PARTS }));
    let moving = async {
        while !bench.path("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(bench.shared.move_to_background(Some("another call")), 0);
        assert_eq!(bench.shared.move_to_background(Some("call")), 1);
    };
    let (outcome, ()) = tokio::join!(call, moving);
    assert_eq!(outcome.outcome, CallOutcome::Completed);
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap().to_owned();
    let file = outcome.structured["persistedOutputPath"].as_str().unwrap().to_owned();
    assert!(text(&outcome).contains(&id) && text(&outcome).contains("moved to the background"));
    assert_eq!(bench.shared.running_tasks(), 1);
    assert_eq!(bench.shared.move_to_background(None), 0, "it is no longer in the foreground");
    bench.write("go", "");
    let end = bench.ended_task().await;
    assert_eq!((end.status, end.exit_code), (TaskStatus::Failed, Some(7)));
    let rest = std::fs::read_to_string(file).unwrap();
    let so_far = |name: &str| outcome.structured[name].as_str().unwrap().to_owned();
    // What was printed before may still be on its way when the call is moved; it comes once, on either side.
    for (line, may_be_early) in [("before", true), ("wrong", true), ("after", false), ("worse", false)] {
        let early = (so_far("stdout") + &so_far("stderr")).matches(line).count();
        assert!(early == 0 || may_be_early, "{line}: {}", text(&outcome));
        assert_eq!(early + rest.matches(line).count(), 1, "{line}: {}, then {rest}", text(&outcome));
    }
    let looked = bench.run("TaskOutput", json!({ "task_id": id })).await;
    assert_eq!(looked.structured["output"], rest);
    let refused = bench.fail("TaskOutput", json!({ "task_id": id, "output": "x" })).await;
    assert!(refused.contains("has ended"), "{refused}");
}

#[tokio::test]
async fn a_stream_of_lines_is_split_between_call_and_task() {
    let bench = Bench::new();
    let command =
        "i=0; while [ $i -lt 20000 ]; do echo line-$i; i=$((i+1)); [ $i = 500 ] && touch ready; done";
    let call = bench.run("Bash", json!({ "command": command }));
    let moving = async {
        while !bench.path("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(bench.shared.move_to_background(None), 1);
    };
    let (outcome, ()) = tokio::join!(call, moving);
    let file = outcome.structured["persistedOutputPath"].as_str().unwrap().to_owned();
    bench.ended_task().await;
    // A long beginning is cut for the model, and kept whole in a file that its text names.
    let mut so_far = outcome.structured["stdout"].as_str().unwrap().to_owned();
    if let Some((_, rest)) = so_far.split_once("full output in ") {
        so_far = std::fs::read_to_string(rest.split(" ...]").next().unwrap()).unwrap();
    }
    let all = so_far + &std::fs::read_to_string(file).unwrap();
    let expected: String = (0..20_000).map(|number| format!("line-{number}\n")).collect();
    assert!(all == expected, "{} bytes in place of {}", all.len(), expected.len());
}

#[tokio::test]
async fn a_moved_command_can_be_stopped_and_takes_no_input() {
    let bench = Bench::new();
    let call = bench.run("Bash", json!({ "command": "sleep 300 & echo $! > child; wait" }));
    let moving = async {
        let child = appears(&bench.path("child")).await;
        assert_eq!(bench.shared.move_to_background(None), 1);
        child
    };
    let (outcome, child) = tokio::join!(call, moving);
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap().to_owned();
    let refused = bench.fail("TaskOutput", json!({ "task_id": id, "output": "x" })).await;
    assert!(refused.contains("has no input"), "{refused}");
    bench.succeed("TaskStop", json!({ "task_id": id })).await;
    crate::common::is_gone(&child).await;
}

#[tokio::test]
async fn a_command_without_room_for_another_task_stays_in_the_foreground() {
    let bench = Bench::new();
    for _ in 0..32 {
        bench.task("sleep 300").await;
    }
    let call = bench.run("Bash", json!({ "command": TWO_PARTS }));
    let moving = async {
        while !bench.path("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(bench.shared.move_to_background(None), 0);
        bench.write("go", "");
    };
    let (outcome, ()) = tokio::join!(call, moving);
    assert_eq!((outcome.outcome, &outcome.structured["exitCode"]), (CallOutcome::Failed, &json!(7)));
    bench.shared.shutdown().await;
}
