//! Sessions whose process was killed with SIGKILL: while the model was silent, while a command ran, while a file was
//! read. The turn continues without a prompt; a new prompt first gives every open call its outcome.

use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::sessions::support::{
    ID, OTHER_ID, append, assert_success, kill_when, kinds, log_has, log_text, online, records, run,
    run_with, server, stalled, start, tool_results, wait_for,
};

/// A server that is silent at its first request and answers from then on.
fn silent_once(answer: &'static str) -> ScriptedServer {
    ScriptedServer::start(Script::by(
        move |_, number| if number == 0 { stalled() } else { Reply::text(answer) },
    ))
}

#[test]
fn a_turn_that_waited_for_the_model_goes_on_without_a_prompt() {
    let sandbox = Sandbox::new();
    let server = silent_once("here I am");
    let command = online(&sandbox, &server, &["-p", "are you there", "--session-id", ID]);
    kill_when(command, "the request", || !server.requests().is_empty());
    assert_eq!(kinds(&sandbox, ID), ["session-start", "user", "epoch", "model-request"]);
    let resumed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&resumed.json(), ID, "here I am");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body, "the same question is asked again");
    let prompts = records(&sandbox, ID).into_iter().filter(|record| record["origin"] == "prompt");
    assert_eq!(prompts.count(), 1);
}

#[test]
fn a_turn_that_waited_for_the_model_can_be_replaced_by_a_prompt() {
    let sandbox = Sandbox::new();
    let server = silent_once("to the second");
    let command = online(&sandbox, &server, &["-p", "first", "--session-id", ID]);
    kill_when(command, "the request", || !server.requests().is_empty());
    let arguments = ["-p", "second", "--resume", ID, "--output-format", "stream-json"];
    let resumed = run_with(&sandbox, &server, &arguments).exits(0);
    let lines = resumed.lines();
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1, "{}", resumed.stdout);
    assert_success(lines.last().unwrap(), ID, "to the second");
    let interrupt = records(&sandbox, ID).into_iter().find(|record| record["type"] == "interrupt").unwrap();
    assert_eq!(interrupt["by"], "resume");
    let text = server.requests()[1].json()["messages"].to_string();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
    assert!(
        at("first") < at("cut off before it finished") && at("cut off before it finished") < at("second")
    );
}

#[test]
fn an_unfinished_turn_can_be_finished_in_a_copy() {
    let sandbox = Sandbox::new();
    let server = silent_once("in the copy");
    let command = online(&sandbox, &server, &["-p", "first", "--session-id", ID]);
    kill_when(command, "the request", || !server.requests().is_empty());
    let before = log_text(&sandbox, ID);
    let arguments = ["--resume", ID, "--fork-session", "--session-id", OTHER_ID, "--output-format", "json"];
    let resumed = run_with(&sandbox, &server, &arguments).exits(0);
    assert_success(&resumed.json(), OTHER_ID, "in the copy");
    assert_eq!(log_text(&sandbox, ID), before);
    let shown = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    assert_eq!(shown["unfinished"], true, "the original still waits");
}

/// A command that says it has begun and then waits until the project has a file `stop`.
const SLOW: &str =
    "echo ran >> effects; i=0; while [ ! -e stop ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i+1)); done";

fn killed_in_a_command(sandbox: &Sandbox, server: &ScriptedServer) {
    let arguments = ["-p", "do it", "--session-id", ID, "--allowed-tools", "Bash"];
    let effects = sandbox.project().join("effects");
    // The shell makes the file before it writes the line.
    let written = || std::fs::read_to_string(&effects).is_ok_and(|text| text.ends_with('\n'));
    kill_when(online(sandbox, server, &arguments), "the command", written);
    sandbox.write("stop", "");
}

fn results_in(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().unwrap();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").cloned().collect()
}

fn effects(project: &Path) -> String {
    std::fs::read_to_string(project.join("effects")).unwrap()
}

#[test]
fn a_command_that_was_cut_off_is_not_run_again() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::tool("Bash", json!({"command": SLOW})), Reply::text("I will check")]);
    killed_in_a_command(&sandbox, &server);
    let arguments = ["--resume", ID, "--allowed-tools", "Bash", "--output-format", "json"];
    let resumed = run_with(&sandbox, &server, &arguments).exits(0);
    assert_success(&resumed.json(), ID, "I will check");
    let results = tool_results(&sandbox, ID);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].0, "unknown");
    assert!(results[0].1.starts_with("Outcome unknown: the program stopped while Bash was running."));
    let told = results_in(&server.requests()[1].json());
    assert_eq!(told.len(), 1, "the model reads exactly one result");
    assert_eq!(told[0]["is_error"], true);
    assert_eq!(effects(sandbox.project()), "ran\n");
}

