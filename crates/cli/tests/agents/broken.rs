//! Files that cannot be used are named with file and line, and the rest loads: broken heads, wrong values, links that
//! loop or lead away, folders that are no folders, too many files.

use std::os::unix::fs::symlink;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::agents::support::{delegating, file, listed, rows, run, stream};

/// The problem of a file, with its line.
fn problem(listed: &Value, file: &str) -> (Value, String) {
    let all = listed["problems"].as_array().unwrap();
    let one = all.iter().find(|one| one["path"].as_str().unwrap().ends_with(file));
    let one = one.unwrap_or_else(|| panic!("{file} is in no problem: {listed:#}"));
    (one["line"].clone(), one["problem"].as_str().unwrap().to_owned())
}

#[test]
fn a_broken_file_is_named_with_file_and_line_while_the_rest_loads() {
    let sandbox = Sandbox::new();
    let folder = sandbox.config().join("agents");
    sandbox.write(folder.join("good.md"), file("good", "works", ""));
    sandbox.write(folder.join("torn.md"), "---\nname: torn\ntools: [Read\n---\nP\n");
    sandbox.write(folder.join("open.md"), "---\nname: open\n");
    sandbox.write(folder.join("effort.md"), file("effort", "d", "model: lite\neffort: heroic"));
    sandbox.write(folder.join("remote.md"), file("remote", "d", "kind: remote\nagentCardUrl: https://x"));
    sandbox.write(folder.join("binary.md"), b"---\nname: \xff\xfe\n---\n");
    sandbox.write(folder.join("README.md"), "# About these agents\n");
    sandbox.write(folder.join("notes.txt"), "not looked at");
    let all = listed(&sandbox, &[]);
    assert_eq!(rows(&all, "good").len(), 1);
    for (name, line, words) in [
        ("torn.md", None, "not valid YAML"),
        ("open.md", Some(1), "never ends"),
        ("effort.md", Some(5), "`effort` is \"heroic\"; accepted are low, medium, high, xhigh, max"),
        ("remote.md", Some(4), "remote agents are not supported"),
        ("binary.md", None, "not UTF-8"),
        ("README.md", None, "`name` is missing"),
    ] {
        let (at, text) = problem(&all, name);
        assert!(text.contains(words), "{name}: {text}");
        if let Some(line) = line {
            assert_eq!(at, line, "{name}: {text}");
        }
    }
    assert_eq!(all["problems"].as_array().unwrap().len(), 6, "{all:#}");
    assert_eq!(all["agents"].as_array().unwrap().len(), 4, "{all:#}");
}

#[test]
fn a_session_warns_of_broken_files_and_runs() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/bad.md"), file("bad", "d", "maxTurns: none"));
    let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
    let ran = stream(&sandbox, &server, &["go"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("bad.md:4: `maxTurns` is"), "{ran:?}");
    assert_eq!(ran.init()["agents"], json!(["general-purpose", "Explore", "Plan"]));
}

#[test]
fn unknown_fields_are_ignored_and_noted() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", "shape: round\nmax_turns: 3"));
    let all = listed(&sandbox, &[]);
    let row = rows(&all, "r")[0];
    assert_eq!(all["problems"], json!([]));
    let notes = row["notes"].to_string();
    assert!(notes.contains("`shape` is not known") && notes.contains("`max_turns`"), "{notes}");
    assert_eq!(row.get("maxTurns"), None);
}

#[test]
fn kind_remote_is_refused_with_file_and_line() {
    let sandbox = Sandbox::new();
    let head = "kind: remote\nagentCardUrl: https://example.com/card";
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", head));
    let all = listed(&sandbox, &[]);
    assert!(rows(&all, "r").is_empty(), "{all}");
    let (line, text) = problem(&all, "r.md");
    assert!(line == 4 && text.contains("remote agents are not supported"), "{text}");
    let ran = run(&sandbox, &["agents", "list"]);
    assert!(ran.stderr.contains("r.md:4: "), "{ran:?}");
}

#[test]
fn links_may_not_lead_out_of_the_project_and_loops_end() {
    let sandbox = Sandbox::new();
    let outside = sandbox.write(sandbox.home().join("secret.md"), file("secret", "OUTSIDE", ""));
    sandbox.write(".qoder/agents/good.md", file("good", "works", ""));
    let inside = sandbox.write("shared/linked.md", file("linked", "inside", ""));
    let folder = sandbox.project().join(".qoder/agents");
    symlink(outside, folder.join("out.md")).unwrap();
    symlink(inside, folder.join("in.md")).unwrap();
    symlink(folder.join("loop.md"), folder.join("loop.md")).unwrap();
    symlink("/dev/zero", folder.join("device.md")).unwrap();
    std::fs::create_dir(folder.join("folder.md")).unwrap();
    symlink(&folder, folder.join("again")).unwrap();
    let all = listed(&sandbox, &[]);
    assert!(!all.to_string().contains("OUTSIDE"), "{all:#}");
    assert_eq!((rows(&all, "good").len(), rows(&all, "linked").len()), (1, 1));
    for (name, words) in [
        ("out.md", "leads out of the folder"),
        ("loop.md", "cannot be read"),
        ("device.md", "leads out of the folder"),
        ("folder.md", "it is a directory, not a file"),
    ] {
        let (_, text) = problem(&all, name);
        assert!(text.contains(words), "{name}: {text}");
    }
}

#[test]
fn a_folder_of_agents_that_is_a_link_out_of_the_project_is_not_read() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.home().join("elsewhere/a.md"), file("a", "OUTSIDE", ""));
    std::fs::create_dir(sandbox.project().join(".qoder")).unwrap();
    symlink(sandbox.home().join("elsewhere"), sandbox.project().join(".qoder/agents")).unwrap();
    let all = listed(&sandbox, &[]);
    assert!(rows(&all, "a").is_empty(), "{all:#}");
    assert!(problem(&all, ".qoder/agents").1.contains("leads out"), "{all:#}");
}

#[test]
fn too_many_and_too_large_files_are_left_out_and_told() {
    let sandbox = Sandbox::new();
    let folder = sandbox.config().join("agents");
    for number in 0..505 {
        sandbox.write(folder.join(format!("a{number:03}.md")), file(&format!("a{number:03}"), "d", ""));
    }
    sandbox.write(folder.join("a000.md"), file("a000", "d", &format!("# {}", "x".repeat(1_100_000))));
    let all = listed(&sandbox, &[]);
    assert!(problem(&all, "agents").1.contains("has 505 files"), "{}", all["problems"]);
    assert!(problem(&all, "a000.md").1.contains("is larger than"), "{}", all["problems"]);
    assert!(rows(&all, "a499").len() == 1 && rows(&all, "a500").is_empty());
}

#[test]
fn what_a_file_says_cannot_drive_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "\"a \\e[31m b\"", ""));
    let ran = run(&sandbox, &["agents", "list"]);
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.contains("[31m b"), "{ran:?}");
}

#[test]
fn servers_that_an_agent_wants_and_does_not_get_are_told() {
    let sandbox = Sandbox::new();
    let servers = "mcpServers: [nowhere, {kb: {command: /nonexistent/server}}]";
    sandbox.write(sandbox.config().join("agents/keeper.md"), file("keeper", "keeps", servers));
    let server = delegating("keeper", Vec::new());
    let ran = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    assert!(ran.stdout.contains("child is done"), "{ran:?}");
    let told =
        |words: &str| ran.stderr.contains(&format!("the agent keeper works without the server {words}"));
    assert!(told("`nowhere`: the session has no such server") && told("`kb`: failed"), "{}", ran.stderr);
}
