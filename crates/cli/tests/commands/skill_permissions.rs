//! The gate and skills: text alone needs no permission, a skill that allows calls does, rules name skills, and what a
//! skill allows ends with the turn and never beats a rule that denies.

use qoder_testkit::Reply;
use serde_json::json;

use crate::commands::support::{answered, bodies, call, model, skill, trusted, turn};

const RULES: &str = "allowed-tools: Bash(touch made*)\n";

fn loads_and_runs() -> Vec<Reply> {
    vec![
        call("toolu_1", "Skill", json!({ "skill": "make" })),
        call("toolu_2", "Bash", json!({ "command": "touch made" })),
        Reply::text("done"),
    ]
}

#[test]
fn a_deny_rule_names_a_skill() {
    let sandbox = trusted();
    skill(&sandbox, "pdf", "", "THE TEXT");
    let server = model(vec![call("toolu_1", "Skill", json!({ "skill": "pdf" })), Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["go", "--disallowed-tools", "Skill(pdf)"]);
    let (text, is_error) = answered(&bodies(&server)[1]);
    assert!(is_error && text.contains("denied by the rule `Skill(pdf)`"), "{text}");
    assert_eq!(ran.result()["permission_denials"][0]["tool_name"], "Skill");
    let server = model(vec![Reply::text("never")]);
    let error = turn(&sandbox, &server, &["/pdf", "--disallowed-tools", "Skill(pdf)"]).error();
    assert!(error.contains("/pdf cannot be used: Skill is denied by the rule `Skill(pdf)`"), "{error}");
    assert!(bodies(&server).is_empty());
}

#[test]
fn a_skill_that_allows_calls_needs_permission() {
    let sandbox = trusted();
    skill(&sandbox, "make", RULES, "THE TEXT");
    let server = model(loads_and_runs());
    turn(&sandbox, &server, &["go"]);
    let requests = bodies(&server);
    let (text, is_error) = answered(&requests[1]);
    assert!(is_error && text.contains("the skill make brings rules that allow calls"), "{text}");
    assert!(answered(&requests[2]).1 && !sandbox.project().join("made").exists());
}

#[test]
fn what_a_skill_allows_ends_with_the_turn() {
    let sandbox = trusted();
    skill(&sandbox, "make", RULES, "THE TEXT");
    let server = model(loads_and_runs());
    turn(&sandbox, &server, &["go", "--allowed-tools", "Skill(make)"]);
    assert!(!answered(&bodies(&server)[2]).1, "{:?}", bodies(&server)[2]["messages"]);
    assert!(sandbox.project().join("made").exists());
    let again = call("toolu_3", "Bash", json!({ "command": "touch made2" }));
    let server = model(vec![Reply::text(""), Reply::text(""), Reply::text(""), again, Reply::text("end")]);
    turn(&sandbox, &server, &["-c", "again"]);
    assert!(answered(bodies(&server).last().unwrap()).1 && !sandbox.project().join("made2").exists());
}

#[test]
fn a_deny_rule_beats_what_a_skill_allows() {
    let sandbox = trusted();
    skill(&sandbox, "make", RULES, "THE TEXT");
    let server = model(loads_and_runs());
    turn(&sandbox, &server, &["go", "--allowed-tools", "Skill", "--disallowed-tools", "Bash(touch:*)"]);
    let requests = bodies(&server);
    assert!(!answered(&requests[1]).1 && answered(&requests[2]).1);
    assert!(!sandbox.project().join("made").exists());
}
