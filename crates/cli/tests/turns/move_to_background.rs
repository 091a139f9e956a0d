//! SIGUSR2 moves a running command to the background: its call ends with the output so far, the turn continues, and the
//! command is a task like any other from then on.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use rustix::process::Signal;
use serde_json::json;

use crate::turns::support::{Live, Wire, bodies, calls, command, records, results_in, run, wait_until};

#[test]
fn the_turn_goes_on_without_the_command() {
    let sandbox = Sandbox::new();
    let slow = "echo before; touch ready; until [ -e go ]; do sleep 0.02; done; echo after";
    let server = ScriptedServer::start(Script::by(move |request, number| {
        let text = request.to_string();
        match number {
            0 => calls(&[("toolu_slow", "Bash", json!({ "command": slow, "description": "waits" }))]),
            1 => {
                let at = text.find("bash_").unwrap();
                let task = &text[at..at + "bash_".len() + 12];
                calls(&[
                    ("toolu_go", "Bash", json!({ "command": "touch go" })),
                    ("toolu_look", "TaskOutput", json!({ "task_id": task })),
                ])
            }
            _ => Reply::text("done"),
        }
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Bash"]);
    let live = Live::start(command);
    wait_until("the command runs", || sandbox.project().join("ready").exists());
    live.signal(Signal::USR2);
    let finished = live.finish();
    finished.success();
    assert!(finished.stderr.contains("moves to the background"), "{}", finished.stderr);
    let bodies = bodies(&server);
    let (_, moved, failed) = results_in(&bodies[1]).remove(0);
    assert!(moved.contains("before\n") && moved.contains("moved to the background") && !failed, "{moved}");
    let (_, looked, failed) = results_in(&bodies[2]).remove(1);
    assert!(looked.contains("completed") && looked.ends_with("after\n") && !failed, "{looked}");
    assert!(!looked.contains("before"), "{looked}");
    let started = finished.system("task_started");
    let ended = finished.system("task_notification");
    assert_eq!((started.len(), ended.len()), (1, 1), "{}", finished.stdout);
    assert_eq!(
        (&started[0]["tool_use_id"], &started[0]["description"]),
        (&json!("toolu_slow"), &json!("waits"))
    );
    assert_eq!((&ended[0]["status"], &ended[0]["task_id"]), (&json!("completed"), &started[0]["task_id"]));
    assert_eq!((records(&sandbox, "task-start").len(), records(&sandbox, "task-end").len()), (1, 1));
}

#[test]
fn without_a_command_it_says_so_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, _| Reply::StalledStream {
        after_events: 2,
        ms: 120_000,
        reply: Box::new(Reply::text("an answer that never comes")),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "hello", "--output-format", "stream-json"]);
    let live = Live::start(command);
    wait_until("the model is asked", || !server.requests().is_empty());
    live.signal(Signal::USR2);
    live.interrupt();
    let finished = live.finish();
    assert!(finished.stderr.contains("no command"), "{}", finished.stderr);
    assert_eq!((finished.code, finished.system("task_started").len()), (130, 0), "{}", finished.stdout);
}

#[test]
fn the_help_names_the_signal() {
    let (sandbox, server) =
        (Sandbox::new(), ScriptedServer::start(Script::by(|_, _| Reply::text("not asked"))));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.arg("--help");
    assert!(run(command).stdout.contains("SIGUSR2 moves the running command to the background"));
}
