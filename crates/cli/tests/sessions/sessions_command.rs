//! `qodercli sessions`: list, show, export and delete, for people and as JSON.

use std::time::{Duration, SystemTime};

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{
    ID, OTHER_ID, append, log_of, log_text, records, run, run_with, server, side_of,
};

/// Two sessions; the one with [`OTHER_ID`] is newer.
fn two_sessions() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".git/HEAD", "ref: refs/heads/feature/x\n");
    sandbox.write("notes.txt", "line one\n");
    let read = Reply::tool("Read", json!({"file_path": "notes.txt"}));
    let server = server(vec![read, Reply::text("It has **one** line.")]);
    run_with(&sandbox, &server, &["-p", "what is\nin notes.txt", "--session-id", ID]).exits(0);
    run(&sandbox, &["-p", "hello", "--session-id", OTHER_ID]).exits(0);
    let old = SystemTime::now() - Duration::from_secs(100);
    std::fs::File::options().append(true).open(log_of(&sandbox, ID)).unwrap().set_modified(old).unwrap();
    sandbox
}

#[test]
fn sessions_are_listed_newest_first() {
    let sandbox = two_sessions();
    let list = run(&sandbox, &["sessions", "list"]).exits(0);
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with(OTHER_ID) && lines[0].ends_with("  hello"), "{}", lines[0]);
    assert!(lines[1].starts_with(ID) && lines[1].ends_with("  what is in notes.txt"), "{}", lines[1]);
    assert_eq!(run(&sandbox, &["--list-sessions"]).exits(0).stdout, list.stdout);

    let rows = run(&sandbox, &["sessions", "list", "--json"]).exits(0).json();
    let row = &rows[1];
    let modified = row["lastModified"].as_u64().unwrap();
    assert!(rows[0]["lastModified"].as_u64().unwrap() > modified && modified > 1_600_000_000_000);
    let expected = json!({"sessionId": ID, "summary": "what is in notes.txt", "lastModified": modified,
        "customTitle": null, "firstPrompt": "what is in notes.txt", "gitBranch": "feature/x",
        "cwd": sandbox.project().display().to_string(), "fileSize": log_text(&sandbox, ID).len()});
    let known: serde_json::Map<String, Value> = expected.as_object().unwrap().clone();
    for (key, value) in known {
        assert_eq!(row[&key], value, "{key}");
    }
}

#[test]
fn what_tools_are_called_with_does_not_name_a_session() {
    let sandbox = Sandbox::new();
    let input =
        json!({ "file_path": "notes.txt", "customTitle": "evil", "aiTitle": "evil", "gitBranch": "evil" });
    let server = server(vec![Reply::tool("Read", input), Reply::text("done")]);
    run_with(&sandbox, &server, &["-p", "hello", "--session-id", ID]).exits(0);
    let rows = run(&sandbox, &["sessions", "list", "--json"]).exits(0).json();
    assert!(log_text(&sandbox, ID).contains("\"customTitle\":\"evil\""));
    assert_eq!(
        (&rows[0]["summary"], &rows[0]["customTitle"], &rows[0]["gitBranch"]),
        (&json!("hello"), &Value::Null, &Value::Null)
    );
}

#[test]
fn what_is_no_file_does_not_hold_a_list_up() {
    let sandbox = two_sessions();
    let log = log_of(&sandbox, ID);
    let beside = |name: &str| log.with_file_name(format!("{name}.jsonl"));
    std::fs::create_dir(beside("33333333-3333-4333-8333-333333333333")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", beside("44444444-4444-4444-8444-444444444444")).unwrap();
    let pipe = beside("55555555-5555-4555-8555-555555555555");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert_eq!(run(&sandbox, &["sessions", "list"]).exits(0).stdout.lines().count(), 2);
}

#[test]
fn control_characters_of_titles_and_prompts_are_shown_and_not_obeyed() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["-p", "clear \u{1b}[2J the screen", "--session-id", ID]).exits(0);
    let listed = run(&sandbox, &["sessions", "list"]).exits(0).stdout;
    assert!(listed.ends_with("  clear \\u{1b}[2J the screen\n"), "{listed:?}");
    let messages = run(&sandbox, &["sessions", "rewind", ID]).exits(0).stdout;
    assert!(messages.ends_with("  clear \\u{1b}[2J the screen\n"), "{messages:?}");
    let title = json!({ "type": "custom-title", "customTitle": "one\nline\u{7}", "sessionId": ID });
    append(&sandbox, ID, &format!("{title}\n"));
    let listed = run(&sandbox, &["sessions", "list"]).exits(0).stdout;
    assert!(listed.ends_with("  one line\\u{7}\n"), "{listed:?}");
}

#[test]
fn a_long_first_prompt_is_shown_by_its_beginning() {
    let sandbox = Sandbox::new();
    let prompt = "word ".repeat(20_000);
    run(&sandbox, &["-p", &prompt, "--session-id", ID]).exits(0);
    let rows = run(&sandbox, &["sessions", "list", "--json"]).exits(0).json();
    assert!(rows[0]["summary"].as_str().unwrap().starts_with("word word"), "{rows}");
}

