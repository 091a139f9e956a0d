//! Commands that try to read or run more than they may: files outside, words of arguments that would be commands, heads of
//! folders that are not trusted, and hooks that put other files or lines in place of those that were judged.

use serde_json::{Value, json};

use crate::bypasses::support::{BINARY, Case, answering, done, touch};

const SECRET: &str = "words of the secret";

fn project(settings: &Value, text: &str) -> Case {
    let case = Case::trusted(settings);
    case.file(".qoder/commands/try.md", text);
    case.sandbox.write("../outside.txt", SECRET);
    case.sandbox.write(case.sandbox.home().join("private.txt"), SECRET);
    case.file("inside.txt", "words of the project");
    case
}

/// What the log says: everything that a model could have been sent is in it.
fn log(case: &Case) -> String {
    case.sandbox.transcript_lines().iter().map(Value::to_string).collect()
}

#[test]
fn a_file_outside_the_workspace_is_not_included() {
    for name in ["../outside.txt", "~/private.txt", "link.txt", "folder/link.txt", "notes.md", "/etc/passwd"]
    {
        let case = project(&json!({}), &format!("Look at @{name}"));
        case.link("link.txt", case.sandbox.project().parent().unwrap().join("outside.txt"));
        case.link("folder", case.sandbox.project());
        case.file("notes.md", "see @/etc/passwd and @../outside.txt");
        let ran = case.run("/try", &json!([done()]), &["--permission-mode", "acceptEdits"]);
        assert_eq!(ran.result()["is_error"], true, "{name}: {}", ran.result());
        let log = log(&case);
        assert!(!log.contains(SECRET) && !log.contains("root:x:0"), "{name}: {log}");
    }
    let case = project(&json!({}), "Look at @inside.txt");
    assert_eq!(case.run("/try", &json!([done()]), &[]).result()["result"], "done");
    assert!(log(&case).contains("words of the project"));
}

#[test]
fn what_an_argument_says_is_not_worked_out() {
    let case = project(&json!({}), "Look at $ARGUMENTS and $1");
    for argument in ["@../outside.txt", "@inside.txt", "!`touch made`", "$(touch made)", "`touch made`"] {
        case.run(&format!("/try {argument}"), &json!([done()]), &["--allowed-tools", "Bash"]);
        let log = log(&case);
        assert!(!case.made() && !log.contains(SECRET) && !log.contains("words of the project"), "{argument}");
    }
}

#[test]
fn an_argument_stays_one_word_of_a_command_line() {
    let head = "---\nallowed-tools: Bash(echo:*)\n---\n";
    for argument in [
        "'; touch made'",
        "'$(touch made)'",
        "'`touch made`'",
        "'| touch made'",
        "'\n touch made'",
        "'> made'",
        "\"'; touch made; '\"",
    ] {
        let case = project(&json!({}), &format!("{head}It says !`echo $1 $ARGUMENTS`"));
        let ran = case.run(&format!("/try {argument}"), &json!([done()]), &[]);
        assert!(!case.made(), "{argument}: {}", ran.result());
    }
}

#[test]
fn heads_of_an_untrusted_folder_allow_nothing() {
    for mode in ["default", "acceptEdits", "bypassPermissions"] {
        let case = Case::untrusted(&json!({}));
        case.file(".qoder/commands/try.md", "---\nallowed-tools: Bash\nmodel: other\n---\n!`touch made`");
        let ran = case.run("/try", &json!([touch(), done()]), &["--permission-mode", mode]);
        assert!(!case.made() && ran.all().contains("There is no command /try"), "{mode}: {}", ran.all());
    }
}

#[test]
fn a_line_meets_deny_rules_in_every_mode() {
    let text = "---\nallowed-tools: Bash, Bash(touch made)\n---\n!`touch made`";
    for mode in ["default", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions"] {
        let case = project(&json!({ "permissions": { "deny": ["Bash(touch:*)"] } }), text);
        let ran = case.run("/try", &json!([touch(), done()]), &["--permission-mode", mode]);
        assert!(!case.made() && ran.result()["is_error"] == true, "{mode}: {}", ran.result());
    }
}

