//! Bash: what the environment of this process may and may not do to a command, and that commands die with it.
//!
//! Each test starts itself again in a process of its own, because a test must not change its own environment or kill
//! itself.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::common::{Bench, appears, is_gone, whole_name};
use serde_json::json;

/// Set in the process that a test starts.
const INNER: &str = "QODER_TEST_INNER";

fn is_inner() -> bool {
    std::env::var_os(INNER).is_some()
}

/// Starts the test `name` again as the inner process.
fn start_inner(name: &str, variables: &[(&str, &str)]) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", &whole_name(module_path!(), name), "--nocapture"]).env(INNER, "1");
    for (variable, value) in variables {
        command.env(variable, value);
    }
    command.stdout(Stdio::piped()).spawn()
}

#[tokio::test]
async fn the_environment_cannot_change_the_meaning_of_a_command() {
    let bench = Bench::new();
    if is_inner() {
        bench.write("inner/x", "");
        bench.write("ls", "#!/bin/sh\necho replaced\n");
        std::fs::set_permissions(bench.path("ls"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let command =
            "echo ok; shopt -q expand_aliases || echo off; ls inner; cd inner && pwd | grep -c outer";
        let outcome = bench.run("Bash", json!({ "command": command })).await;
        assert_eq!(outcome.structured["stdout"], "ok\noff\nx\n0\n");
        assert_eq!(outcome.structured["stderr"], "");
        return;
    }
    let start_file = bench.write("start.sh", "echo from the start file\n");
    let start_file = start_file.to_str().unwrap();
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    let outer = bench.path("outer");
    std::fs::create_dir_all(outer.join("inner")).unwrap();
    let variables = [
        ("PATH", path.as_str()),
        ("CDPATH", outer.to_str().unwrap()),
        ("PS4", "$(echo replaced >&2)"),
        ("BASH_ENV", start_file),
        ("ENV", start_file),
        ("SHELLOPTS", "xtrace"),
        ("BASHOPTS", "expand_aliases"),
        ("BASH_FUNC_echo%%", "() { builtin echo replaced; }"),
    ];
    let inner = start_inner("the_environment_cannot_change_the_meaning_of_a_command", &variables).unwrap();
    let output = inner.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_dies_with_this_process() {
    let bench = Bench::new();
    if is_inner() {
        // The number is that of a grandchild, which the kernel alone would let live on.
        let command = "sleep 50 & echo $! > \"${PROBE_FILE:?}\"; wait";
        bench.fail("Bash", json!({ "command": command })).await;
        return;
    }
    let file = bench.path("process");
    let mut inner =
        start_inner("a_command_dies_with_this_process", &[("PROBE_FILE", file.to_str().unwrap())]).unwrap();
    let process = appears(&file).await;
    inner.kill().unwrap();
    inner.wait().unwrap();
    is_gone(&process).await;
}
