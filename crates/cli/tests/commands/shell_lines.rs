//! Shell interpolation behind the gate: a line runs when rules, the mode, hooks or a person allow it; otherwise the
//! command is refused with the reason and no model is asked. Every decision is on record.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::commands::support::{Talk, asked, bodies, command, model, records, trusted, turn};

fn making(head: &str) -> Sandbox {
    let sandbox = trusted();
    command(&sandbox, "make", &format!("{head}Made: !`touch made && echo it-is-made`."));
    sandbox
}

#[test]
fn a_line_that_only_reads_runs() {
    let sandbox = trusted();
    sandbox.write("notes.txt", "the notes");
    command(&sandbox, "notes", "The notes: !`cat $1`!");
    let server = model(vec![Reply::text("done")]);
    assert_eq!(turn(&sandbox, &server, &["/notes notes.txt"]).result()["result"], "done");
    assert_eq!(asked(&bodies(&server)[0]), "The notes: the notes!");
    assert_eq!(records(&sandbox, "decision")[0]["decision"]["behavior"], "allow");
    assert_eq!(records(&sandbox, "tool-start")[0]["toolName"], "Bash");
}

#[test]
fn a_line_that_is_not_allowed_refuses_the_command() {
    let sandbox = making("");
    let server = model(vec![Reply::text("never")]);
    let ran = turn(&sandbox, &server, &["/make"]);
    let error = ran.error();
    assert!(
        error.starts_with("/make was not run: ") && error.contains("nobody can be asked here"),
        "{error}"
    );
    assert!(bodies(&server).is_empty() && !sandbox.project().join("made").exists());
    let denial = &ran.result()["permission_denials"][0];
    assert_eq!(
        (&denial["tool_name"], &denial["tool_input"]["command"]),
        (&json!("Bash"), &json!("touch made && echo it-is-made"))
    );
    assert_eq!(records(&sandbox, "decision")[0]["decision"]["behavior"], "deny");
}

#[test]
fn allowed_tools_of_the_command_let_it_run() {
    let sandbox = making("---\nallowed-tools: Bash(touch:*), Bash(echo:*)\n---\n");
    let server = model(vec![Reply::text("done")]);
    assert_eq!(turn(&sandbox, &server, &["/make"]).result()["result"], "done");
    assert_eq!(asked(&bodies(&server)[0]), "Made: it-is-made.");
    assert!(sandbox.project().join("made").exists());
}

#[test]
fn a_deny_rule_beats_the_command() {
    let sandbox = making("---\nallowed-tools: Bash\n---\n");
    let server = model(vec![Reply::text("never")]);
    let error = turn(&sandbox, &server, &["/make", "--disallowed-tools", "Bash(touch:*)"]).error();
    assert!(error.contains("denied by the rule `Bash(touch:*)`"), "{error}");
    assert!(bodies(&server).is_empty() && !sandbox.project().join("made").exists());
}

