//! Questions to a person and the approval of a plan wait like any other question. Answers come back in the input; an
//! approved plan ends plan mode for good. Where no one may ever be asked, both are denied at once.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::parked::{SESSION, answer, model, park, pending, resume, sandbox, settle, turn};
use crate::turns::support::{bodies, calls, results_in, run};

fn question() -> Value {
    json!({ "questions": [{ "question": "Which database?", "header": "Database", "multiSelect": false,
        "options": [{ "label": "SQLite", "description": "a file" }, { "label": "Postgres", "description": "a server" }] }] })
}

fn plan_and_write() -> Vec<Reply> {
    vec![
        calls(&[("toolu_plan", "ExitPlanMode", json!({ "plan": "1. write it" }))]),
        calls(&[("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }))]),
        Reply::text("done"),
    ]
}

fn made(sandbox: &Sandbox) -> bool {
    sandbox.project().join("made.txt").exists()
}

#[test]
fn answers_come_back_in_the_input() {
    let server = model(vec![calls(&[("toolu_ask", "AskUserQuestion", question())]), Reply::text("done")]);
    for mode in ["default", "bypassPermissions"] {
        let sandbox = sandbox();
        park(&sandbox, &server, &["--permission-mode", mode]);
        let mut input = question();
        input["answers"] = json!({ "Which database?": "Postgres" });
        answer(&sandbox, "toolu_ask", &["allow", "--input", &input.to_string()]);
        let finished = resume(&sandbox, &server, &["--permission-mode", mode]);
        finished.success();
        let results = results_in(bodies(&server).last().unwrap());
        assert!(!results[0].2 && results[0].1.contains("Which database? → Postgres"), "{results:?}");
        let told = finished.of("user").pop().unwrap();
        assert_eq!(told["tool_use_result"]["answers"], json!({ "Which database?": "Postgres" }));
    }
}

#[test]
fn an_approved_plan_returns_to_the_mode_before() {
    for (settled, written) in [("default", false), ("acceptEdits", true)] {
        let (sandbox, server) = (sandbox(), model(plan_and_write()));
        settle(&sandbox, &json!({ "general": { "defaultPermissionMode": settled } }));
        let planned = park(&sandbox, &server, &["--permission-mode", "plan"]);
        assert_eq!(planned.system("init")[0]["permissionMode"], "plan");
        answer(&sandbox, "toolu_plan", &["allow"]);
        let finished = resume(&sandbox, &server, &[]);
        assert_eq!(finished.system("init")[0]["permissionMode"], "plan", "planning survives");
        assert_eq!(finished.system("status")[0]["permissionMode"], settled, "{}", finished.stdout);
        assert_eq!(made(&sandbox), written, "{settled}: {}", finished.stdout);
        assert_eq!(finished.code, if written { 0 } else { 54 });
        let after = run(turn(&sandbox, &server, &["what now?", "--resume", SESSION]));
        assert_eq!(after.system("init")[0]["permissionMode"], settled, "the mode survives");
    }
}

#[test]
fn a_session_that_began_with_planning_goes_on_by_default() {
    let (sandbox, server) = (sandbox(), model(plan_and_write()));
    park(&sandbox, &server, &["--permission-mode", "plan"]);
    answer(&sandbox, "toolu_plan", &["allow"]);
    let finished = resume(&sandbox, &server, &["--allowed-tools", "Write"]);
    finished.success();
    assert!(made(&sandbox), "the rule counts again after planning");
}

#[test]
fn a_plan_that_is_sent_back_leaves_plan_mode_on() {
    let (sandbox, server) = (sandbox(), model(plan_and_write()));
    park(&sandbox, &server, &["--permission-mode", "plan"]);
    answer(&sandbox, "toolu_plan", &["deny", "--message", "smaller steps"]);
    let finished = resume(&sandbox, &server, &["--allowed-tools", "Write"]);
    finished.success();
    assert!(!made(&sandbox));
    assert_eq!(results_in(&bodies(&server)[1])[0].1, "smaller steps");
    assert_eq!(finished.system("permission_denied").pop().unwrap()["decision_reason_type"], "mode");
    assert_eq!(pending(&sandbox), Vec::<String>::new());
}

#[test]
fn where_nobody_may_be_asked_both_are_denied() {
    for mode in ["dontAsk", "auto"] {
        let sandbox = sandbox();
        let wanted = [
            ("toolu_ask", "AskUserQuestion", question()),
            ("toolu_plan", "ExitPlanMode", json!({ "plan": "1. write it" })),
        ];
        let server = model(vec![calls(&wanted), Reply::text("done")]);
        let finished = run(turn(&sandbox, &server, &["go", "--permission-mode", mode]));
        let denied = finished.success()["permission_denials"].as_array().unwrap().len();
        assert_eq!(denied, 2, "{mode}");
    }
}
