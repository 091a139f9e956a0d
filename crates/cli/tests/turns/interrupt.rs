//! SIGINT ends a turn properly, while the model speaks and while a command runs: a result, no call without an outcome,
//! no process left behind, and a session that continues. A second SIGINT ends the program at once.

use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use rustix::process::Pid;
use serde_json::{Value, json};

use crate::turns::support::{
    Finished, Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream,
    wait_until,
};

const SESSION: &str = "50000000-0000-4000-8000-000000000001";

fn assert_interrupted(finished: &Finished, terminal_reason: &str) {
    assert_eq!(finished.code, 130, "{}\n{}", finished.stdout, finished.stderr);
    let result = finished.result();
    assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["terminal_reason"], terminal_reason);
    assert_eq!(result["errors"], json!(["Interrupted by the user."]));
    assert!(result.get("result").is_none(), "{result}");
}

fn assert_log_is_closed(sandbox: &Sandbox) {
    assert_calls_in_order(sandbox);
    assert_eq!(records(sandbox, "interrupt").len(), 1);
    let last = sandbox.transcript_lines().pop().unwrap();
    assert_eq!((&last["type"], &last["isError"]), (&json!("turn-end"), &json!(true)));
}

#[test]
fn while_the_model_speaks() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => Reply::StalledStream {
            after_events: 4,
            ms: 120_000,
            reply: Box::new(Reply::text("a long story that never ends")),
        },
        _ => Reply::text("going on"),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "tell me", "--output-format", "stream-json", "--include-partial-messages"]);
    command.args(["--session-id", SESSION]);
    let mut live = Live::start(command);
    live.until(|line| line["event"]["type"] == "content_block_delta");
    live.interrupt();
    let finished = live.finish();
    assert_interrupted(&finished, "aborted_streaming");
    assert_log_is_closed(&sandbox);
    assert_eq!(records(&sandbox, "assistant"), Vec::<Value>::new(), "half a reply is not kept");
    let again = stream(&sandbox, &server, &["and now?", "--resume", SESSION]);
    assert_eq!(again.success()["result"], "going on");
    let messages = bodies(&server).pop().unwrap()["messages"].clone();
    let texts: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["tell me", "[Request interrupted by user]", "and now?"]);
}

/// Starts a turn whose command writes its process id into a file, and waits until it has.
fn start_command(sandbox: &Sandbox, server: &ScriptedServer) -> (Live, Pid) {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "wait", "--output-format", "stream-json", "--session-id", SESSION]);
    command.args(["--allowed-tools", "Bash"]);
    let live = Live::start(command);
    let file = sandbox.project().join("pid");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_until("the command runs", || read().ends_with('\n'));
    let process = Pid::from_raw(read().trim().parse().unwrap()).unwrap();
    (live, process)
}

/// True when a process is gone or dead and only not collected by its parent.
fn is_gone(process: Pid) -> bool {
    let status = Path::new("/proc").join(process.as_raw_nonzero().to_string()).join("stat");
    std::fs::read_to_string(status).map_or(true, |text| text.contains(") Z "))
}

#[test]
fn while_a_command_runs() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => calls(&[
            ("toolu_sleep", "Bash", json!({ "command": "sleep 60 & echo $! > pid; wait" })),
            ("toolu_later", "Bash", json!({ "command": "touch later" })),
        ]),
        _ => Reply::text("going on"),
    }));
    let (live, process) = start_command(&sandbox, &server);
    live.interrupt();
    let finished = live.finish();
    assert_interrupted(&finished, "aborted_tools");
    assert_log_is_closed(&sandbox);
    assert!(is_gone(process), "the command's process is still there");
    assert!(!sandbox.project().join("later").exists(), "the call after it must not run");
    let again = stream(&sandbox, &server, &["and now?", "--resume", SESSION]);
    assert_eq!(again.success()["result"], "going on");
    let request = bodies(&server).pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap(), &json!({ "role": "user", "content": "and now?" }));
    let results = results_in(&json!({ "messages": messages[..3] }));
    let seen: Vec<(&str, bool)> = results.iter().map(|(id, _, failed)| (id.as_str(), *failed)).collect();
    assert_eq!(seen, [("toolu_sleep", true), ("toolu_later", true)]);
    let outcomes: Vec<Value> = records(&sandbox, "user")
        .iter()
        .filter(|entry| entry["origin"] == "tool_result")
        .map(|entry| entry["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["interrupted", "not_run"]);
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let sandbox = Sandbox::new();
    let stubborn = "trap '' TERM INT; echo $$ > pid; while :; do sleep 0.1; done";
    let server = ScriptedServer::start(Script::by(move |_, number| match number {
        0 => calls(&[("toolu_stubborn", "Bash", json!({ "command": stubborn }))]),
        _ => Reply::text("going on"),
    }));
    let (live, process) = start_command(&sandbox, &server);
    live.interrupt();
    wait_until("the interrupt is on record", || {
        let text = std::fs::read_to_string(&sandbox.session_files()[0]).unwrap();
        text.contains("{\"type\":\"interrupt\"")
    });
    live.interrupt();
    let finished = live.finish();
    assert_eq!((finished.code, finished.of("result").len()), (130, 0), "{}", finished.stdout);
    wait_until("the command is gone", || is_gone(process));
    let again = stream(&sandbox, &server, &["and now?", "--resume", SESSION]);
    assert_eq!(again.success()["result"], "going on");
    assert_calls_in_order(&sandbox);
}

#[test]
fn a_waiting_input_is_not_lost() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => Reply::StalledStream { after_events: 2, ms: 120_000, reply: Box::new(Reply::text("never")) },
        _ => Reply::text("going on"),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "wait", "--output-format", "json", "--session-id", SESSION]);
    let live = Live::start(command);
    wait_until("the model is asked", || server.requests().len() == 1);
    live.interrupt();
    assert_interrupted(&live.finish(), "aborted_streaming");
    let first = &records(&sandbox, "user")[0];
    assert_eq!(first["message"]["content"], "wait");
    let again = stream(&sandbox, &server, &["again", "--continue"]);
    assert_eq!(again.success()["session_id"], SESSION);
}

