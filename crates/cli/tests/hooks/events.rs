//! Every event with the fields that it has, and what its hooks may say besides.

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Stage, call, entry, print, say, say_when, specific};

/// Notes one event.
fn noting(event: &str) -> Stage {
    Stage::command(event, NOTE)
}

#[track_caller]
fn has(input: &Value, fields: &[(&str, Value)]) {
    for (field, value) in fields {
        assert_eq!(&input[*field], value, "{field}: {input:#}");
    }
}

fn bash(command: &str) -> Value {
    call(1, "Bash", &json!({ "command": command }))
}

#[test]
fn session_start_has_source_and_model_and_session_end_has_reason() {
    let stage = Stage::new(&json!({ "SessionStart": [entry(NOTE)], "SessionEnd": [entry(NOTE)] }));
    stage.run(&json!([say("hi")]), &[]).said();
    let seen = stage.seen();
    has(&seen[0], &[("hook_event_name", json!("SessionStart")), ("source", json!("startup"))]);
    assert!(seen[0]["model"].is_string());
    has(&seen[1], &[("hook_event_name", json!("SessionEnd")), ("reason", json!("other"))]);
}

#[test]
fn session_start_gives_additional_context_and_session_title() {
    let part = json!({ "additionalContext": "the time is nine", "sessionTitle": "A fine title" });
    let stage = Stage::command("SessionStart", &print(&specific("SessionStart", &part)));
    stage.run(&json!([say_when("the time is nine", "so it is")]), &[]).said();
    let lines = stage.sandbox.transcript_lines();
    assert!(lines.iter().any(|line| line["aiTitle"] == "A fine title"), "{lines:#?}");
}

#[test]
fn user_prompt_submit_has_prompt_and_gives_session_title() {
    let part = json!({ "sessionTitle": "Going" });
    let command = format!("{NOTE}; {}", print(&specific("UserPromptSubmit", &part)));
    let stage = Stage::command("UserPromptSubmit", &command);
    stage.run(&json!([say("hi")]), &[]).said();
    has(&stage.seen()[0], &[("prompt", json!("go"))]);
    assert!(stage.sandbox.transcript_lines().iter().any(|line| line["aiTitle"] == "Going"));
}

#[test]
fn pre_and_post_tool_use_have_tool_name_tool_input_and_tool_response() {
    let stage = Stage::new(&json!({ "PreToolUse": [entry(NOTE)], "PostToolUse": [entry(NOTE)] }));
    stage.run(&json!([bash("echo hello"), say("done")]), &["--allowedTools", "Bash"]).said();
    let seen = stage.seen();
    for input in &seen {
        has(input, &[("tool_name", json!("Bash")), ("tool_use_id", json!("toolu_1"))]);
        assert_eq!(input["tool_input"]["command"], "echo hello");
    }
    assert!(seen[1]["tool_response"].to_string().contains("hello"), "{:#}", seen[1]);
}

#[test]
fn post_tool_use_failure_has_error_error_type_and_is_interrupt() {
    let stage = noting("PostToolUseFailure");
    let replies = json!([call(1, "Read", &json!({ "file_path": "missing.txt" })), say("done")]);
    stage.run(&replies, &[]).said();
    has(&stage.seen()[0], &[("error_type", json!("tool_error")), ("is_interrupt", json!(false))]);
    assert!(stage.seen()[0]["error"].is_string());
}

#[test]
fn permission_request_has_permission_suggestions() {
    let stage = noting("PermissionRequest");
    stage.run(&json!([bash("touch made"), say("done")]), &[]);
    let input = &stage.seen()[0];
    has(input, &[("tool_name", json!("Bash"))]);
    assert!(input["permission_suggestions"].is_array(), "{input:#}");
}

