//! What binds the parent binds its children: rules, mode and the question whether a child may start at all. The calls of a
//! child that cannot ask are denied; it continues, and its denials name it.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_logs, child_requests, family, lines};
use crate::turns::parked;
use crate::turns::support::{bodies, calls, results_in, run, stream};

fn runs(command: &str) -> (&'static str, &'static str, Value) {
    ("toolu_run", "Bash", json!({ "command": command }))
}

fn parent() -> Vec<Reply> {
    vec![calls(&[agent("toolu_agent", &json!({}))]), Reply::text("done")]
}

#[test]
fn without_a_rule_it_is_asked_about() {
    let server = family(parent(), vec![Reply::text("never")]);
    let finished = stream(&Sandbox::new(), &server, &["go"]);
    assert_eq!(finished.success()["permission_denials"][0]["tool_name"], "Agent");
    assert_eq!(child_requests(&server), Vec::<Value>::new());
    let other = stream(&Sandbox::new(), &server, &["go", "--allowed-tools", "Agent(other)"]);
    assert_eq!(other.success()["permission_denials"][0]["tool_name"], "Agent");
    let denied =
        ["go", "--permission-mode", "bypassPermissions", "--disallowed-tools", "Agent(general-purpose)"];
    let denied = stream(&Sandbox::new(), &server, &denied);
    assert_eq!(denied.success()["permission_denials"][0]["tool_name"], "Agent");
    assert_eq!(child_requests(&server), Vec::<Value>::new());
}

#[test]
fn a_question_about_it_waits_and_always_keeps_a_rule_for_the_agent() {
    let (sandbox, server) = (parked::sandbox(), family(parent(), vec![Reply::text("words")]));
    parked::park(&sandbox, &server, &[]);
    parked::answer(&sandbox, "toolu_agent", &["allow", "--always"]);
    parked::resume(&sandbox, &server, &[]).success();
    let kept = std::fs::read_to_string(sandbox.project().join(".qoder/settings.local.json")).unwrap();
    assert!(kept.contains("Agent(general-purpose)"), "{kept}");
    assert_eq!(child_requests(&server).len(), 1);
}

#[test]
fn rules_bind_the_child_and_its_denials_name_it() {
    let child = vec![calls(&[runs("touch bad.txt")]), Reply::text("could not")];
    for mode in ["default", "acceptEdits", "bypassPermissions"] {
        let (sandbox, server) = (Sandbox::new(), family(parent(), child.clone()));
        let rules = ["--allowed-tools", "Agent,Bash", "--disallowed-tools", "Bash(touch:*)"];
        let finished = stream(&sandbox, &server, &[&["go", "--permission-mode", mode], &rules[..]].concat());
        finished.success();
        assert!(!sandbox.project().join("bad.txt").exists());
        let denied = finished.system("permission_denied");
        assert_eq!(denied.len(), 1, "{}", finished.stdout);
        assert!(denied[0]["agent_id"].as_str().is_some_and(|id| id.len() == 32), "{}", denied[0]);
        assert_eq!(denied[0]["session_id"], finished.result()["session_id"]);
        assert!(results_in(&child_requests(&server)[1])[0].1.contains("Bash(touch:*)"));
    }
}

#[test]
fn the_mode_binds_the_child() {
    let write = ("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }));
    let child = vec![calls(&[write]), Reply::text("tried")];
    for (mode, made) in
        [("default", false), ("dontAsk", false), ("acceptEdits", true), ("bypassPermissions", true)]
    {
        let (sandbox, server) = (Sandbox::new(), family(parent(), child.clone()));
        stream(&sandbox, &server, &["go", "--permission-mode", mode, "--allowed-tools", "Agent"]).success();
        assert_eq!(sandbox.project().join("made.txt").exists(), made, "{mode}");
        let log = lines(&child_logs(&sandbox)[0]);
        let decision = log.iter().find(|line| line["type"] == "decision").unwrap();
        assert_eq!(decision["decision"]["mode"], mode);
    }
}

#[test]
fn a_child_has_the_mode_of_the_moment() {
    let parent = vec![
        calls(&[("toolu_plan", "ExitPlanMode", json!({ "plan": "write" }))]),
        calls(&[agent("toolu_agent", &json!({}))]),
        Reply::text("done"),
    ];
    let write = ("toolu_write", "Write", json!({ "file_path": "made.txt", "content": "x" }));
    let server = family(parent, vec![calls(&[write]), Reply::text("tried")]);
    let sandbox = parked::sandbox();
    let arguments = ["--permission-mode", "plan", "--allowed-tools", "Agent,Write"];
    parked::park(&sandbox, &server, &arguments);
    parked::answer(&sandbox, "toolu_plan", &["allow"]);
    parked::resume(&sandbox, &server, &arguments).success();
    assert!(sandbox.project().join("made.txt").exists(), "planning ended before the child began");
}

#[test]
fn a_question_of_a_child_that_is_not_kept_does_not_wait() {
    let server = family(parent(), vec![calls(&[runs("mkdir made")]), Reply::text("could not")]);
    let sandbox = parked::sandbox();
    let arguments = ["go", "--allowed-tools", "Agent", "--no-session-persistence"];
    let finished = run(parked::turn(&sandbox, &server, &arguments));
    assert_eq!(finished.success()["result"], "done", "no process could come back to it");
    assert!(!sandbox.project().join("made").exists());
    assert_eq!(finished.system("permission_denied")[0]["decision_reason_type"], "unattended");
    assert_eq!(results_in(bodies(&server).last().unwrap())[0].1, "could not");
}

#[test]
fn an_agent_that_does_not_exist_is_an_error() {
    for field in ["agent", "subagent_type"] {
        let parent = vec![calls(&[agent("toolu_agent", &json!({ field: "reviewer" }))]), Reply::text("done")];
        let server = family(parent, vec![Reply::text("never")]);
        stream(&Sandbox::new(), &server, &["go", "--allowed-tools", "Agent"]).success();
        let told = results_in(bodies(&server).last().unwrap());
        assert!(told[0].2 && told[0].1.contains("There is no agent named reviewer"), "{told:?}");
        assert!(told[0].1.contains("general-purpose"), "{told:?}");
        assert_eq!(child_requests(&server), Vec::<Value>::new());
    }
}

#[test]
fn a_call_of_a_child_is_explained_with_the_parents_session() {
    let server = family(parent(), vec![calls(&[runs("touch bad.txt")]), Reply::text("could not")]);
    let sandbox = parked::sandbox();
    parked::settle(&sandbox, &json!({ "permissions": { "unattended": "deny" } }));
    let arguments = ["go", "--session-id", parked::SESSION, "--allowed-tools", "Agent"];
    let finished = run(parked::turn(&sandbox, &server, &arguments));
    let denied = finished.system("permission_denied");
    let why = parked::explained(&sandbox, "toolu_run");
    assert_eq!((&why["decision"], &why["agentId"]), (&json!("deny"), &denied[0]["agent_id"]));
    assert_eq!(parked::explained(&sandbox, "toolu_agent")["agentId"], Value::Null);
}

#[test]
fn a_session_that_is_not_kept_has_children_too() {
    let server = family(parent(), vec![Reply::text("words")]);
    let sandbox = Sandbox::new();
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--no-session-persistence"]);
    assert_eq!(finished.success()["result"], "done");
    assert_eq!(results_in(bodies(&server).last().unwrap())[0].1, "words");
    assert!(!sandbox.config().join("projects").exists(), "nothing is kept");
}
