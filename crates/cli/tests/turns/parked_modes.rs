//! An answer is one thing and the mode of the resumed run is another: an allowance does not make plan mode change
//! files, and a mode that never asks stays a denial. A rule that forbids a mode outlasts what the log says.

use qoder_testkit::Reply;
use serde_json::json;

use crate::turns::parked::{SESSION, answer, model, park, resume, sandbox, settle, turn};
use crate::turns::support::{calls, run};

fn writes() -> Vec<Reply> {
    vec![
        calls(&[("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }))]),
        Reply::text("done"),
    ]
}

#[test]
fn a_stricter_mode_of_the_next_run_holds() {
    for mode in ["plan", "dontAsk"] {
        let (sandbox, server) = (sandbox(), model(writes()));
        park(&sandbox, &server, &[]);
        answer(&sandbox, "toolu_write", &["allow"]);
        let finished = resume(&sandbox, &server, &["--permission-mode", mode]);
        assert_eq!(finished.success()["permission_denials"][0]["tool_use_id"], "toolu_write", "{mode}");
        assert!(!sandbox.project().join("made.txt").exists(), "{mode}");
    }
}

#[test]
fn a_mode_of_one_run_is_not_the_mode_of_the_next() {
    let (sandbox, server) = (sandbox(), model(vec![Reply::text("hello")]));
    let first = ["hi", "--session-id", SESSION, "--permission-mode", "bypassPermissions"];
    run(turn(&sandbox, &server, &first)).success();
    let next = run(turn(&sandbox, &server, &["again", "--resume", SESSION]));
    assert_eq!(next.system("init")[0]["permissionMode"], "default");
}

#[test]
fn an_approved_plan_does_not_lead_into_a_forbidden_mode() {
    let replies =
        vec![calls(&[("toolu_plan", "ExitPlanMode", json!({ "plan": "write" }))]), Reply::text("done")];
    let (sandbox, server) = (sandbox(), model(replies));
    settle(&sandbox, &json!({ "general": { "defaultPermissionMode": "bypassPermissions" } }));
    park(&sandbox, &server, &["--permission-mode", "plan"]);
    answer(&sandbox, "toolu_plan", &["allow"]);
    settle(&sandbox, &json!({ "security": { "disableYoloMode": true } }));
    let finished = resume(&sandbox, &server, &[]);
    finished.success();
    assert_eq!(finished.system("status")[0]["permissionMode"], "default");
}
