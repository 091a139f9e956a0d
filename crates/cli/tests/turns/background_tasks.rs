//! A background task is announced when it starts, and its end is announced once, also when that comes between two
//! turns or only with the end of the program. No process of it outlives the program.

use std::io::Write;
use std::process::Stdio;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Finished, Live, Wire, calls, command, keys, stream};

fn starts(command: &'static str) -> ScriptedServer {
    ScriptedServer::start(Script::by(move |_, number| match number {
        0 => calls(&[("toolu_task", "Bash", json!({ "command": command, "run_in_background": true }))]),
        _ => Reply::text("done"),
    }))
}

/// Asserts that one task was started and ended, and gives back its end.
fn assert_one_task(finished: &Finished) -> Value {
    let started = finished.system("task_started");
    assert_eq!(started.len(), 1, "{}", finished.stdout);
    assert_eq!(
        (&started[0]["tool_use_id"], &started[0]["task_type"]),
        (&json!("toolu_task"), &json!("local_bash"))
    );
    let mut ended = finished.system("task_notification");
    assert_eq!(ended.len(), 1, "{}", finished.stdout);
    let ended = ended.remove(0);
    let expected = [
        "output_file",
        "session_id",
        "status",
        "subtype",
        "summary",
        "task_id",
        "tool_use_id",
        "type",
        "uuid",
    ];
    assert_eq!(keys(&ended), expected);
    assert_eq!((&ended["task_id"], &ended["tool_use_id"]), (&started[0]["task_id"], &json!("toolu_task")));
    ended
}

#[test]
fn an_end_between_two_turns_is_announced_at_once() {
    let (sandbox, server) = (Sandbox::new(), starts("until [ -e go ]; do sleep 0.02; done"));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
    command.args(["--allowed-tools", "Bash"]).stdin(Stdio::piped());
    let mut live = Live::start_as_set(command);
    let mut stdin = live.take_stdin();
    let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
    writeln!(stdin, "{}", line("first")).unwrap();
    live.until(|line| line["type"] == "result");
    sandbox.write("go", "");
    live.until(|line| line["subtype"] == "task_notification");
    writeln!(stdin, "{}", line("second")).unwrap();
    drop(stdin);
    let finished = live.finish();
    assert_eq!(finished.of("result").len(), 2);
    assert_eq!(assert_one_task(&finished)["status"], "completed");
}

#[test]
fn a_task_that_the_end_of_the_program_stops_is_announced_as_stopped() {
    let (sandbox, server) = (Sandbox::new(), starts("sleep 60"));
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Bash"]);
    finished.success();
    assert_eq!(assert_one_task(&finished)["status"], "stopped");
}
