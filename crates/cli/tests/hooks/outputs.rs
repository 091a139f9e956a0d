//! What hooks answer, field by field in the words of the documents, and the fields that every input has.

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Stage, call, entry, print, say, specific};

fn bash(command: &str) -> Value {
    call(1, "Bash", &json!({ "command": command }))
}

#[test]
fn every_input_has_hook_event_name_session_id_transcript_path_and_cwd() {
    let events = [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "CwdChanged",
        "InstructionsLoaded",
        "FileChanged",
        "PermissionRequest",
    ];
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), json!([entry(NOTE)]))).collect();
    let stage = Stage::new(&Value::Object(hooks));
    stage.sandbox.write("AGENTS.md", "Be kind.\n");
    stage.sandbox.write("inner/kept.txt", "x\n");
    let replies = json!([
        call(2, "Read", &json!({ "file_path": "missing.txt" })),
        call(3, "Write", &json!({ "file_path": "made.txt", "content": "x" })),
        call(4, "Bash", &json!({ "command": "touch asked" })),
        call(5, "Agent", &json!({ "prompt": "look", "description": "look" })),
        { "when": { "purpose": "subagent" }, "text": "nothing there" },
        bash("cd inner"),
        say("done"),
    ]);
    let flags = ["--trust", "--permission-mode", "acceptEdits", "--allowedTools", "Bash(cd:*),Agent,Read"];
    let ran = stage.run(&replies, &flags);
    let session_id = ran.result()["session_id"].clone();
    let mut seen = stage.seen();
    // Hooks run where the session is, and it has gone one folder down by then.
    let later = std::fs::read_to_string(stage.sandbox.project().join("seen")).unwrap();
    seen.extend(later.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    for event in events {
        let input = seen.iter().find(|input| input["hook_event_name"] == event);
        let input = input.unwrap_or_else(|| panic!("{event} did not come: {seen:#?}\n{ran:#?}"));
        assert_eq!(input["session_id"], session_id, "{event}");
        let log = input["transcript_path"].as_str().unwrap();
        assert!(log.ends_with(&format!("{}.jsonl", session_id.as_str().unwrap())), "{event}: {log}");
        let cwd = input["cwd"].as_str().unwrap();
        assert!(cwd.starts_with(stage.sandbox.project().to_str().unwrap()), "{event}: {cwd}");
    }
}

#[test]
fn permission_decision_reason_is_what_the_model_reads() {
    let part = json!({ "permissionDecision": "deny", "permissionDecisionReason": "ask the owner first" });
    let stage = Stage::command("PreToolUse", &print(&specific("PreToolUse", &part)));
    let replies =
        json!([bash("true"), { "when": { "lastToolResultContains": "ask the owner first" }, "text": "ok" }]);
    assert_eq!(stage.run(&replies, &["--allowedTools", "Bash"]).said(), "ok");
}

#[test]
fn post_tool_use_additional_context_stands_alongside_the_tool_result() {
    let part = json!({ "additionalContext": "mind the gap" });
    let stage = Stage::command("PostToolUse", &print(&specific("PostToolUse", &part)));
    let replies = json!([bash("echo original"), say("done")]);
    let results = stage.run(&replies, &["--allowedTools", "Bash"]).tool_results();
    assert!(results.contains("original") && results.contains("mind the gap"), "{results}");
}

#[test]
fn post_tool_use_decision_block_with_reason_reaches_the_model() {
    let stage =
        Stage::command("PostToolUse", &print(&json!({ "decision": "block", "reason": "do not use it" })));
    let replies = json!([bash("echo x"), { "when": { "lastToolResultContains": "do not use it" }, "text": "I do not" }]);
    assert_eq!(stage.run(&replies, &["--allowedTools", "Bash"]).said(), "I do not");
}

#[test]
fn additional_context_of_other_events_reaches_the_model() {
    let said = |event: &str, replies: &Value, flags: &[&str]| {
        let part = json!({ "additionalContext": "mind the gap" });
        let stage = Stage::command(event, &print(&specific(event, &part)));
        stage.sandbox.write("inner/file.txt", "");
        stage.run(replies, flags).said().to_owned()
    };
    let (told, in_result) =
        (json!({ "contains": "mind the gap" }), json!({ "lastToolResultContains": "mind the gap" }));
    let missing = call(1, "Read", &json!({ "file_path": "missing.txt" }));
    let write = call(1, "Write", &json!({ "file_path": "new.txt", "content": "x" }));
    let flags = ["--trust", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Write"];
    for (event, first, when) in [
        ("SessionStart", None, &told),
        ("UserPromptSubmit", None, &told),
        ("PostToolUseFailure", Some(missing), &in_result),
        ("CwdChanged", Some(bash("cd inner")), &told),
        ("FileChanged", Some(write), &told),
    ] {
        let last = json!({ "when": when, "text": "minded" });
        let replies: Vec<Value> = first.into_iter().chain([last]).collect();
        assert_eq!(said(event, &json!(replies), &flags), "minded", "{event}");
    }
}

#[test]
fn permission_request_decision_allow_takes_updated_input_and_updated_permissions() {
    let rule = json!({ "type": "addRules", "behavior": "allow", "destination": "session",
        "rules": [{ "toolName": "Bash", "ruleContent": "touch second" }] });
    let decision = json!({ "behavior": "allow", "updatedInput": { "command": "touch other" },
        "updatedPermissions": [rule] });
    let command =
        format!("{NOTE}; {}", print(&specific("PermissionRequest", &json!({ "decision": decision }))));
    let stage = Stage::command("PermissionRequest", &command);
    let replies =
        json!([bash("touch first"), call(2, "Bash", &json!({ "command": "touch second" })), say("done")]);
    stage.run(&replies, &[]).said();
    let made = |name: &str| stage.sandbox.project().join(name).exists();
    assert!(made("other") && made("second") && !made("first"));
    assert_eq!(stage.seen().len(), 1, "the new rule answers for the second call");
}

#[test]
fn subagent_stop_decision_block_makes_the_agent_go_on_with_the_reason() {
    let command = "if grep -q '\"stop_hook_active\":true'; then exit 0; else echo '{\"decision\": \"block\", \
                   \"reason\": \"look again\"}'; fi";
    let stage = Stage::command("SubagentStop", command);
    let replies = json!([
        call(1, "Agent", &json!({ "prompt": "look", "description": "look" })),
        { "when": { "purpose": "subagent", "contains": "look again" }, "text": "found it" },
        { "when": { "purpose": "subagent" }, "text": "nothing there" },
        { "when": { "lastToolResultContains": "found it" }, "text": "done" },
    ]);
    assert_eq!(stage.run(&replies, &["--allowedTools", "Agent"]).said(), "done");
}

#[test]
fn continue_false_with_stop_reason_counts_for_every_event_that_may_end_the_turn() {
    let stop = print(&json!({ "continue": false, "stopReason": "enough" }));
    for event in ["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"] {
        let stage = Stage::command(event, &stop);
        let first = match event {
            "PostToolUseFailure" => call(1, "Read", &json!({ "file_path": "missing.txt" })),
            _ => bash("true"),
        };
        let ran = stage.run(&json!([first, say("done")]), &["--allowedTools", "Bash"]);
        let result = ran.result();
        assert_eq!(result["errors"][0], "enough", "{event}: {result:#}");
        assert_eq!(result["is_error"], true, "{event}");
    }
    // Elsewhere it has no effect.
    let ran = Stage::command("SessionStart", &stop).run(&json!([say("done")]), &[]);
    assert_eq!(ran.said(), "done");
}
