//! Rules and modes that speak of places: anchors of path rules, links that lead out of the workspace, additional
//! directories, and files that no broad permission covers.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{assert_calls_in_order, bodies, calls, records, results_in, stream};

/// Which of these calls succeeded, and what each was answered.
fn outcomes(sandbox: &Sandbox, wanted: &[(&str, Value)], arguments: &[&str]) -> Vec<(bool, String)> {
    let ids: Vec<String> = (0..wanted.len()).map(|index| format!("toolu_{index}")).collect();
    let named: Vec<(&str, &str, Value)> =
        ids.iter().zip(wanted).map(|(id, (name, input))| (id.as_str(), *name, input.clone())).collect();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![calls(&named), Reply::text("done")]));
    let mut all = vec!["go"];
    all.extend_from_slice(arguments);
    stream(sandbox, &server, &all).success();
    assert_calls_in_order(sandbox);
    let results = results_in(&bodies(&server)[1]);
    results.into_iter().map(|(_, text, failed)| (!failed, text)).collect()
}

fn read(path: &str) -> (&'static str, Value) {
    ("Read", json!({ "file_path": path }))
}

fn write(path: &str) -> (&'static str, Value) {
    ("Write", json!({ "file_path": path, "content": "new" }))
}

fn succeeded(outcomes: &[(bool, String)]) -> Vec<bool> {
    outcomes.iter().map(|(succeeded, _)| *succeeded).collect()
}

#[test]
fn accepting_edits_covers_the_workspace_but_no_protected_file() {
    let sandbox = Sandbox::new();
    let outside = sandbox.home().join("outside.txt");
    let wanted = [
        write("deep/inside.txt"),
        write(".git/hooks/pre-commit"),
        write(".qoder/settings.json"),
        write(".bashrc"),
        write(".GITCONFIG"),
        write(".mcp.json"),
        write("../outside.txt"),
        write(outside.to_str().unwrap()),
    ];
    for mode in ["acceptEdits", "auto"] {
        let sandbox = Sandbox::new();
        let outcomes = outcomes(&sandbox, &wanted, &["--permission-mode", mode]);
        assert_eq!(succeeded(&outcomes), [true, false, false, false, false, false, false, false], "{mode}");
        for (_, text) in &outcomes[1..6] {
            assert!(text.contains("is a protected file"), "{mode}: {text}");
        }
        for (_, text) in &outcomes[6..] {
            assert!(text.contains("is outside the workspace"), "{mode}: {text}");
        }
        let mut found: Vec<_> = std::fs::read_dir(sandbox.project())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, ["deep"], "{mode}");
    }
    assert!(!outside.exists());
}

#[test]
fn a_broad_rule_does_not_cover_protected_files_but_a_rule_that_names_one_does() {
    let sandbox = Sandbox::new();
    let wanted = [write("plain.txt"), write(".envrc")];
    let broad = outcomes(&sandbox, &wanted, &["--allowed-tools", "Write,Edit(**)"]);
    assert_eq!(succeeded(&broad), [true, false]);
    let sandbox = Sandbox::new();
    let named = outcomes(&sandbox, &wanted, &["--allowed-tools", "Edit(.envrc)"]);
    assert_eq!(succeeded(&named), [false, true]);
}

#[test]
fn anchors_of_path_rules() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("sub/keep", "");
    sandbox.write(sandbox.home().join("docs/note.txt"), "from home\n");
    let other = Sandbox::new();
    let absolute = other.write("data.txt", "from elsewhere\n");
    let note = sandbox.home().join("docs/note.txt");
    let anywhere = format!("Read(/{}/**)", other.project().display());
    let rules = format!("Edit(/src/**),Edit(./here.txt),Edit(*.log),Read(~/docs/**),{anywhere}");
    let wanted = [
        write("../src/a.txt"),
        write("src/b.txt"),
        write("here.txt"),
        write("deep/here.txt"),
        write("deep/x.log"),
        read(note.to_str().unwrap()),
        read(absolute.to_str().unwrap()),
        read("/etc/hostname"),
    ];
    let subfolder = sandbox.project().join("sub");
    let arguments = ["--allowed-tools", &rules, "--trust", "--cwd", subfolder.to_str().unwrap()];
    let outcomes = outcomes(&sandbox, &wanted, &arguments);
    assert_eq!(succeeded(&outcomes), [true, false, true, false, true, true, true, false], "{outcomes:#?}");
    let origins: Vec<Value> =
        records(&sandbox, "decision").iter().map(|record| record["decision"]["rule"].clone()).collect();
    let expected = [
        json!("Edit(/src/**)"),
        Value::Null,
        json!("Edit(./here.txt)"),
        Value::Null,
        json!("Edit(*.log)"),
        json!("Read(~/docs/**)"),
        json!(anywhere),
        Value::Null,
    ];
    assert_eq!(origins, expected);
}