#[test]
fn permission_denied_has_reason_and_retry_asks_for_another_attempt() {
    let retry = print(&specific("PermissionDenied", &json!({ "retry": true })));
    let stage = Stage::command("PermissionDenied", &format!("{NOTE}; {retry}"));
    let replies = json!([bash("touch made"), say_when("try the denied call once more", "I try again")]);
    assert_eq!(stage.run(&replies, &["--disallowedTools", "Bash(touch:*)"]).said(), "I try again");
    let input = &stage.seen()[0];
    has(input, &[("tool_name", json!("Bash")), ("tool_use_id", json!("toolu_1"))]);
    assert!(input["reason"].is_string() && input["tool_input"]["command"] == "touch made", "{input:#}");
}

#[test]
fn stop_has_stop_hook_active_and_last_assistant_message_and_clear_context_forgets() {
    let clear = print(&specific("Stop", &json!({ "clearContext": true })));
    let stage = Stage::command("Stop", &format!("{NOTE}; {clear}"));
    stage.run(&json!([say("all is done")]), &[]).said();
    has(
        &stage.seen()[0],
        &[("stop_hook_active", json!(false)), ("last_assistant_message", json!("all is done"))],
    );
    assert!(stage.sandbox.transcript_lines().iter().any(|line| line["type"] == "cut"));
}

#[test]
fn stop_failure_has_error_type_error_and_error_details() {
    let stage = noting("StopFailure");
    let replies = json!([{ "error": { "status": 401, "message": "bad key" } }]);
    assert_eq!(stage.run(&replies, &[]).result()["is_error"], true);
    let input = &stage.seen()[0];
    has(input, &[("error_type", json!("authentication_failed"))]);
    assert!(input["error"].as_str().unwrap().contains("bad key") && input["error_details"].is_object());
}

#[test]
fn subagent_start_and_stop_have_agent_id_agent_type_and_agent_transcript_path() {
    let stage = Stage::new(&json!({ "SubagentStart": [entry(NOTE)], "SubagentStop": [entry(NOTE)] }));
    let replies = json!([
        call(1, "Agent", &json!({ "prompt": "look around", "description": "look" })),
        { "when": { "purpose": "subagent" }, "text": "nothing there" },
        say("done"),
    ]);
    stage.run(&replies, &["--allowedTools", "Agent"]).said();
    let seen = stage.seen();
    assert_eq!(seen.len(), 2, "{seen:#?}");
    for input in &seen {
        has(input, &[("agent_type", json!("general-purpose"))]);
        assert!(input["agent_id"].is_string());
    }
    assert!(seen[1]["agent_transcript_path"].as_str().unwrap().ends_with(".jsonl"));
    has(&seen[1], &[("stop_hook_active", json!(false))]);
}

