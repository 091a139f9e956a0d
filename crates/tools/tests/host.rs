//! Tools in a tool host: their results are those of this process, tasks are tasks, and what a host may not do has no effect. The host
//! runs on the other end of a pair of pipes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::ToolOutcome;
use qoder_tools::host::{HostError, Launch, Launched, Start, ToolHost};
use qoder_tools::serve_tool_host;
use qoder_types::{CallOutcome, TaskStatus};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::{Builder, Runtime};

use crate::common::{Bench, cancellable, text};

const TOOLS: [&str; 6] = ["Bash", "Read", "Write", "Edit", "Glob", "Grep"];

/// Hosts in this process, each with threads of its own, so that it can end with everything that it does.
struct Here {
    running: Mutex<Vec<Runtime>>,
    start: Start,
}

impl Here {
    /// Ends all hosts at once.
    fn kill(&self) {
        self.running.lock().unwrap().drain(..).for_each(Runtime::shutdown_background);
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Launch for Here {
    fn launch(&self) -> BoxFuture<'static, Result<Launched, HostError>> {
        let (input, theirs) = tokio::io::duplex(64 * 1024);
        let (ours, output) = tokio::io::duplex(64 * 1024);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.spawn(serve_tool_host(theirs, ours));
        self.running.lock().unwrap().push(runtime);
        let start = self.start.clone();
        let launched = Launched {
            input: Box::new(input),
            output: Box::new(output),
            errors: None,
            start,
            process: Box::new(()),
        };
        std::future::ready(Ok(launched)).boxed()
    }
}

fn bench_with(start: Start) -> (Bench, Arc<Here>) {
    let mut bench = Bench::new();
    let here = Arc::new(Here { running: Mutex::default(), start });
    let outputs = bench.outputs.with_file_name("host-outputs");
    bench.host = Some(ToolHost::new(Arc::clone(&here) as _, &TOOLS, outputs));
    (bench, here)
}

fn parts(outcome: &ToolOutcome) -> (CallOutcome, String, Value) {
    (outcome.outcome, serde_json::to_string(&outcome.content).unwrap(), outcome.structured.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_those_of_this_process() {
    let (mut bench, here) = bench_with(Start::default());
    let host = bench.host.take();
    bench.write("a.txt", "one\ntwo ü\n");
    bench.write("below/b.txt", "two\n");
    let picture = image::RgbImage::from_pixel(3, 2, image::Rgb([1, 2, 3]));
    picture.save(bench.path("c.png")).unwrap();
    let calls = [
        ("Read", json!({ "file_path": bench.text_path("a.txt") })),
        ("Read", json!({ "file_path": bench.text_path("c.png") })),
        ("Read", json!({ "file_path": bench.text_path("none.txt") })),
        ("Glob", json!({ "pattern": "**/*.txt" })),
        ("Grep", json!({ "pattern": "two", "output_mode": "content" })),
        ("Bash", json!({ "command": "echo out; echo err >&2; printf '\\xff'; exit 3" })),
        ("Bash", json!({ "command": "cd below && pwd" })),
        ("Bash", json!({ "command": "seq 20000 | head -c 40000 | tail -c 20000" })),
        ("Edit", json!({ "file_path": bench.text_path("none.txt"), "old_string": "a", "new_string": "b" })),
        ("Write", json!({ "file_path": bench.text_path("new.txt") })),
    ];
    for (tool, input) in calls {
        bench.host = None;
        bench.observed.lock().unwrap().clear();
        let expected = bench.run(tool, input.clone()).await;
        bench.host = host.clone();
        bench.observed.lock().unwrap().clear();
        let found = bench.run(tool, input.clone()).await;
        assert_eq!(parts(&found), parts(&expected), "{tool} {input}");
        assert_eq!(
            (found.observations, found.new_cwd),
            (expected.observations, expected.new_cwd),
            "{tool} {input}"
        );
    }
    // What was seen in an earlier call is asked of the session.
    bench
        .fail(
            "Edit",
            json!({ "file_path": bench.text_path("below/b.txt"), "old_string": "two", "new_string": "2" }),
        )
        .await;
    bench.succeed("Read", json!({ "file_path": bench.text_path("below/b.txt") })).await;
    bench
        .succeed(
            "Edit",
            json!({ "file_path": bench.text_path("below/b.txt"), "old_string": "two", "new_string": "2" }),
        )
        .await;
    assert_eq!(bench.content("below/b.txt"), b"2\n");
    assert_eq!(here.running.lock().unwrap().len(), 1, "one host for all calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_have_the_variables_of_the_session_and_show_none_of_its_secrets() {
    let start = Start {
        variables: [("KEY".to_owned(), "a-value-of-a-key".to_owned())].into(),
        secrets: vec!["a-value-of-a-key".to_owned()],
        proxy: None,
    };
    let (bench, _) = bench_with(start);
    let text = bench.succeed("Bash", json!({ "command": "echo $KEY | tr a A; echo $KEY" })).await;
    assert!(text.contains("A-vAlue") && !text.contains("a-value") && text.contains("[redacted]"), "{text}");
    assert!(!bench.shown().contains("a-value") && bench.shown().contains("A-vAlue"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_read_written_and_stopped_like_any_other() {
    let (bench, _) = bench_with(Start::default());
    let (id, file) = bench.task("echo ready; read line; echo \"got $line\"; sleep 600").await;
    assert!(file.starts_with(&bench.outputs), "its output is kept by the caller: {}", file.display());
    let input = json!({ "task_id": id, "output": "a word\n", "timeout": 60_000 });
    let mut said = bench.succeed("TaskOutput", input).await;
    while !said.contains("got a word") {
        said = bench.succeed("TaskOutput", json!({ "task_id": id, "timeout": 50 })).await;
    }
    assert_eq!(bench.shared.running_tasks(), 1);
    let stopped = bench.succeed("TaskStop", json!({ "task_id": id })).await;
    assert!(stopped.contains("Stopped"), "{stopped}");
    assert_eq!(bench.ended_task().await.status, TaskStatus::Stopped);
    bench.shared.shutdown().await;
    assert_eq!(bench.shared.running_tasks(), 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "ready\ngot a word\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_ends_with_its_exit_code_and_all_of_its_output() {
    let (bench, _) = bench_with(Start::default());
    let (_, file) = bench.task("seq 1 100000; exit 4").await;
    let end = bench.ended_task().await;
    assert_eq!((end.status, end.exit_code), (TaskStatus::Failed, Some(4)));
    let output = std::fs::read_to_string(file).unwrap();
    assert!(output.ends_with("\n99999\n100000\n") && output.lines().count() == 100_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_ends() {
    let (bench, _) = bench_with(Start::default());
    let (cancel, cancelled) = cancellable();
    let command = format!("echo x > {}; sleep 600", bench.text_path("begun"));
    let call = bench.run_until("Bash", json!({ "command": command }), cancelled);
    let cancelling = async {
        crate::common::appears(&bench.path("begun")).await;
        drop(cancel);
    };
    let (outcome, ()) = tokio::join!(call, cancelling);
    assert_eq!(outcome.outcome, CallOutcome::Interrupted, "{}", text(&outcome));
    bench.succeed("Bash", json!({ "command": "echo goes" })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreground_command_moves_to_the_background() {
    let (bench, _) = bench_with(Start::default());
    let command = format!("echo first; echo x > {}; sleep 600", bench.text_path("begun"));
    let call = bench.run("Bash", json!({ "command": command }));
    let moving = async {
        crate::common::appears(&bench.path("begun")).await;
        assert_eq!(bench.shared.move_to_background(Some("call")), 1);
    };
    let (outcome, ()) = tokio::join!(call, moving);
    assert!(text(&outcome).contains("moved to the background as bash_"), "{}", text(&outcome));
    assert!(text(&outcome).contains(&bench.outputs.display().to_string()), "{}", text(&outcome));
    bench.shared.shutdown().await;
    assert_eq!(bench.ended_task().await.status, TaskStatus::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_ends_leaves_calls_and_tasks_unknown() {
    let (bench, here) = bench_with(Start::default());
    bench.task("sleep 600").await;
    let command = format!("echo as far as this; echo x > {}; sleep 600", bench.text_path("begun"));
    let call = bench.run("Bash", json!({ "command": command }));
    let ending = async {
        crate::common::appears(&bench.path("begun")).await;
        while !bench.shown().contains("as far") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        here.kill();
    };
    let (outcome, ()) = tokio::join!(call, ending);
    assert_eq!(outcome.outcome, CallOutcome::Unknown, "{}", text(&outcome));
    assert!(
        text(&outcome).contains("is unknown") && text(&outcome).contains("as far as this"),
        "{}",
        text(&outcome)
    );
    assert_eq!(bench.ended_task().await.status, TaskStatus::Unknown);
    bench.succeed("Bash", json!({ "command": "echo again" })).await;
    assert_eq!(here.running.lock().unwrap().len(), 1, "another one");
}

/// A host that sends the first of these lines at once, the others when it was called, and then stays silent.
struct Fixed(&'static [u8]);

impl Launch for Fixed {
    fn launch(&self) -> BoxFuture<'static, Result<Launched, HostError>> {
        let (input, theirs) = tokio::io::duplex(64 * 1024);
        let (mut ours, output) = tokio::io::duplex(64 * 1024);
        let (first, rest) = self.0.split_at(self.0.iter().position(|byte| *byte == b'\n').unwrap() + 1);
        tokio::spawn(async move {
            ours.write_all(first).await.unwrap();
            let mut said = BufReader::new(theirs).lines();
            while let Ok(Some(line)) = said.next_line().await {
                if line.contains("\"type\":\"call\"") {
                    ours.write_all(rest).await.unwrap();
                }
            }
        });
        let launched = Launched {
            input: Box::new(input),
            output: Box::new(output),
            errors: None,
            start: Start::default(),
            process: Box::new(()),
        };
        std::future::ready(Ok(launched)).boxed()
    }
}

#[tokio::test]
async fn what_a_host_may_not_say_has_no_effect() {
    let result = br#"{"type":"ready","version":1}
{"type":"task_started","call":1,"start":{"taskId":"../../x","toolUseId":"","description":"","taskType":"local_agent","outputFile":"/etc/passwd","command":""}}
{"type":"task_output","task":"bash_000000000000","data":"eA=="}
{"type":"result","call":77,"result":{"content":"of another call","outcome":"completed","structured":{},"observations":[],"new_cwd":null}}
{"type":"result","call":1,"result":{"content":"said","outcome":"denied","structured":{},"observations":[],"new_cwd":"/etc","permission_updates":[1]}}
"#;
    for (lines, outcome, part) in [
        (&result[..], CallOutcome::Failed, "said"),
        (&b"{\"type\":\"ready\",\"version\":9}\n"[..], CallOutcome::Failed, "version 9"),
        (&b"welcome to this machine\n"[..], CallOutcome::Failed, "does not keep to the protocol"),
        (
            &b"{\"type\":\"ready\",\"version\":1}\n{\"type\":\"nonsense\"}\n"[..],
            CallOutcome::Unknown,
            "does not keep",
        ),
    ] {
        let mut bench = Bench::new();
        bench.host = Some(ToolHost::new(Arc::new(Fixed(lines)), &TOOLS, bench.outputs.clone()));
        let found = bench.run("Bash", json!({ "command": "true" })).await;
        assert_eq!(found.outcome, outcome, "{}", text(&found));
        assert!(text(&found).contains(part), "{}", text(&found));
        assert_eq!((found.new_cwd, found.permission_updates.len()), (None, 0));
        assert_eq!(bench.shared.running_tasks(), 0);
    }
}