#[test]
fn plan_mode_runs_no_line_that_changes_something() {
    let sandbox = making("---\nallowed-tools: Bash\n---\n");
    let server = model(vec![Reply::text("never")]);
    let error = turn(&sandbox, &server, &["/make", "--permission-mode", "plan"]).error();
    assert!(error.contains("plan mode makes no changes"), "{error}");
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn a_person_is_asked_about_a_line() {
    for allow in [true, false] {
        let sandbox = making("");
        let server = model(vec![Reply::text("done")]);
        let mut talk = Talk::start(&sandbox, &server, &["--permission-prompt-tool", "stdio"]);
        talk.request(&json!({ "subtype": "initialize" }));
        talk.prompt("/make");
        let question = talk.asked("can_use_tool");
        assert_eq!(question["request"]["input"]["command"], "touch made && echo it-is-made");
        let answer = if allow {
            json!({ "behavior": "allow", "updatedInput": question["request"]["input"] })
        } else {
            json!({ "behavior": "deny", "message": "not today" })
        };
        talk.respond(&question, &answer);
        let result = talk.result();
        assert_eq!(sandbox.project().join("made").exists(), allow, "{result}");
        match allow {
            true => assert_eq!(asked(&bodies(&server)[0]), "Made: it-is-made."),
            false => assert_eq!(result["errors"][0], "/make was not run: not today"),
        }
    }
}

#[test]
fn hooks_bind_the_lines_of_commands() {
    let sandbox = making("---\nallowed-tools: Bash\n---\n");
    let server = model(vec![Reply::text("never")]);
    let mut talk = Talk::start(&sandbox, &server, &[]);
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash", "hookCallbackIds": ["h"] }] });
    talk.request(&json!({ "subtype": "initialize", "hooks": hooks }));
    talk.prompt("/make");
    let called = talk.asked("hook_callback");
    assert_eq!(called["request"]["input"]["tool_input"]["command"], "touch made && echo it-is-made");
    talk.respond(
        &called,
        &json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "hook says no" } }),
    );
    let result = talk.result();
    assert!(result["errors"][0].as_str().unwrap().contains("hook says no"), "{result}");
    assert!(bodies(&server).is_empty() && !sandbox.project().join("made").exists());
}

/// The model of the turn, and the judge behind another name.
fn judged(verdict: &'static str) -> qoder_testkit::ScriptedServer {
    qoder_testkit::ScriptedServer::start(qoder_testkit::Script::by(move |request, _| {
        if request["model"] == "judge" { Reply::text(verdict) } else { Reply::text("done") }
    }))
}

#[test]
fn in_auto_mode_the_judge_is_asked_about_a_line() {
    for (verdict, made) in [
        ("{\"decision\":\"allow\",\"reason\":\"asked for\"}", true),
        ("{\"decision\":\"deny\",\"reason\":\"not asked for\"}", false),
        ("go ahead", false),
    ] {
        let sandbox = making("");
        let server = judged(verdict);
        let settings = json!({ "autoMode": { "classifier": "judge" } }).to_string();
        let flags = ["/make WANTED", "--permission-mode", "auto", "--settings", &settings];
        let ran = turn(&sandbox, &server, &flags);
        assert_eq!(sandbox.project().join("made").exists(), made, "{verdict}: {}", ran.stdout);
        let question = bodies(&server)[0].to_string();
        assert!(question.contains("/make WANTED") && question.contains("touch made"), "{question}");
        let decision = &records(&sandbox, "decision")[0]["decision"];
        assert_eq!(decision["layer"], "classifier");
        assert_eq!(records(&sandbox, "side-call")[0]["model"], "judge");
    }
}

#[test]
fn hooks_of_permission_requests_see_a_line() {
    for (behavior, made) in [("allow", true), ("deny", false)] {
        let sandbox = making("");
        let server = model(vec![Reply::text("done")]);
        let mut talk = Talk::start(&sandbox, &server, &["--permission-prompt-tool", "stdio"]);
        let hooks = json!({ "PermissionRequest": [{ "matcher": "Bash", "hookCallbackIds": ["h"] }] });
        talk.request(&json!({ "subtype": "initialize", "hooks": hooks }));
        talk.prompt("/make");
        let called = talk.asked("hook_callback");
        let input = &called["request"]["input"];
        assert_eq!(input["tool_input"]["command"], "touch made && echo it-is-made", "{called}");
        talk.respond(
            &called,
            &json!({ "hookSpecificOutput": {
                "hookEventName": "PermissionRequest", "decision": { "behavior": behavior, "message": "hook says so" } } }),
        );
        let result = talk.result();
        assert_eq!(sandbox.project().join("made").exists(), made, "{result}");
        let decision = &records(&sandbox, "decision")[0]["decision"];
        assert_eq!((&decision["layer"], &decision["behavior"]), (&json!("hook"), &json!(behavior)));
        assert_eq!(records(&sandbox, "permission-answer").len(), 1);
    }
}