#[test]
fn a_denied_place_is_denied_by_every_name() {
    let sandbox = Sandbox::new();
    sandbox.write("secret/key.pem", "the key\n");
    std::os::unix::fs::symlink("secret/key.pem", sandbox.project().join("harmless.txt")).unwrap();
    let absolute = sandbox.project().join("secret/key.pem");
    let wanted = [
        read("secret/key.pem"),
        read("./x/../secret/key.pem"),
        read(absolute.to_str().unwrap()),
        read("harmless.txt"),
        write("secret/key.pem"),
    ];
    let rules = ["--disallowed-tools", "Read(/secret/**)", "--permission-mode", "bypassPermissions"];
    let outcomes = outcomes(&sandbox, &wanted, &rules);
    assert_eq!(succeeded(&outcomes), [false; 5], "{outcomes:#?}");
    assert!(outcomes.iter().all(|(_, text)| text.contains("`Read(/secret/**)`")), "{outcomes:#?}");
    assert_eq!(std::fs::read_to_string(absolute).unwrap(), "the key\n");
}

#[test]
fn links_do_not_lead_out_of_the_workspace() {
    let sandbox = Sandbox::new();
    let secret = sandbox.write(sandbox.home().join("secret.txt"), "private\n");
    std::os::unix::fs::symlink(&secret, sandbox.project().join("link.txt")).unwrap();
    std::os::unix::fs::symlink(sandbox.home(), sandbox.project().join("folder")).unwrap();
    let wanted = [read("link.txt"), read("folder/secret.txt"), write("link.txt"), write("folder/new.txt")];
    let outcomes = outcomes(&sandbox, &wanted, &["--permission-mode", "acceptEdits"]);
    assert_eq!(succeeded(&outcomes), [false; 4], "{outcomes:#?}");
    assert!(outcomes.iter().all(|(_, text)| !text.contains("private")), "{outcomes:#?}");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "private\n");
    assert!(!sandbox.home().join("new.txt").exists());
}

#[test]
fn additional_directories_belong_to_the_workspace() {
    let sandbox = Sandbox::new();
    let other = Sandbox::new();
    let file = other.write("data.txt", "from elsewhere\n");
    let path = file.to_str().unwrap();
    assert_eq!(succeeded(&outcomes(&sandbox, &[read(path)], &[])), [false]);
    let folder = other.project().to_str().unwrap();
    let allowed = outcomes(&Sandbox::new(), &[read(path)], &["--add-dir", folder]);
    assert_eq!(allowed, [(true, "     1\tfrom elsewhere\n".to_owned())]);
    drop(sandbox);
}

#[test]
fn a_rule_speaks_of_the_same_place_after_the_directory_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("secret/key.txt", "the key\n");
    sandbox.write("top.pem", "the key\n");
    sandbox.write("sub/fine.txt", "fine\n");
    let replies = vec![
        calls(&[("toolu_cd", "Bash", json!({ "command": "cd sub" }))]),
        calls(&[
            ("toolu_0", "Read", json!({ "file_path": "../secret/key.txt" })),
            ("toolu_1", "Read", json!({ "file_path": "../top.pem" })),
            ("toolu_2", "Read", json!({ "file_path": "fine.txt" })),
            ("toolu_3", "Write", json!({ "file_path": "../allowed.txt", "content": "x" })),
            ("toolu_4", "Write", json!({ "file_path": "allowed.txt", "content": "x" })),
        ]),
        Reply::text("done"),
    ];
    let server = ScriptedServer::start(Script::by_assistant_count(replies));
    let rules = [
        "--disallowed-tools",
        "Read(secret/**),Read(*.pem)",
        "--allowed-tools",
        "Bash(cd:*),Edit(./allowed.txt)",
    ];
    stream(&sandbox, &server, &[&["go"], &rules[..]].concat()).success();
    let failed: Vec<bool> = results_in(&bodies(&server)[2]).into_iter().map(|(.., failed)| failed).collect();
    assert_eq!(failed, [true, true, false, false, true]);
    assert_calls_in_order(&sandbox);
}

#[test]
fn a_link_to_a_protected_folder_is_protected() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/hooks/README", "");
    std::os::unix::fs::symlink(".git/hooks", sandbox.project().join("scripts")).unwrap();
    let wanted = [write("scripts/pre-commit"), write(".Git/hooks/pre-commit")];
    let outcomes = outcomes(&sandbox, &wanted, &["--permission-mode", "acceptEdits"]);
    assert_eq!(succeeded(&outcomes), [false, false], "{outcomes:#?}");
    assert!(!sandbox.project().join(".git/hooks/pre-commit").exists());
}

#[test]
fn what_may_not_be_read_is_neither_searched_nor_listed() {
    let sandbox = Sandbox::new();
    sandbox.write("secret/key.pem", "needle in the key\n");
    sandbox.write("open/notes.txt", "needle in the notes\n");
    let wanted = [
        ("Grep", json!({ "pattern": "needle", "output_mode": "content" })),
        ("Glob", json!({ "pattern": "**/*" })),
        ("Grep", json!({ "pattern": "needle", "path": "secret" })),
    ];
    let free = outcomes(&sandbox, &wanted, &[]);
    assert!(free[0].1.contains("key.pem") && free[1].1.contains("key.pem") && free[2].0, "{free:?}");
    for flags in [
        &["--disallowed-tools", "Read(/secret/**)"][..],
        &["--settings", r#"{"permissions":{"ask":["Read(*.pem)","Read(/secret)"]}}"#],
    ] {
        let bound = outcomes(&sandbox, &wanted, flags);
        for (found, text) in &bound[..2] {
            assert!(*found && text.contains("notes.txt") && !text.contains("key"), "{flags:?}: {text}");
        }
        assert!(!bound[2].1.contains("key"), "{flags:?}: {}", bound[2].1);
    }
}
