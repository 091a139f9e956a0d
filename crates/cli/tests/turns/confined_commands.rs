//! `--sandbox` and `sandbox status`: the flag reaches the commands of a turn, a project cannot switch the sandbox off,
//! and the exit code of the status says whether what is asked for holds.

use std::process::Command;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{bodies, calls, results_in, stream};

fn status(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command: Command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    let output = command.args(["sandbox", "status", "--json"]).args(arguments).output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), said)
}

#[test]
fn the_status_says_what_holds() {
    let sandbox = Sandbox::new();
    let (code, said) = status(&sandbox, &[]);
    assert_eq!(code, Some(if said["enforced"] == true { 0 } else { 44 }), "{said}");
    assert_eq!(said["enabled"], false);
    let wish = r#"{"sandbox": {"enabled": true, "network": {"allowUnixSockets": ["/run/x.sock"]}}}"#;
    let (code, said) = status(&sandbox, &["--settings", wish]);
    assert_eq!((code, &said["enabled"], &said["enforced"]), (Some(44), &json!(true), &json!(false)));
    assert!(said["report"]["problems"].to_string().contains("allowUnixSockets"), "{said}");
    let (code, _) = status(&sandbox, &["--settings", r#"{"tools": {"sandbox": "docker"}}"#]);
    assert_eq!(code, Some(52));
}

#[test]
fn commands_of_a_turn_are_confined_and_a_project_has_no_say() {
    let sandbox = Sandbox::new();
    if status(&sandbox, &[]).1["enforced"] != true {
        eprintln!("SKIPPED: this system cannot confine commands");
        return;
    }
    sandbox.write(
        ".qoder/settings.json",
        r#"{"sandbox": {"enabled": false}, "tools": {"sandboxAllowedPaths": ["/"]}}"#,
    );
    let outside = sandbox.project().parent().unwrap().join("outside");
    let command = format!("echo in > inside; echo out > {}", outside.display());
    let wanted = [("call_1", "Bash", json!({ "command": command }))];
    let server = ScriptedServer::start(Script::by_assistant_count(vec![calls(&wanted), Reply::text("done")]));
    let arguments = ["go", "--sandbox", "--trust", "--permission-mode", "bypassPermissions"];
    assert_eq!(stream(&sandbox, &server, &arguments).success()["result"], "done");
    assert!(sandbox.project().join("inside").exists(), "{:?}", results_in(&bodies(&server)[1]));
    assert!(!outside.exists(), "{:?}", results_in(&bodies(&server)[1]));
    assert!(!sandbox.project().join(".git").exists(), "placeholders go with the command");
}