#[test]
fn a_prompt_after_a_cut_off_command_comes_after_its_outcome() {
    let sandbox = Sandbox::new();
    let calls = Reply::ToolCalls(vec![
        ("Bash".to_owned(), json!({"command": SLOW})),
        ("Bash".to_owned(), json!({"command": "echo second >> effects"})),
    ]);
    let server = server(vec![calls, Reply::text("understood")]);
    killed_in_a_command(&sandbox, &server);
    let arguments = ["-p", "leave it", "--resume", ID, "--allowed-tools", "Bash", "--output-format", "json"];
    let resumed = run_with(&sandbox, &server, &arguments).exits(0);
    assert_success(&resumed.json(), ID, "understood");
    let outcomes: Vec<String> = tool_results(&sandbox, ID).into_iter().map(|result| result.0).collect();
    assert_eq!(outcomes, ["unknown", "not_run"]);
    let log = records(&sandbox, ID);
    let place = |wanted: &dyn Fn(&Value) -> bool| log.iter().position(wanted).unwrap();
    let last_result = log.iter().rposition(|record| record["origin"] == "tool_result").unwrap();
    let ended = place(&|record| record["type"] == "turn-end");
    let prompt = place(&|record| record["message"]["content"] == "leave it");
    assert!(last_result < ended && ended < prompt, "{last_result} {ended} {prompt}");
    assert_eq!(results_in(&server.requests()[1].json()).len(), 2, "no call is without a result");
    assert_eq!(effects(sandbox.project()), "ran\n");
}

#[test]
fn another_program_may_write_a_line_while_the_session_is_in_use() {
    let sandbox = Sandbox::new();
    let server =
        server(vec![Reply::tool("Bash", json!({"command": SLOW})), Reply::text("one"), Reply::text("two")]);
    let arguments = ["-p", "do it", "--session-id", ID, "--allowed-tools", "Bash"];
    let mut child = start(online(&sandbox, &server, &arguments));
    let effects = sandbox.project().join("effects");
    wait_for("the command", || effects.exists());
    let title = json!({"type": "custom-title", "customTitle": "In use", "sessionId": ID});
    append(&sandbox, ID, &format!("{title}\n"));
    sandbox.write("stop", "");
    assert!(child.wait().unwrap().success());
    let lines = records(&sandbox, ID);
    let at = lines.iter().position(|line| line["type"] == "custom-title").unwrap();
    assert!(at < lines.len() - 1, "the session went on after it");
    let resumed =
        run_with(&sandbox, &server, &["-p", "more", "--resume", "In use", "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "two");
}

#[test]
fn a_read_that_was_cut_off_runs_again() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "what it says\n");
    let read = Reply::tool("Read", json!({"file_path": "notes.txt"}));
    let server = server(vec![read, Reply::text("read it")]);
    run_with(&sandbox, &server, &["-p", "read", "--session-id", ID]).exits(0);
    // The log as it would be had the process died between the start of the tool and its result.
    let log = log_text(&sandbox, ID);
    let lines: Vec<&str> = log.lines().collect();
    let started = lines.iter().position(|line| line.contains("\"type\":\"tool-start\"")).unwrap();
    assert!(lines[started].contains("\"replay\":\"pure\""), "{}", lines[started]);
    std::fs::write(crate::sessions::support::log_of(&sandbox, ID), lines[..=started].join("\n") + "\n")
        .unwrap();
    let resumed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
    assert_success(&resumed.json(), ID, "read it");
    let results = tool_results(&sandbox, ID);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].0, "completed");
    assert!(results[0].1.contains("what it says"), "{}", results[0].1);
    assert_eq!(kinds(&sandbox, ID).iter().filter(|kind| *kind == "tool-start").count(), 2);
}

#[test]
fn a_prompt_is_safe_as_soon_as_the_model_is_asked() {
    let sandbox = Sandbox::new();
    let silent = server(vec![stalled()]);
    let prompt = "x".repeat(100_000);
    let command = online(&sandbox, &silent, &["-p", &prompt, "--session-id", ID]);
    kill_when(command, "the record of the request", || log_has(&sandbox, "\"type\":\"model-request\""));
    let kept = records(&sandbox, ID).into_iter().find(|record| record["origin"] == "prompt").unwrap();
    assert_eq!(kept["message"]["content"], prompt);
    let resumed = run_with(&sandbox, &server(vec![Reply::text("yes")]), &["--resume", ID]).exits(0);
    assert_eq!(resumed.stdout, "yes\n");
}
