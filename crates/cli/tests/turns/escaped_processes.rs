//! Processes that leave the group of their shell end all the same: with their call, and with the program when that is
//! killed without a word.

use std::path::{Path, PathBuf};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Wire, command, stream, wait_until};

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

/// Ways to leave without the mark of the call; `@B` appends to `beats/NAME` many times a second.
const WAYS: [(&str, &str); 9] = [
    ("no-environment", "env -i setsid -f @B"),
    ("twice", "env -i setsid -f env -i setsid -f @B"),
    ("deaf", "( trap '' TERM HUP INT; env -i setsid -f @B )"),
    ("restarted", "env -i setsid -f /bin/sh -c 'while :; do @B; done'"),
    ("namespace", "env -i setsid -f unshare -Urpf @B"),
    ("root-namespace", "env -i setsid -f unshare -pf @B"),
    ("tmux", "tmux -S s new-session -d \"cd $PWD; @B\""),
    ("script", "env -i setsid -f script -qc '@B' /dev/null"),
    (
        "comet",
        "perl -e '%ENV = (); while (1) { open F, q(>>), q(beats/comet); print F q(x); close F; \
              select undef, undef, undef, 0.01; fork and exit; setpgrp }' &",
    ),
];

fn beats(sandbox: &Sandbox) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = std::fs::read_dir(sandbox.project().join("beats")) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .map(|entry| (entry.path(), entry.metadata().map_or(0, |found| found.len())))
        .collect();
    found.sort();
    found
}

/// Leaves in every way, in the foreground or as a task, kills the program, and looks whether anything still beats.
fn nothing_beats_after_a_kill(confined: bool, background: bool) {
    let sandbox = Sandbox::new();
    let mut lines = vec!["mkdir -p beats".to_owned()];
    for (name, way) in WAYS {
        std::fs::write(
            sandbox.project().join(format!("{name}.sh")),
            format!("while :; do echo x >> beats/{name}; sleep 0.05; done\n"),
        )
        .unwrap();
        lines.push(format!("( {} ) > /dev/null 2>&1", way.replace("@B", &format!("/bin/sh {name}.sh"))));
    }
    lines.push("until test -s beats/comet -a -s beats/deaf -a -s beats/twice; do sleep 0.01; done; touch ready; sleep 300".to_owned());
    let call = json!({ "command": lines.join("\n"), "run_in_background": background });
    let server = ScriptedServer::start(Script::by(move |_, number| match number {
        0 => Reply::tool("Bash", call.clone()),
        _ => Reply::StalledStream { after_events: 1, ms: 120_000, reply: Box::new(Reply::text("never")) },
    }));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--permission-mode", "bypassPermissions"]).stdin(std::process::Stdio::null());
    if confined {
        command.arg("--sandbox");
    }
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the processes", || sandbox.project().join("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let mut known = Vec::new();
    wait_until("their end", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = beats(&sandbox);
        now == std::mem::replace(&mut known, now.clone())
    });
    assert!(known.len() >= 5, "{known:?}");
}

#[test]
fn whatever_they_did_when_the_program_is_killed() {
    for (confined, background) in [(false, false), (false, true), (true, false), (true, true)] {
        nothing_beats_after_a_kill(confined, background);
    }
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
