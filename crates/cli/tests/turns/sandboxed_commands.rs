//! Commands in the sandbox, through the whole program: they run without a question, what they may not reach stays as it
//! was, deny rules still hold, and leaving the sandbox is a question of its own. On a machine that cannot enforce it these
//! tests say so and check only that.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::turns::parked::{answer, model, park, pending, resume, sandbox as trusted, turn};
use crate::turns::support::{Finished, bodies, calls, records, results_in, run};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// False, and loudly so, where nothing can be enforced.
fn is_enforced(sandbox: &Sandbox) -> bool {
    let status: Finished = {
        let mut command = sandbox.command(BINARY);
        command.args(["sandbox", "status", "--json"]);
        run(command)
    };
    let enforced = status.code == 0;
    if !enforced {
        eprintln!("SKIPPED: the sandbox cannot be enforced on this machine: {}", status.stdout);
        assert_eq!(status.code, 44);
    }
    enforced
}

fn runs(command: &str) -> Vec<Reply> {
    vec![calls(&[("toolu_1", "Bash", json!({ "command": command }))]), Reply::text("done")]
}

#[test]
fn a_command_runs_without_a_question_and_only_inside() {
    let sandbox = trusted();
    if !is_enforced(&sandbox) {
        return;
    }
    let outside = sandbox.home().join("outside.txt");
    let command = format!("echo in > inside.txt; echo out > {} || echo kept out", outside.display());
    let server = model(runs(&command));
    let finished = run(turn(&sandbox, &server, &["go", "--sandbox"]));
    assert_eq!(finished.success()["permission_denials"], json!([]));
    assert!(sandbox.project().join("inside.txt").exists() && !outside.exists());
    let told = results_in(&bodies(&server)[1]);
    assert!(told[0].1.contains("kept out"), "{told:?}");
    assert_eq!(records(&sandbox, "decision")[0]["decision"]["layer"], "sandbox");
}

#[test]
fn deny_rules_hold_in_it() {
    let sandbox = trusted();
    if !is_enforced(&sandbox) {
        return;
    }
    let server = model(runs("touch denied.txt"));
    let finished = run(turn(&sandbox, &server, &["go", "--sandbox", "--disallowed-tools", "Bash(touch:*)"]));
    assert_eq!(finished.success()["permission_denials"][0]["tool_use_id"], "toolu_1");
    assert!(!sandbox.project().join("denied.txt").exists());
}

#[test]
fn leaving_it_is_a_question_of_its_own() {
    let sandbox = trusted();
    if !is_enforced(&sandbox) {
        return;
    }
    let outside = sandbox.home().join("outside.txt");
    let input =
        json!({ "command": format!("touch {}", outside.display()), "dangerouslyDisableSandbox": true });
    let server = model(vec![calls(&[("toolu_1", "Bash", input)]), Reply::text("done")]);
    park(&sandbox, &server, &["--sandbox"]);
    assert_eq!(pending(&sandbox), ["toolu_1"]);
    assert!(!outside.exists());
    answer(&sandbox, "toolu_1", &["allow"]);
    resume(&sandbox, &server, &["--sandbox"]).success();
    assert!(outside.exists(), "{:?}", results_in(&bodies(&server)[1]));
}

#[test]
fn where_nobody_may_be_asked_it_is_not_left() {
    let sandbox = trusted();
    if !is_enforced(&sandbox) {
        return;
    }
    let outside = sandbox.home().join("outside.txt");
    let input =
        json!({ "command": format!("touch {}", outside.display()), "dangerouslyDisableSandbox": true });
    for mode in ["dontAsk", "auto"] {
        let server = model(vec![calls(&[("toolu_1", "Bash", input.clone())]), Reply::text("done")]);
        let finished = run(turn(&sandbox, &server, &["go", "--sandbox", "--permission-mode", mode]));
        assert_eq!(finished.success()["permission_denials"][0]["tool_use_id"], "toolu_1", "{mode}");
        assert!(!outside.exists(), "{mode}");
    }
}
