//! An interrupt while TaskOutput waits ends the turn with a proper result; the task is stopped with the program, and
//! its end is announced.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Live, Wire, assert_calls_in_order, calls, command, records, wait_until};

#[test]
fn the_waiting_ends_and_the_task_is_announced_as_stopped() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|request, number| match number {
        0 => calls(&[("toolu_task", "Bash", json!({ "command": "sleep 300", "run_in_background": true }))]),
        1 => {
            let text = request.to_string();
            let at = text.find("bash_").unwrap();
            let task = &text[at..at + "bash_".len() + 12];
            calls(&[
                ("toolu_a", "TaskOutput", json!({ "task_id": task, "timeout": 600_000 })),
                ("toolu_b", "TaskOutput", json!({ "task_id": task, "timeout": 600_000 })),
            ])
        }
        _ => Reply::text("not asked"),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--allowed-tools", "Bash"]);
    let live = Live::start(command);
    let waits = || {
        let log: String =
            sandbox.session_files().iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        log.matches("\"type\":\"tool-start\"").count() == 3
    };
    wait_until("both calls wait", waits);
    live.interrupt();
    let finished = live.finish();
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    assert_eq!(finished.result()["terminal_reason"], "aborted_tools");
    let ended = finished.system("task_notification");
    assert_eq!(ended.len(), 1, "{}", finished.stdout);
    assert_eq!(ended[0]["status"], "stopped");
    assert_eq!(records(&sandbox, "task-end").len(), 1);
    assert_calls_in_order(&sandbox);
}
