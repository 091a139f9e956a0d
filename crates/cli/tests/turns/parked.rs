//! Short ways to let a session wait for an answer, to answer it on the command line and to resume. A session here has a
//! fixed id, lives in a trusted folder, and parks whatever it would ask.

use std::process::Command;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Finished, Wire, command, run};

/// The session of these tests.
pub const SESSION: &str = "70000000-0000-4000-8000-000000000001";

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// A trusted project whose questions wait.
pub fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    settle(&sandbox, &json!({}));
    sandbox
}

/// Writes user settings under which questions wait, with more of them.
pub fn settle(sandbox: &Sandbox, more: &Value) {
    let mut settings = json!({ "permissions": {
        "unattended": "park", "trustDirectories": [sandbox.project().to_str().unwrap()] } });
    for (group, value) in more.as_object().unwrap() {
        match settings[group].as_object_mut() {
            Some(existing) => existing.extend(value.as_object().unwrap().clone()),
            None => settings[group] = value.clone(),
        }
    }
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
}

/// A model that gives these replies, by how far the conversation is.
pub fn model(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

/// The command of a turn in the session.
pub fn turn(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Command {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "--output-format", "stream-json"]).args(arguments);
    command
}

/// Runs the first turn of the session, which must end waiting.
pub fn park(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Finished {
    let first = [&["go", "--session-id", SESSION], arguments].concat();
    let finished = run(turn(sandbox, server, &first));
    assert_eq!(finished.code, 54, "{}\n{}", finished.stdout, finished.stderr);
    finished
}

/// Resumes without a new prompt.
pub fn resume(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> Finished {
    run(turn(sandbox, server, &[&["--resume", SESSION], arguments].concat()))
}

/// Runs a permissions command.
pub fn permissions(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    let mut command = sandbox.command(BINARY);
    command.arg("permissions").args(arguments);
    run(command)
}

/// Answers a call, which must be taken.
pub fn answer(sandbox: &Sandbox, id: &str, arguments: &[&str]) -> Finished {
    let finished = permissions(sandbox, &[&["answer", SESSION, id], arguments].concat());
    assert_eq!(finished.code, 0, "{}\n{}", finished.stdout, finished.stderr);
    finished
}

/// The ids of the calls that wait.
pub fn pending(sandbox: &Sandbox) -> Vec<String> {
    let finished = permissions(sandbox, &["pending", SESSION, "--json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let rows: Vec<Value> = serde_json::from_str(&finished.stdout).unwrap();
    rows.iter().map(|row| row["toolUseId"].as_str().unwrap().to_owned()).collect()
}

/// What a past call came to, as JSON.
pub fn explained(sandbox: &Sandbox, id: &str) -> Value {
    let finished = permissions(sandbox, &["explain", SESSION, id, "--json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}