/// A session that is compacted before its second model call.
fn compacted(hooks: &Value) -> (Stage, crate::hooks::support::Ran) {
    let stage =
        Stage::with(&json!({ "hooks": hooks, "model": { "contextWindows": { "scripted": 200_000 } } }));
    let usage = json!({ "input_tokens": 199_000, "output_tokens": 10 });
    let replies = json!([
        { "when": { "contains": "continues an earlier one" }, "text": "done" },
        { "when": { "purpose": "compact" }, "text": "the summary" },
        { "toolCalls": [{ "name": "Bash", "id": "toolu_1", "input": { "command": "echo one" } }], "usage": usage },
        { "when": { "lastToolResultContains": "one" }, "text": "done" },
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
    (stage, ran)
}

#[test]
fn pre_compact_and_post_compact_have_trigger_custom_instructions_and_compact_summary() {
    let (stage, ran) = compacted(&json!({ "PreCompact": [entry(NOTE)], "PostCompact": [entry(NOTE)] }));
    assert_eq!(ran.said(), "done");
    let seen = stage.seen();
    has(
        &seen[0],
        &[
            ("hook_event_name", json!("PreCompact")),
            ("trigger", json!("auto")),
            ("custom_instructions", json!(null)),
        ],
    );
    has(&seen[1], &[("trigger", json!("auto")), ("compact_summary", json!("the summary"))]);
}

#[test]
fn exit_code_2_of_pre_compact_cancels_the_compaction() {
    let (stage, ran) = compacted(&json!({ "PreCompact": [entry("exit 2")], "PostCompact": [entry(NOTE)] }));
    assert_eq!(ran.said(), "done");
    assert!(stage.seen().is_empty() && ran.system("compact_boundary").is_empty());
}

#[test]
fn instructions_loaded_has_load_reason_file_path_and_memory_type() {
    let stage = noting("InstructionsLoaded");
    stage.sandbox.write("AGENTS.md", "Be kind.\n@more.md\n");
    stage.sandbox.write("more.md", "Be brief.\n");
    stage.sandbox.write("inner/AGENTS.md", "Be inner.\n");
    stage.sandbox.write("inner/file.txt", "text\n");
    let replies = json!([call(1, "Read", &json!({ "file_path": "inner/file.txt" })), say("done")]);
    stage.run(&replies, &["--trust"]).said();
    let seen = stage.seen();
    let told = |reason: &str, name: &str| {
        seen.iter().any(|input| {
            input["load_reason"] == reason
                && input["memory_type"] == "Project"
                && input["file_path"].as_str().unwrap().ends_with(name)
        })
    };
    assert!(told("session_start", "/project/AGENTS.md"), "{seen:#?}");
    assert!(told("include", "more.md") && told("nested_traversal", "inner/AGENTS.md"), "{seen:#?}");
}

#[test]
fn cwd_changed_has_old_cwd_and_new_cwd() {
    let stage = noting("CwdChanged");
    stage.sandbox.write("inner/file.txt", "");
    stage.run(&json!([bash("cd inner"), say("done")]), &["--allowedTools", "Bash"]).said();
    let project = stage.sandbox.project();
    has(&stage.seen()[0], &[("old_cwd", json!(project)), ("new_cwd", json!(project.join("inner")))]);
}

#[test]
fn file_changed_fires_for_watch_paths_with_change_add_and_unlink() {
    let project = json!("PLACE");
    let watch = specific("SessionStart", &json!({ "watchPaths": [project] }));
    let stage = Stage::new(&json!({}));
    let watch = print(&watch).replace("PLACE", stage.sandbox.project().to_str().unwrap());
    let hooks = json!({ "hooks": { "SessionStart": [entry(&watch)], "FileChanged": [entry(NOTE)] } });
    stage.sandbox.write(stage.sandbox.config().join("settings.json"), hooks.to_string());
    stage.sandbox.write("kept.txt", "before");
    let steps = ["echo longer-text > kept.txt; touch made.txt", "rm made.txt"];
    let replies = json!([
        call(1, "Bash", &json!({ "command": steps[0] })),
        call(2, "Bash", &json!({ "command": steps[1] })),
        say("done"),
    ]);
    stage.run(&replies, &["--allowedTools", "Bash"]).said();
    let mut seen: Vec<String> = stage
        .seen()
        .iter()
        .map(|input| {
            let name = input["file_path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            format!("{name} {}", input["event"].as_str().unwrap())
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, ["kept.txt change", "made.txt add", "made.txt unlink"]);
}

/// The changes that hooks heard of, as the file's name and what happened to it, in order.
fn heard(stage: &Stage) -> Vec<String> {
    let told = |input: &Value| {
        let path = input["file_path"].as_str().unwrap();
        let inside = path.strip_prefix(stage.sandbox.project().to_str().unwrap()).unwrap_or(path);
        format!("{} {}", inside.trim_start_matches('/'), input["event"].as_str().unwrap())
    };
    stage.seen().iter().map(told).collect()
}

#[test]
fn file_changed_fires_for_what_commands_do_in_the_workspace() {
    let stage = noting("FileChanged");
    stage.sandbox.write("kept.txt", "before");
    stage.sandbox.write("gone.txt", "before");
    stage.sandbox.write(".gitignore", "*.log\n");
    let first = "echo x > kept.txt; mkdir -p deep/er; echo 1 > deep/er/new.txt; rm gone.txt; echo 1 > x.log; \
                 mkdir -p .git node_modules/m; echo 1 > .git/index; echo 1 > node_modules/m/a.js";
    let replies = json!([
        call(1, "Bash", &json!({ "command": first })),
        call(2, "Bash", &json!({ "command": "rm -r deep" })),
        say("done"),
    ]);
    stage.run(&replies, &["--permission-mode", "bypassPermissions"]).said();
    let heard = heard(&stage);
    let expected = ["deep/er/new.txt add", "gone.txt unlink", "kept.txt change", "deep/er/new.txt unlink"];
    assert_eq!(heard, expected);
}

#[test]
fn file_changed_fires_for_what_another_program_does() {
    let stage = noting("FileChanged");
    // A program that the run did not start: it waits for the call and ends before the call does.
    let other = "while [ ! -e ../go ]; do sleep 0.01; done; echo 1 > made-by-another.txt; touch ../over";
    let mut beside = stage.sandbox.command("bash").args(["-c", other]).spawn().unwrap();
    let command = "touch ../go; while [ ! -e ../over ]; do sleep 0.01; done";
    let replies = json!([call(1, "Bash", &json!({ "command": command })), say("done")]);
    stage.run(&replies, &["--permission-mode", "bypassPermissions"]).said();
    beside.wait().unwrap();
    assert_eq!(heard(&stage), ["made-by-another.txt add"]);
}

#[test]
fn a_file_that_a_tool_wrote_is_told_once() {
    let stage = noting("FileChanged");
    let write = call(1, "Write", &json!({ "file_path": "new.txt", "content": "x" }));
    let edit = call(2, "Edit", &json!({ "file_path": "new.txt", "old_string": "x", "new_string": "y" }));
    let deep = call(3, "Write", &json!({ "file_path": "deep/er/new.txt", "content": "x" }));
    let replies = json!([write, edit, deep, say("done")]);
    stage.run(&replies, &["--permission-mode", "acceptEdits", "--trust"]).said();
    assert_eq!(heard(&stage), ["new.txt add", "new.txt change", "deep/er/new.txt add"]);
}

#[test]
fn file_changed_fires_for_a_file_that_a_tool_wrote() {
    let stage = noting("FileChanged");
    let write = call(1, "Write", &json!({ "file_path": "new.txt", "content": "x" }));
    stage
        .run(
            &json!([write, say("done")]),
            &["--allowedTools", "Write", "--permission-mode", "acceptEdits", "--trust"],
        )
        .said();
    has(&stage.seen()[0], &[("event", json!("add"))]);
}

#[test]
fn setup_comes_before_a_new_session() {
    let stage = Stage::new(&json!({ "Setup": [entry(NOTE)], "SessionStart": [entry(NOTE)] }));
    stage.run(&json!([say("hi")]), &[]).said();
    let names: Vec<Value> = stage.seen().iter().map(|input| input["hook_event_name"].clone()).collect();
    assert_eq!(names, [json!("Setup"), json!("SessionStart")]);
}

#[test]
fn task_created_and_task_completed_have_the_task() {
    let stage = Stage::new(&json!({ "TaskCreated": [entry(NOTE)], "TaskCompleted": [entry(NOTE)] }));
    let start = json!({ "command": "echo from-task", "run_in_background": true });
    stage.run(&json!([call(1, "Bash", &start), say("done")]), &["--allowedTools", "Bash"]).said();
    let seen = stage.seen();
    let created = seen.iter().find(|input| input["hook_event_name"] == "TaskCreated").unwrap();
    let completed = seen.iter().find(|input| input["hook_event_name"] == "TaskCompleted").unwrap();
    assert_eq!(created["task_id"], completed["task_id"]);
    assert!(completed["status"].is_string() && completed["summary"].is_string(), "{completed:#}");
    let records = stage.records();
    assert!(records.iter().any(|record| record["event"] == "TaskCompleted"), "{records:#?}");
}
