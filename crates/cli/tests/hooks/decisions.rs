//! What the answers of programs decide: exit codes, decisions in every spelling, and what a failure means.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, entry, entry_with, print, say, say_when, specific};

#[test]
fn exit_code_2_of_pre_tool_use_blocks_and_stderr_goes_to_the_model() {
    let stage = Stage::command("PreToolUse", "echo 'not on a Friday' >&2; exit 2");
    let (made, ran) = stage.bash();
    assert!(!made && ran.tool_results().contains("not on a Friday"), "{ran:#?}");
    assert_eq!(ran.said(), "done");
    let record = &stage.records()[0];
    assert_eq!(
        (&record["verdict"], &record["runs"][0]["exitCode"]),
        (&json!("deny"), &json!(2)),
        "{record:#}"
    );
    assert_eq!(record["runs"][0]["stderr"], "not on a Friday");
}

#[test]
fn exit_code_0_without_output_has_no_opinion() {
    let (made, ran) = Stage::command("PreToolUse", "exit 0").bash();
    assert!(made, "{ran:#?}");
}

#[test]
fn every_permission_decision_counts() {
    for (word, runs) in [("allow", true), ("deny", false), ("ask", false), ("defer", true)] {
        let part = json!({ "permissionDecision": word, "permissionDecisionReason": "so be it" });
        let stage = Stage::command("PreToolUse", &print(&specific("PreToolUse", &part)));
        let (made, ran) = stage.bash();
        assert_eq!(made, runs, "{word}: {ran:#?}");
        assert_eq!(ran.tool_results().contains("so be it"), !runs, "{word}");
    }
}

#[test]
fn decision_is_read_in_all_four_spellings() {
    for (word, runs) in [("approve", true), ("allow", true), ("block", false), ("deny", false)] {
        let output = json!({ "decision": word, "reason": "so be it" });
        let (made, ran) = Stage::command("PreToolUse", &print(&output)).bash();
        assert_eq!(made, runs, "{word}: {ran:#?}");
    }
}

