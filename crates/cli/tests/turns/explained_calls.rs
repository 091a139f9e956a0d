//! `permissions explain` prints why any past call ran or did not: the rule with its file and line, the mode, that
//! no one could answer, or who answered. `permissions list` shows the rules in force with where they come from.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::turns::parked::{SESSION, answer, explained, model, park, permissions, resume, sandbox, turn};
use crate::turns::support::{calls, run};

fn text_of(sandbox: &qoder_testkit::Sandbox, id: &str) -> String {
    let finished = permissions(sandbox, &["explain", SESSION, id]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    finished.stdout
}

#[test]
fn rules_are_named_with_file_and_line() {
    let sandbox = sandbox();
    let settings = "{\n  \"permissions\": {\n    \"allow\": [\"Bash(touch:*)\"],\n    \"deny\": [\"Bash(mkdir:*)\"]\n  }\n}\n";
    let file = sandbox.write(".qoder/settings.json", settings);
    let wanted = [
        ("toolu_yes", "Bash", json!({ "command": "touch a" })),
        ("toolu_no", "Bash", json!({ "command": "mkdir b" })),
    ];
    let server = model(vec![calls(&wanted), Reply::text("done")]);
    run(turn(&sandbox, &server, &["go", "--session-id", SESSION])).success();
    let yes = explained(&sandbox, "toolu_yes");
    assert_eq!((&yes["decision"], &yes["reason"]["rule"]), (&json!("allow"), &json!("Bash(touch:*)")));
    let origin =
        |line: u32| json!({ "source": "projectSettings", "file": file.to_str().unwrap(), "line": line });
    assert_eq!(yes["reason"]["origin"], origin(3));
    assert_eq!((&yes["started"], &yes["outcome"]), (&json!(true), &json!("completed")));
    let no = explained(&sandbox, "toolu_no");
    assert_eq!((&no["decision"], &no["reason"]["origin"]), (&json!("deny"), &origin(4)));
    assert_eq!((&no["started"], &no["outcome"]), (&json!(false), &json!("denied")));
    let text = text_of(&sandbox, "toolu_no");
    assert!(text.contains("decision deny") && text.contains("rule     Bash(mkdir:*)"), "{text}");
    assert!(text.contains(&format!("{}:4 (projectSettings)", file.display())), "{text}");
}

#[test]
fn a_mode_and_nobody_being_there_are_named() {
    let wanted = [("toolu_1", "Bash", json!({ "command": "mkdir a" }))];
    for (arguments, layer, behavior) in [
        (&["--permission-mode", "dontAsk"][..], "mode", "deny"),
        (&["--permission-mode", "bypassPermissions"][..], "mode", "allow"),
        (&["--settings", r#"{"permissions":{"unattended":"deny"}}"#][..], "unattended", "deny"),
    ] {
        let (sandbox, server) = (sandbox(), model(vec![calls(&wanted), Reply::text("done")]));
        let first = [&["go", "--session-id", SESSION], arguments].concat();
        run(turn(&sandbox, &server, &first)).success();
        let why = explained(&sandbox, "toolu_1");
        assert_eq!((&why["decision"], &why["reason"]["type"]), (&json!(behavior), &json!(layer)), "{why:#}");
        assert!(text_of(&sandbox, "toolu_1").contains(&format!("layer    {layer}")));
    }
}

#[test]
fn a_persons_answer_is_named_and_so_is_a_question_without_one() {
    let wanted = [("toolu_1", "Bash", json!({ "command": "mkdir a" }))];
    let (sandbox, server) = (sandbox(), model(vec![calls(&wanted), Reply::text("done")]));
    park(&sandbox, &server, &[]);
    let waiting = explained(&sandbox, "toolu_1");
    assert_eq!((&waiting["decision"], &waiting["outcome"]), (&Value::Null, &Value::Null));
    assert!(text_of(&sandbox, "toolu_1").contains("decision none yet"));
    answer(&sandbox, "toolu_1", &["deny", "--by", "Ada"]);
    resume(&sandbox, &server, &[]).success();
    let text = text_of(&sandbox, "toolu_1");
    assert!(text.contains("answer   deny by Ada") && text.contains("Ada denied it"), "{text}");
    assert_eq!(explained(&sandbox, "toolu_1")["reason"]["answeredBy"], "Ada");
}

#[test]
fn an_unknown_call_is_an_error() {
    let (sandbox, server) = (sandbox(), model(vec![Reply::text("done")]));
    run(turn(&sandbox, &server, &["go", "--session-id", SESSION])).success();
    let finished = permissions(&sandbox, &["explain", SESSION, "toolu_none", "--json"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (42, ""));
    assert!(finished.stderr.contains("has no call toolu_none"), "{}", finished.stderr);
    let other = "79000000-0000-4000-8000-000000000009";
    assert_eq!(permissions(&sandbox, &["explain", other, "toolu_none"]).code, 55);
}

#[test]
fn the_rules_in_force_are_listed_with_their_origins() {
    let sandbox = sandbox();
    crate::turns::parked::settle(&sandbox, &json!({ "permissions": { "deny": ["Read(.env)"] } }));
    let rules = |key: &str, rule: &str| json!({ "permissions": { key: [rule] } }).to_string();
    let project = sandbox.write(".qoder/settings.json", rules("ask", "Bash(git push:*)"));
    let local = sandbox.write(".qoder/settings.local.json", rules("allow", "Bash(touch:*)"));
    let flag = rules("allow", "Bash(mkdir:*)");
    let finished = permissions(&sandbox, &["list", "--json", "--settings", &flag]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let list: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&list["trusted"], &list["mode"]), (&json!(true), &json!("default")));
    let origin = |rule: &str| -> Value {
        let rows = list["rules"].as_array().unwrap();
        rows.iter().find(|row| row["rule"] == rule).unwrap_or_else(|| panic!("{rule}: {list:#}"))["origin"]
            .clone()
    };
    let user = sandbox.config().join("settings.json");
    for (rule, source, file) in [
        ("Read(.env)", "userSettings", &user),
        ("Bash(git push:*)", "projectSettings", &project),
        ("Bash(touch:*)", "localSettings", &local),
    ] {
        assert_eq!((&origin(rule)["source"], &origin(rule)["file"]), (&json!(source), &json!(file)));
        assert_eq!(origin(rule)["line"], 1);
    }
    assert_eq!(origin("Bash(mkdir:*)")["source"], "flagSettings");
    let text = permissions(&sandbox, &["list"]).stdout;
    assert!(
        text.contains("(trusted)") && text.contains(&format!("[{}:1 (localSettings)]", local.display())),
        "{text}"
    );
}

#[test]
fn ids_are_shortened_and_the_last_denial_is_meant_without_one() {
    let wanted = [
        ("toolu_one", "Bash", json!({ "command": "mkdir a" })),
        ("toolu_other", "Bash", json!({ "command": "mkdir b" })),
    ];
    let (sandbox, server) = (sandbox(), model(vec![calls(&wanted), Reply::text("done")]));
    let flags = ["--settings", r#"{"permissions":{"unattended":"deny"}}"#];
    run(turn(&sandbox, &server, &[&["go", "--session-id", SESSION][..], &flags].concat()));
    let shown = sandbox.run(crate::turns::parked::BINARY, &["sessions", "show", &SESSION[..8]]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("denied · toolu_one") && shown.contains("denied · toolu_other"), "{shown}");
    let call_of = |arguments: &[&str]| {
        let finished = permissions(&sandbox, &[&["explain"], arguments].concat());
        assert_eq!(finished.code, 0, "{arguments:?}: {}", finished.stderr);
        finished.stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(call_of(&[]), "call     toolu_other");
    assert_eq!(call_of(&[&SESSION[..4]]), "call     toolu_other");
    assert_eq!(call_of(&[&SESSION[..13], "toolu_on"]), "call     toolu_one");
    assert_eq!(call_of(&["toolu_on"]), "call     toolu_one");
    let several = permissions(&sandbox, &["explain", SESSION, "toolu_o"]);
    assert_eq!(several.code, 42);
    assert!(
        several.stderr.contains("toolu_one") && several.stderr.contains("toolu_other"),
        "{}",
        several.stderr
    );
}

#[test]
fn a_beginning_that_two_sessions_share_is_refused_with_both() {
    let (sandbox, server) = (sandbox(), model(vec![Reply::text("done")]));
    let ids = ["abcd1111-0000-4000-8000-000000000001", "abcd2222-0000-4000-8000-000000000002"];
    for id in ids {
        run(turn(&sandbox, &server, &["go", "--session-id", id])).success();
    }
    let shown = sandbox.run(crate::turns::parked::BINARY, &["sessions", "show", "abcd"]);
    let stderr = String::from_utf8(shown.stderr).unwrap();
    assert_eq!(shown.status.code(), Some(42), "{stderr}");
    assert!(ids.iter().all(|id| stderr.contains(id)), "{stderr}");
    run(turn(&sandbox, &server, &["again", "--resume", "abcd2"])).success();
    assert_eq!(
        sandbox.run(crate::turns::parked::BINARY, &["sessions", "show", "abcd1"]).status.code(),
        Some(0)
    );
}

#[test]
fn an_input_that_a_hook_and_a_person_changed_is_shown_as_asked_and_as_run() {
    let wanted = [("toolu_1", "Bash", json!({ "command": "mkdir asked" }))];
    let (sandbox, server) = (sandbox(), model(vec![calls(&wanted), Reply::text("done")]));
    let output = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
        "updatedInput": { "command": "mkdir hooked" } } });
    let hook = json!({ "type": "command", "name": "rewriter",
        "command": format!("cat > /dev/null; printf '%s' '{output}'") });
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string();
    park(&sandbox, &server, &["--settings", &settings]);
    answer(&sandbox, "toolu", &["allow", "--by", "Ada", "--input", r#"{"command": "mkdir ran"}"#]);
    resume(&sandbox, &server, &[]).success();
    assert!(sandbox.project().join("ran").exists());
    let why = explained(&sandbox, "toolu_1");
    assert_eq!(
        (&why["input"], &why["ranInput"]),
        (&json!({ "command": "mkdir asked" }), &json!({ "command": "mkdir ran" }))
    );
    assert_eq!(why["inputChangedBy"], "hook rewriter, then Ada");
    let text = text_of(&sandbox, "toolu_1");
    assert!(text.contains(r#"input    {"command":"mkdir asked"}"#), "{text}");
    assert!(
        text.contains(r#"ran      {"command":"mkdir ran"} (changed by hook rewriter, then Ada)"#),
        "{text}"
    );
    let sessions = |arguments: &[&str]| {
        let output = sandbox.run(crate::turns::parked::BINARY, &[&["sessions"], arguments].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = sessions(&["show", SESSION]);
    assert!(shown.contains("mkdir asked"), "{shown}");
    assert!(
        shown.contains(r#"changed by hook rewriter, then Ada, ran with {"command":"mkdir ran"}"#),
        "{shown}"
    );
    let data: Value = serde_json::from_str(&sessions(&["show", SESSION, "--json"])).unwrap();
    let spans = data["turns"][0]["spans"].as_array().unwrap();
    let call = spans.iter().find(|span| span["kind"] == "tool").unwrap();
    assert_eq!(call["input"]["command"], "mkdir asked");
    assert_eq!(
        (&call["ranInput"]["command"], &call["inputChangedBy"]),
        (&json!("mkdir ran"), &json!("hook rewriter, then Ada"))
    );
    let exported = sessions(&["export", SESSION]);
    for part in ["mkdir asked", "changed by hook rewriter", "mkdir hooked", "changed by Ada", "mkdir ran"] {
        assert!(exported.contains(part), "{part}: {exported}");
    }
}
