//! Bash: what the environment of this process may and may not do to a command, and that commands die with it.
//!
//! Each probe runs in a process of its own, because a test must not change its own environment or kill itself.

mod common;

use std::process::{Child, Command};

use common::{Bench, appears, is_gone};
use serde_json::json;

/// Runs one of the ignored probes below in a process of its own.
fn probe(name: &str, variables: &[(&str, &str)]) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    for (variable, value) in variables {
        command.env(variable, value);
    }
    command.spawn()
}

#[test]
fn the_environment_cannot_change_the_meaning_of_a_command() {
    let bench = Bench::new();
    let start_file = bench.write("start.sh", "echo from the start file\n");
    let start_file = start_file.to_str().unwrap();
    let mut child = probe(
        "probe_environment",
        &[
            ("BASH_ENV", start_file),
            ("ENV", start_file),
            ("SHELLOPTS", "xtrace"),
            ("BASHOPTS", "expand_aliases"),
            ("BASH_FUNC_echo%%", "() { builtin echo replaced; }"),
        ],
    )
    .unwrap();
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
#[ignore = "run by the test above, in a prepared environment"]
async fn probe_environment() {
    let bench = Bench::new();
    let outcome =
        bench.run("Bash", json!({ "command": "echo ok; shopt -q expand_aliases || echo off" })).await;
    assert_eq!(outcome.structured["stdout"], "ok\noff\n");
    assert_eq!(outcome.structured["stderr"], "");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_dies_with_this_process() {
    let bench = Bench::new();
    let file = bench.path("process");
    let mut child = probe("probe_death", &[("PROBE_FILE", file.to_str().unwrap())]).unwrap();
    let process = appears(&file).await;
    child.kill().unwrap();
    child.wait().unwrap();
    is_gone(&process).await;
}

#[tokio::test]
#[ignore = "run by the test above, which kills it"]
async fn probe_death() {
    let bench = Bench::new();
    bench.fail("Bash", json!({ "command": "echo $$ > \"${PROBE_FILE:?}\"; exec sleep 50" })).await;
}