#[test]
fn while_an_attempt_is_waited_for() {
    let sandbox = Sandbox::new();
    let busy = Reply::HttpError {
        status: 529,
        headers: vec![("retry-after".to_owned(), "50".to_owned())],
        body: "{}".to_owned(),
    };
    let server = ScriptedServer::start(Script::list(vec![busy]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "hello", "--output-format", "stream-json"]);
    let mut live = Live::start(command);
    live.until(|line| line["subtype"] == "api_retry" && line["retry_delay_ms"] == 50_000);
    live.interrupt();
    assert_interrupted(&live.finish(), "aborted_streaming");
    assert_log_is_closed(&sandbox);
}

#[test]
fn a_message_that_waits_behind_the_interrupted_turn_gets_its_own() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => Reply::StalledStream { after_events: 2, ms: 120_000, reply: Box::new(Reply::text("never")) },
        _ => Reply::text("the second answer"),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
    let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
    let live = Live::start_with(command, &format!("{}\n{}\n", line("first"), line("second")));
    wait_until("both messages are on record and the model is asked", || {
        let files = sandbox.session_files();
        let text = files.first().map(|file| std::fs::read_to_string(file).unwrap()).unwrap_or_default();
        text.matches("{\"type\":\"input\"").count() == 2 && server.requests().len() == 1
    });
    live.interrupt();
    let finished = live.finish();
    let ends: Vec<(Value, Value)> = finished
        .of("result")
        .into_iter()
        .map(|result| (result["terminal_reason"].clone(), result["result"].clone()))
        .collect();
    let expected =
        [(json!("aborted_streaming"), Value::Null), (json!("completed"), json!("the second answer"))];
    assert_eq!(ends, expected, "{}", finished.stderr);
}

#[test]
fn while_the_conversation_is_summarised() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let server = ScriptedServer::start(Script::by(|_, number| match number {
        0 => Reply::Blocks {
            thinking: None,
            text: None,
            tools: vec![("toolu_1".to_owned(), "Read".to_owned(), json!({ "file_path": "notes.txt" }))],
            stop_reason: None,
            usage: Some(json!({ "input_tokens": 9_000, "output_tokens": 5 })),
        },
        1 => Reply::StalledStream { after_events: 3, ms: 120_000, reply: Box::new(Reply::text("summary")) },
        _ => Reply::text("going on"),
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "read", "--output-format", "stream-json", "--session-id", SESSION]);
    command.args(["--context-window", "10000"]);
    let live = Live::start(command);
    wait_until("a summary is asked for", || server.requests().len() == 2);
    live.interrupt();
    let finished = live.finish();
    let reason = finished.result()["terminal_reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("aborted_"), "{reason}");
    assert_interrupted(&finished, &reason);
    assert_log_is_closed(&sandbox);
    assert_eq!(finished.system("status").last().unwrap()["status"], Value::Null);
    assert_eq!(finished.system("compact_boundary"), Vec::<Value>::new());
    stream(&sandbox, &server, &["and now?", "--resume", SESSION]).success();
    let last = bodies(&server).pop().unwrap();
    assert!(last["messages"].to_string().contains("and now?"), "{last:#}");
}