#[test]
fn updated_input_replaces_the_input_and_additional_context_reaches_the_model() {
    let part = json!({ "updatedInput": { "command": "touch other" }, "additionalContext": "mind the gap" });
    let stage = Stage::command("PreToolUse", &print(&specific("PreToolUse", &part)));
    let replies = json!([
        call(1, "Bash", &json!({ "command": "touch made" })),
        { "when": { "lastToolResultContains": "mind the gap" }, "text": "minded" },
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
    assert_eq!(ran.said(), "minded");
    assert!(stage.sandbox.project().join("other").exists() && !stage.sandbox.project().join("made").exists());
}

#[test]
fn the_strictest_of_all_layers_wins_and_none_overrides_another() {
    let stage = Stage::command("PreToolUse", &print(&json!({ "decision": "approve" })));
    let project = json!({ "hooks": { "PreToolUse": [entry("echo user >> ../ran; exit 2")] } });
    stage.sandbox.write(".qoder/settings.json", project.to_string());
    let local = json!({ "hooks": { "PreToolUse": [entry("echo local >> ../ran")] } });
    stage.sandbox.write(".qoder/settings.local.json", local.to_string());
    let flag = json!({ "hooks": { "PreToolUse": [entry("echo flag >> ../ran")] } }).to_string();
    let replies = json!([call(1, "Bash", &json!({ "command": "touch made" })), say("done")]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash", "--trust", "--settings", &flag]);
    assert_eq!(ran.said(), "done");
    assert!(!stage.sandbox.project().join("made").exists());
    let names = std::fs::read_to_string(stage.beside("ran")).unwrap();
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["flag", "local", "user"]);
    assert_eq!(stage.records()[0]["runs"].as_array().unwrap().len(), 4);
}

#[test]
fn another_exit_code_follows_on_failure_which_is_ask_for_pre_tool_use_and_unattended_deny() {
    for (word, runs) in [(None, false), (Some("ask"), false), (Some("deny"), false), (Some("allow"), true)] {
        let more = word.map_or_else(|| json!({}), |word| json!({ "onFailure": word }));
        let stage = Stage::new(&json!({ "PreToolUse": [entry_with("echo broken >&2; exit 1", &more)] }));
        let (made, ran) = stage.bash();
        assert_eq!(made, runs, "{word:?}: {ran:#?}");
        assert!(ran.stderr.contains("exit code 1: broken"), "{}", ran.stderr);
        assert_eq!(stage.records()[0]["runs"][0]["outcome"], "error");
    }
}

#[test]
fn a_permission_request_hook_allows_what_only_the_mode_asks_and_its_failure_denies_unattended() {
    let replies = json!([call(1, "Bash", &json!({ "command": "touch made" })), say("done")]);
    let allow = specific("PermissionRequest", &json!({ "decision": { "behavior": "allow" } }));
    let stage = Stage::command("PermissionRequest", &print(&allow));
    stage.run(&replies, &[]);
    assert!(stage.sandbox.project().join("made").exists());
    let deny = json!({ "decision": { "behavior": "deny", "message": "never here" } });
    let stage = Stage::command("PermissionRequest", &print(&specific("PermissionRequest", &deny)));
    assert!(stage.run(&replies, &[]).tool_results().contains("never here"));
    let stage = Stage::command("PermissionRequest", "exit 3");
    stage.run(&replies, &[]);
    assert!(!stage.sandbox.project().join("made").exists());
}

/// The denial that a failed hook leads to where no one is attached.
fn denial(event: &str, flags: &[&str]) -> String {
    let hooks = json!({ event: [entry_with("echo boom >&2; exit 1", &json!({ "name": "guard" }))] });
    let stage = Stage::new(&hooks);
    let replies = json!([call(1, "Bash", &json!({ "command": "touch made" })), say("done")]);
    let ran = stage.run(&replies, flags);
    assert!(!stage.sandbox.project().join("made").exists(), "{event}: {ran:#?}");
    let told = ran.system("permission_denied")[0]["decision_reason"].as_str().unwrap().to_owned();
    assert!(ran.tool_results().contains("hook guard failed: it ended with exit code 1: boom"), "{ran:#?}");
    told
}

#[test]
fn the_denial_of_a_failed_hook_names_it_and_its_error_and_advises_what_helps() {
    let told = denial("PreToolUse", &["--allowedTools", "Bash"]);
    assert!(told.contains("the PreToolUse hook guard failed: it ended with exit code 1: boom"), "{told}");
    assert!(told.contains("A person can repair the hook") && !told.contains("--allowed-tools"), "{told}");
    // Where the gate would ask as well, repairing the hook is not enough.
    let told = denial("PreToolUse", &[]);
    assert!(told.contains("the PreToolUse hook guard failed: it ended with exit code 1: boom"), "{told}");
    assert!(told.contains("repair the hook, and allow it with --allowed-tools 'Bash(touch made)'"), "{told}");
    // This hook was asked because the call is not allowed: a rule makes the question unnecessary.
    let told = denial("PermissionRequest", &[]);
    assert!(
        told.contains("the PermissionRequest hook guard failed: it ended with exit code 1: boom"),
        "{told}"
    );
    assert!(told.contains("--allowed-tools 'Bash(touch made)'"), "{told}");
}

#[test]
fn a_hook_that_wants_to_ask_is_not_answered_by_a_rule() {
    let part = json!({ "permissionDecision": "ask", "permissionDecisionReason": "so be it" });
    let stage = Stage::command("PreToolUse", &print(&specific("PreToolUse", &part)));
    let (_, ran) = stage.bash();
    let told = ran.system("permission_denied")[0]["decision_reason"].as_str().unwrap();
    assert!(told.contains("so be it") && told.contains("change the hook"), "{told}");
    assert!(!told.contains("--allowed-tools"), "{told}");
}

#[test]
fn hook_specific_output_without_hook_event_name_rejects_the_whole_json() {
    let output = json!({ "decision": "approve", "hookSpecificOutput": { "permissionDecision": "allow" } });
    let (made, ran) = Stage::command("PreToolUse", &print(&output)).bash();
    assert!(!made && ran.stderr.contains("whole output is rejected"), "{ran:#?}");
}

#[test]
fn continue_false_ends_the_turn_with_stop_reason() {
    let stage = Stage::command("PostToolUse", &print(&json!({ "continue": false, "stopReason": "enough" })));
    let (_, ran) = stage.bash();
    let result = ran.result();
    assert_eq!((&result["is_error"], &result["errors"][0]), (&json!(true), &json!("enough")), "{result:#}");
}

#[test]
fn exit_code_2_of_user_prompt_submit_rejects_the_prompt_and_stderr_goes_to_the_user() {
    let stage = Stage::command("UserPromptSubmit", "echo 'no secrets please' >&2; exit 2");
    let ran = stage.run(&json!([say("never")]), &[]);
    assert_eq!(ran.result()["errors"][0], "no secrets please", "{ran:#?}");
}

#[test]
fn exit_code_2_of_stop_injects_stderr_and_the_agent_continues_once() {
    let command =
        "if grep -q '\"stop_hook_active\":true'; then exit 0; else echo 'run the tests' >&2; exit 2; fi";
    let stage = Stage::command("Stop", command);
    let ran = stage.run(&json!([say("first"), say_when("run the tests", "tests are green")]), &[]);
    assert_eq!(ran.said(), "tests are green");
}

#[test]
fn plain_text_is_context_for_session_start_and_user_prompt_submit() {
    for event in ["SessionStart", "UserPromptSubmit"] {
        let stage = Stage::command(event, "echo 'today is Monday'");
        let ran = stage.run(&json!([say_when("today is Monday", "noted")]), &[]);
        assert_eq!(ran.said(), "noted", "{event}");
    }
}

#[test]
fn updated_tool_output_of_the_last_hook_is_all_that_the_model_reads() {
    let output = |text: &str| entry(&print(&specific("PostToolUse", &json!({ "updatedToolOutput": text }))));
    let stage = Stage::new(&json!({ "PostToolUse": [output("first"), output("second"), output("")] }));
    let replies = json!([
        call(1, "Bash", &json!({ "command": "echo secret" })),
        { "when": { "lastToolResultContains": "second" }, "text": "read" },
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
    assert_eq!(ran.said(), "read");
    assert!(!ran.tool_results().contains("secret"));
}

fn matched(matcher: &Value, more: &Value) -> bool {
    let mut group = entry_with("exit 2", more);
    group["matcher"] = matcher.clone();
    let (made, _) = Stage::new(&json!({ "PreToolUse": [group] })).bash();
    !made
}

#[test]
fn a_matcher_is_everything_exact_names_or_a_regular_expression() {
    let none = json!({});
    for matcher in [json!(null), json!(""), json!("*"), json!("Bash"), json!("Edit|Bash"), json!("^Ba.h$")] {
        assert!(matched(&matcher, &none), "{matcher}");
    }
    for matcher in [json!("Edit"), json!("bash"), json!("mcp__.*")] {
        assert!(!matched(&matcher, &none), "{matcher}");
    }
}

#[test]
fn if_is_a_tool_with_a_glob_for_its_argument() {
    for (condition, runs) in
        [("Bash(touch *)", true), ("Bash", true), ("Bash(rm *)", false), ("Edit(*)", false)]
    {
        assert_eq!(matched(&json!("*"), &json!({ "if": condition })), runs, "{condition}");
    }
}
