//! Processes that leave the group of their shell end all the same: with their call, and with the program when that is
//! killed without a word.

use std::path::{Path, PathBuf};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::support::{Wire, command, stream, wait_until};

/// Starts two processes in sessions of their own, one of which ignores the polite signal, and writes their numbers.
const ESCAPE: &str = "setsid sleep 300 & echo $! > one.pid; \
    setsid -f sh -c 'echo $$ > two.pid; trap \"\" TERM HUP; sleep 300 & wait'; \
    until test -s two.pid; do sleep 0.01; done";

fn is_gone(file: &Path) -> bool {
    let Ok(number) = std::fs::read_to_string(file) else { return false };
    let state = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    state.rsplit(')').next().is_none_or(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('Z'))
}

fn files(sandbox: &Sandbox) -> [PathBuf; 2] {
    ["one.pid", "two.pid"].map(|name| sandbox.project().join(name))
}

#[test]
fn with_their_call() {
    let sandbox = Sandbox::new();
    let look = "kill -0 $(cat one.pid) 2>/dev/null || echo one is gone; kill -0 $(cat two.pid) 2>/dev/null || echo two is gone";
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": ESCAPE })),
        Reply::tool("Bash", json!({ "command": look })),
        Reply::text("done"),
    ]));
    let finished = stream(&sandbox, &server, &["go", "--permission-mode", "bypassPermissions"]);
    finished.success();
    assert!(
        finished.stdout.contains("one is gone") && finished.stdout.contains("two is gone"),
        "{}",
        finished.stdout
    );
    assert!(files(&sandbox).iter().all(|file| is_gone(file)));
}

#[test]
fn with_the_program_when_it_is_killed() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::tool(
        "Bash",
        json!({ "command": format!("{ESCAPE}; touch ready; sleep 300") }),
    )]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--permission-mode", "bypassPermissions"]).stdin(std::process::Stdio::null());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the processes", || sandbox.project().join("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("their end", || files(&sandbox).iter().all(|file| is_gone(file)));
}