#[test]
fn linked_commands_and_names_of_built_in_ones_do_not_count() {
    let case = project(&json!({}), "x");
    let outside = case.sandbox.write("../linked.md", "---\nallowed-tools: Bash\n---\n!`touch made`");
    case.link(".qoder/commands/linked.md", &outside);
    case.file(".qoder/commands/clear.md", "---\nallowed-tools: Bash\n---\n!`touch made`");
    case.file(".qoder/commands/a b.md", "!`touch made`");
    for name in ["/linked", "/clear", "/a b"] {
        let ran = case.run(name, &json!([done()]), &[]);
        assert!(!case.made(), "{name}: {}", ran.all());
    }
    let listed = case.sandbox.run(BINARY, &["commands", "list"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(said.contains("leads out of the project") && said.contains("is a built-in command"), "{said}");
}

#[test]
fn a_hook_that_puts_another_file_in_place_has_that_file_included_and_judged() {
    let secret = json!({ "permissions": { "deny": ["Read(secret.txt)"] } });
    for (included, other, words) in [
        // The rule denies what the command wants, and the hook wants something else.
        ("secret.txt", "inside.txt", Some("words of the project")),
        // The hook wants what the rule denies.
        ("inside.txt", "secret.txt", None),
        ("inside.txt", "../outside.txt", None),
    ] {
        let mut settings = secret.clone();
        settings["hooks"] = answering("PreToolUse", &json!({ "updatedInput": { "file_path": other } }));
        let case = project(&settings, &format!("Look at @{included}"));
        case.file("secret.txt", SECRET);
        let ran = case.run("/try", &json!([done()]), &[]);
        let log = log(&case);
        assert!(!log.contains(SECRET), "{included} {other}: {log}");
        match words {
            Some(words) => assert!(log.contains(words), "{log}"),
            None => assert_eq!(ran.result()["is_error"], true, "{}", ran.result()),
        }
    }
}

#[test]
fn a_hook_answers_for_a_line_no_more_than_for_any_call() {
    let text = "!`touch made`";
    let allow = answering("PermissionRequest", &json!({ "decision": { "behavior": "allow" } }));
    let case = project(&json!({ "hooks": allow }), text);
    case.run("/try", &json!([done()]), &[]);
    assert!(case.made(), "what only the mode asks about is a hook's to answer");
    let other = json!({ "behavior": "allow", "updatedInput": { "command": "touch made # other" } });
    let changing = answering("PermissionRequest", &json!({ "decision": other }));
    let early = answering("PreToolUse", &json!({ "permissionDecision": "allow" }));
    let rewriting = answering(
        "PreToolUse",
        &json!({ "permissionDecision": "allow", "updatedInput": { "command": "sudo touch made" } }),
    );
    for (hooks, rules) in [
        (&allow, json!({ "ask": ["Bash(touch:*)"] })),
        (&allow, json!({ "deny": ["Bash(touch:*)"] })),
        (&changing, json!({ "ask": ["Bash(touch made)"] })),
        (&early, json!({ "ask": ["Bash(touch:*)"] })),
        (&early, json!({ "deny": ["Bash(touch made)"] })),
        (&rewriting, json!({})),
    ] {
        let case = project(&json!({ "hooks": hooks, "permissions": rules }), text);
        let ran = case.run("/try", &json!([done()]), &[]);
        assert!(!case.made() && ran.result()["is_error"] == true, "{rules}: {}", ran.result());
    }
}

#[test]
fn a_mode_that_a_hook_chooses_beside_its_answer_does_not_count() {
    let update = json!([{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }]);
    let answer = json!({ "decision": { "behavior": "allow", "updatedPermissions": update } });
    let case = project(&json!({ "hooks": answering("PermissionRequest", &answer) }), "!`mkdir first`");
    let ask = json!({ "permissions": { "ask": ["Bash(touch:*)"] } }).to_string();
    let ran = case.run("/try", &json!([touch(), done()]), &["--settings", &ask]);
    assert!(case.has("first") && !case.made(), "{}", ran.all());
    assert!(ran.all().contains("only a person may"), "{}", ran.all());
}