#[test]
fn the_last_title_names_a_session() {
    let sandbox = two_sessions();
    for title in ["First title", "Last \"title\""] {
        let line = json!({"type": "custom-title", "customTitle": title, "sessionId": OTHER_ID});
        append(&sandbox, OTHER_ID, &format!("{line}\n"));
    }
    let rows = run(&sandbox, &["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(rows[0]["customTitle"], "Last \"title\"");
    assert_eq!(rows[0]["summary"], "Last \"title\"");
    assert_eq!(rows[0]["firstPrompt"], "hello");
}

#[test]
fn other_projects_are_listed_only_on_request() {
    let sandbox = two_sessions();
    let other = sandbox.home().join("elsewhere");
    std::fs::create_dir(&other).unwrap();
    let there = |arguments: &[&str]| {
        let mut command = crate::sessions::support::offline(&sandbox, arguments);
        command.current_dir(&other);
        crate::sessions::support::finish(command)
    };
    let none = there(&["sessions", "list"]).exits(0);
    assert_eq!(none.stdout, "");
    none.says(&["no sessions here", "--all"]);
    assert_eq!(there(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
    let all = there(&["sessions", "list", "--all"]).exits(0);
    assert_eq!(all.stdout.lines().count(), 2);
    assert!(all.stdout.contains(&sandbox.project().display().to_string()));
    assert!(there(&["sessions", "show", ID]).exits(0).stdout.contains("> what is in notes.txt"));
}

#[test]
fn a_session_is_shown() {
    let sandbox = two_sessions();
    let before = log_text(&sandbox, ID);
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    let expected = [
        &format!("session {ID}"),
        &format!("log     {}", log_of(&sandbox, ID).display()),
        &format!("cwd     {}", sandbox.project().display()),
        "> what is in notes.txt",
        "  • Read {\"file_path\":\"notes.txt\"}",
        "    allow: ",
        "    completed in ",
        "  It has **one** line.",
        "  = done after 2 model calls",
    ];
    let mut rest = shown.as_str();
    for part in expected {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not in its place in {shown}"));
        rest = &rest[at + part.len()..];
    }
    let summary = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    assert_eq!(summary["sessionId"], ID);
    assert_eq!(summary["records"], records(&sandbox, ID).len());
    assert_eq!(summary["prompts"], 1);
    assert_eq!(summary["unfinished"], false);
    assert_eq!(summary["epoch"], 1);
    assert!(summary["totalCostUsd"].is_f64() && summary["modelUsage"].is_object());
    assert_eq!(log_text(&sandbox, ID), before, "looking changes nothing");
}

#[test]
fn a_session_is_exported() {
    let sandbox = two_sessions();
    let markdown = run(&sandbox, &["sessions", "export", ID]).exits(0).stdout;
    let expected = [
        &format!("# Session {ID}\n"),
        "\n## User\n\nwhat is\nin notes.txt\n",
        "\n## Assistant\n",
        "\n**Read** `toolu_",
        "`\n\n```json\n{\n  \"file_path\": \"notes.txt\"\n}\n```\n",
        "line one",
        "It has **one** line.\n",
    ];
    let mut rest = markdown.as_str();
    for part in expected {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not in its place in {markdown}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(run(&sandbox, &["sessions", "export", ID, "--format", "markdown"]).exits(0).stdout, markdown);
    let lines = run(&sandbox, &["sessions", "export", ID, "--format", "jsonl"]).exits(0).stdout;
    assert_eq!(lines, log_text(&sandbox, ID));
    run(&sandbox, &["sessions", "export", ID, "--format", "pdf"])
        .exits(42)
        .says(&["pdf", "markdown", "jsonl"]);
}

#[test]
fn a_deleted_session_leaves_nothing_behind() {
    let sandbox = two_sessions();
    let (log, side) = (log_of(&sandbox, ID), side_of(&sandbox, ID));
    assert!(log.is_file() && side.is_dir());
    assert_eq!(run(&sandbox, &["sessions", "delete", ID]).exits(0).stdout, format!("deleted {ID}\n"));
    assert!(!log.exists() && !side.exists());
    assert!(log_of(&sandbox, OTHER_ID).exists(), "the other one stays");
    run(&sandbox, &["-p", "x", "--resume", ID]).exits(55);
    run(&sandbox, &["-p", "x", "--session-id", ID]).exits(0);
}

#[test]
fn a_damaged_session_can_be_deleted() {
    let sandbox = two_sessions();
    let log = log_of(&sandbox, ID);
    std::fs::write(&log, format!("garbage\n{}", log_text(&sandbox, ID))).unwrap();
    run(&sandbox, &["sessions", "delete", ID]).exits(0);
    assert!(!log.exists());
}

#[test]
fn sessions_that_are_not_there_are_named() {
    let sandbox = Sandbox::new();
    for action in ["show", "delete", "export", "repair"] {
        run(&sandbox, &["sessions", action, ID]).exits(55).says(&[ID, "hint: "]);
        run(&sandbox, &["sessions", action, "x"]).exits(42).says(&["`x` is not a valid session ID"]);
    }
    assert!(!sandbox.config().join("projects").exists(), "asking creates nothing");
    run(&sandbox, &["sessions"]).exits(42);
}
