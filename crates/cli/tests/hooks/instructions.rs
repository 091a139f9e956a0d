//! `InstructionsLoaded` and the rules behind it: rules for certain files come to the model when a tool reads or changes
//! such a file, in agents too; nothing of an untrusted folder does.

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Ran, Stage, call, entry, say, say_when};

const RULE: &str = "---\npaths: [\"src/**/*.rs\"]\n---\nNO-UNSAFE-CODE\n";

fn stage() -> Stage {
    let stage = Stage::command("InstructionsLoaded", NOTE);
    stage.sandbox.write(".qoder/rules/rust.md", RULE);
    stage.sandbox.write("src/deep/a.rs", "fn a() {}\n");
    stage.sandbox.write("notes.txt", "plain\n");
    stage
}

fn read(number: u32, file: &str) -> Value {
    call(number, "Read", &json!({ "file_path": file }))
}

/// What was reported with this reason.
fn told(stage: &Stage, reason: &str) -> Vec<Value> {
    stage.seen().into_iter().filter(|input| input["load_reason"] == reason).collect()
}

#[test]
fn load_reason_path_glob_match_has_file_path_memory_type_and_globs() {
    let stage = stage();
    stage.sandbox.write(stage.sandbox.config().join("rules/own.md"), "---\nglob: '*.rs'\n---\nOWN-RULE\n");
    let replies = json!([
        read(1, "notes.txt"),
        { "when": { "lastToolResultContains": "plain" }, "toolCalls": [
            { "name": "Read", "id": "toolu_2", "input": { "file_path": "src/deep/a.rs" } } ] },
        say_when("NO-UNSAFE-CODE", "I keep to it"),
    ]);
    assert_eq!(stage.run(&replies, &["--trust"]).said(), "I keep to it");
    let seen = told(&stage, "path_glob_match");
    assert_eq!(seen.len(), 2, "{seen:#?}");
    let of = |kind: &str| seen.iter().find(|input| input["memory_type"] == kind).unwrap();
    assert_eq!(of("Project")["globs"], json!(["src/**/*.rs"]));
    assert_eq!(of("Project")["file_path"], json!(stage.sandbox.project().join(".qoder/rules/rust.md")));
    assert_eq!(of("User")["globs"], json!(["*.rs"]));
    assert!(told(&stage, "session_start").is_empty(), "{:#?}", stage.seen());
}

#[test]
fn a_rule_comes_once_and_also_for_a_file_that_a_tool_changed() {
    let stage = stage();
    let write = json!({ "file_path": "src/new.rs", "content": "fn new() {}\n" });
    let replies = json!([call(1, "Write", &write), read(2, "src/deep/a.rs"), say("done")]);
    let flags = ["--trust", "--permission-mode", "acceptEdits", "--allowedTools", "Write"];
    stage.run(&replies, &flags).said();
    assert_eq!(told(&stage, "path_glob_match").len(), 1);
    let lines = stage.sandbox.transcript_lines();
    let notices = lines.iter().filter(|line| line.to_string().contains("NO-UNSAFE-CODE")).count();
    assert_eq!(notices, 1, "{lines:#?}");
}

#[test]
fn a_rule_of_an_untrusted_folder_does_not_come_and_the_persons_own_does() {
    let stage = stage();
    stage.sandbox.write(stage.sandbox.config().join("rules/own.md"), "---\nglob: '*.rs'\n---\nOWN-RULE\n");
    let replies = json!([read(1, "src/deep/a.rs"), say_when("OWN-RULE", "done")]);
    assert_eq!(stage.run(&replies, &[]).said(), "done");
    let seen = stage.seen();
    assert!(seen.len() == 1 && seen[0]["memory_type"] == "User", "{seen:#?}");
    assert!(!stage.sandbox.transcript_lines().iter().any(|line| line.to_string().contains("NO-UNSAFE-CODE")));
}

