//! `kill -9` of the program while background tasks run: no process of them is left, and the next process says that
//! their outcome is unknown, on record, to the host and to the model, once. What they printed stays readable.

use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Live, Wire, bodies, calls, command, records, stream, wait_until};

const SESSION: &str = "50000000-0000-4000-8000-0000000000b1";

fn is_gone(process: &str) -> bool {
    let status = Path::new("/proc").join(process.trim()).join("stat");
    std::fs::read_to_string(status).map_or(true, |text| text.contains(") Z "))
}

/// Two tasks are started, then the model is silent; after that it answers.
fn server() -> ScriptedServer {
    let task = |id: &'static str, name: &str| {
        let command = format!("echo output of {name}; sleep 300 & echo $! > {name}; wait");
        (id, "Bash", json!({ "command": command, "run_in_background": true }))
    };
    ScriptedServer::start(Script::by(move |_, number| match number {
        0 => calls(&[task("toolu_1", "first"), task("toolu_2", "second")]),
        1 => Reply::StalledStream { after_events: 1, ms: 120_000, reply: Box::new(Reply::text("never")) },
        _ => Reply::text("I see"),
    }))
}

fn killed(sandbox: &Sandbox, server: &ScriptedServer) -> Vec<String> {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args([
        "-p",
        "go",
        "--session-id",
        SESSION,
        "--allowed-tools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    let live = Live::start(command);
    let files = ["first", "second"].map(|name| sandbox.project().join(name));
    let read = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    wait_until("both tasks run", || files.iter().all(|file| read(file).ends_with('\n')));
    wait_until("the model is asked again", || server.requests().len() == 2);
    // Dropping it kills it with SIGKILL.
    drop(live);
    files.iter().map(|file| read(file)).collect()
}

#[test]
fn the_outcome_is_unknown_and_nothing_is_left() {
    let (sandbox, server) = (Sandbox::new(), server());
    let processes = killed(&sandbox, &server);
    wait_until("no process of a task is left", || processes.iter().all(|process| is_gone(process)));
    assert_eq!(records(&sandbox, "task-start").len(), 2);
    assert!(records(&sandbox, "task-end").is_empty());

    let resumed = stream(&sandbox, &server, &["--resume", SESSION]);
    assert_eq!(resumed.success()["result"], "I see");
    let ends = records(&sandbox, "task-end");
    assert_eq!(ends.len(), 2);
    let unknown = |text: &Value| text.as_str().unwrap().contains("outcome unknown: the program ended");
    assert!(ends.iter().all(|end| end["status"] == "unknown" && unknown(&end["summary"])), "{ends:?}");
    let told = resumed.system("task_notification");
    assert_eq!(told.len(), 2, "{}", resumed.stdout);
    assert!(told.iter().all(|told| told["status"] == "stopped" && unknown(&told["summary"])), "{told:?}");
    assert!(
        resumed.shape().iter().position(|line| line == "system/init")
            < resumed.shape().iter().position(|line| line == "system/task_notification")
    );
    let last = bodies(&server).pop().unwrap();
    let messages = last["messages"].as_array().unwrap();
    let notice = messages.last().unwrap()["content"].to_string();
    for part in ["unknown outcome", "output of first", "output of second"] {
        assert!(notice.contains(part), "{notice}");
    }

    let more = stream(&sandbox, &server, &["more", "--resume", SESSION]);
    more.success();
    assert!(more.system("task_notification").is_empty());
    assert_eq!(records(&sandbox, "task-end").len(), 2);
    let text = bodies(&server).pop().unwrap().to_string();
    assert_eq!(text.matches("unknown outcome").count(), 2, "the model reads of each task once");
}

#[test]
fn the_output_can_be_asked_for_later() {
    let (sandbox, server) = (Sandbox::new(), server());
    killed(&sandbox, &server);
    let task = records(&sandbox, "task-start")[0]["taskId"].as_str().unwrap().to_owned();
    let server = ScriptedServer::start(Script::by(move |_, number| match number {
        0 => calls(&[
            ("toolu_look", "TaskOutput", json!({ "task_id": task })),
            ("toolu_stop", "TaskStop", json!({ "task_id": task })),
        ]),
        _ => Reply::text("done"),
    }));
    stream(&sandbox, &server, &["look", "--resume", SESSION]).success();
    let results = crate::turns::support::results_in(&bodies(&server)[1]);
    let (_, look, look_failed) = &results[0];
    assert!(look.contains("unknown outcome") && look.contains("output of first") && !look_failed, "{look}");
    let (_, stop, stop_failed) = &results[1];
    assert!(stop.contains("not running") && *stop_failed, "{stop}");
}