#[test]
fn setting_sources_that_are_left_out_leave_their_rules_and_memory_out() {
    let stage = stage();
    stage.sandbox.write("AGENTS.md", "OF-THE-PROJECT");
    stage.sandbox.write("AGENTS.local.md", "LOCAL");
    stage.sandbox.write(stage.sandbox.config().join("AGENTS.md"), "OF-THE-USER");
    let replies = json!([read(1, "src/deep/a.rs"), say("done")]);
    stage.run(&replies, &["--trust", "--setting-sources", "user"]).said();
    let kinds: Vec<Value> = stage.seen().iter().map(|input| input["memory_type"].clone()).collect();
    assert_eq!(kinds, [json!("User")]);
}

#[test]
fn an_agent_that_reads_a_matching_file_has_the_rule_and_its_agent_id_is_told() {
    let stage = stage();
    let look = json!({ "prompt": "look", "description": "look" });
    let replies = json!([
        call(1, "Agent", &look),
        { "when": { "purpose": "subagent", "turn": 1 }, "toolCalls": [
            { "name": "Read", "id": "toolu_2", "input": { "file_path": "src/deep/a.rs" } } ] },
        { "when": { "purpose": "subagent", "contains": "NO-UNSAFE-CODE" }, "text": "the agent keeps to it" },
        { "when": { "lastToolResultContains": "the agent keeps to it" }, "text": "done" },
    ]);
    assert_eq!(stage.run(&replies, &["--trust", "--allowedTools", "Agent"]).said(), "done");
    let seen = told(&stage, "path_glob_match");
    assert!(seen.len() == 1 && seen[0]["agent_id"].is_string(), "{seen:#?}");
}

#[test]
fn after_a_compaction_files_of_the_start_are_told_with_compact_and_a_rule_comes_again() {
    let stage = Stage::with(&json!({ "hooks": { "InstructionsLoaded": [entry(NOTE)] },
        "model": { "contextWindows": { "scripted": 200_000 } } }));
    stage.sandbox.write("AGENTS.md", "Be kind.\n");
    stage.sandbox.write(".qoder/rules/rust.md", RULE);
    stage.sandbox.write("src/a.rs", "fn a() {}\n");
    stage.sandbox.write("src/b.rs", "fn b() {}\n");
    let usage = json!({ "input_tokens": 199_000, "output_tokens": 10 });
    let calls = |name: &str, input: Value| json!([{ "name": name, "input": input }]);
    let replies = json!([
        { "when": { "contains": "continues an earlier one" },
            "toolCalls": calls("Read", json!({ "file_path": "src/b.rs" })) },
        { "when": { "purpose": "compact" }, "text": "the summary" },
        { "when": { "lastToolResultContains": "fn b", "contains": "NO-UNSAFE-CODE" }, "text": "done" },
        { "when": { "turn": 1 }, "toolCalls": calls("Read", json!({ "file_path": "src/a.rs" })) },
        { "when": { "contains": "NO-UNSAFE-CODE" }, "toolCalls": calls("Glob", json!({ "pattern": "*" })),
            "usage": usage },
    ]);
    assert_eq!(stage.run(&replies, &["--trust"]).said(), "done");
    let compact = told(&stage, "compact");
    assert!(compact.len() == 1 && compact[0]["file_path"].as_str().unwrap().ends_with("/AGENTS.md"));
    assert_eq!(told(&stage, "path_glob_match").len(), 2, "{:#?}", stage.seen());
}

#[test]
fn a_head_that_cannot_be_read_is_named_with_file_and_line_and_the_rule_is_not_lost() {
    let stage = stage();
    stage.sandbox.write(".qoder/rules/bad.md", "---\ntrigger: [unclosed\n---\nBROKEN-HEAD\n");
    stage.sandbox.write(".qoder/rules/worse.md", "---\ntrigger: glob\n---\nWITHOUT-PATTERNS\n");
    stage.sandbox.write(".qoder/rules/glob.md", "---\npaths: ['[z-a]']\n---\nNEVER\n");
    let ran: Ran = stage.run(&json!([read(1, "src/deep/a.rs"), say("done")]), &["--trust"]);
    ran.said();
    for problem in
        ["rules/bad.md:2", "rules/worse.md:2: `trigger: glob` needs patterns", "rules/glob.md: \"[z-a]\""]
    {
        assert!(ran.stderr.contains(problem), "{problem}: {}", ran.stderr);
    }
    assert_eq!(told(&stage, "session_start").len(), 2, "{:#?}", stage.seen());
}
