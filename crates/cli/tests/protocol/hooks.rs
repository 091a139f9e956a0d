//! Hooks that live in the host: asked with the documented input, all at once, and what they answer counts.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

fn declared(event: &str, matcher: Option<&str>, ids: &[&str]) -> Value {
    json!({ "hooks": { event: [{ "matcher": matcher, "hookCallbackIds": ids, "timeout": 30 }] } })
}

fn bash(command: &str) -> Value {
    json!([call(1, "Bash", &json!({ "command": command })), say("done")])
}

fn verdict(word: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": word,
        "permissionDecisionReason": reason } })
}

#[test]
fn a_hook_sees_the_call_and_lets_it_run() {
    let sandbox = Sandbox::new();
    let mut host =
        Host::connect(&sandbox, &bash("touch made"), &[], declared("PreToolUse", Some("Bash"), &["hook_0"]));
    host.prompt("go");
    let asked = host.asked("hook_callback");
    let (request, input) = (&asked["request"], &asked["request"]["input"]);
    assert_eq!((&request["callback_id"], &request["tool_use_id"]), (&json!("hook_0"), &json!("toolu_1")));
    assert_eq!(input["hook_event_name"], "PreToolUse");
    assert_eq!(input["tool_name"], "Bash");
    assert_eq!(input["tool_input"], json!({ "command": "touch made" }));
    assert_eq!(input["cwd"], json!(sandbox.project()));
    assert_eq!(input["permission_mode"], "default");
    assert!(
        input["session_id"].is_string() && input["transcript_path"].as_str().unwrap().ends_with(".jsonl")
    );
    host.respond(&asked, &verdict("allow", "fine"));
    assert_eq!(host.result()["result"], "done");
    assert!(sandbox.project().join("made").exists());
}

#[test]
fn the_strictest_of_several_hooks_wins() {
    let sandbox = Sandbox::new();
    let declared = declared("PreToolUse", None, &["yes", "no"]);
    let mut host = Host::connect(&sandbox, &bash("touch made"), &["--allowedTools", "Bash"], declared);
    host.prompt("go");
    // Both are asked before either answers.
    let (one, two) = (host.asked("hook_callback"), host.asked("hook_callback"));
    for asked in [&two, &one] {
        let word = if asked["request"]["callback_id"] == "no" { "deny" } else { "allow" };
        host.respond(asked, &verdict(word, "rm -rf is not allowed"));
    }
    assert!(host.tool_result().contains("rm -rf is not allowed"));
    host.result();
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn a_hook_that_fails_denies_where_nobody_answers() {
    let sandbox = Sandbox::new();
    let declared = declared("PreToolUse", None, &["a"]);
    let mut host = Host::connect(&sandbox, &bash("touch made"), &["--allowedTools", "Bash"], declared);
    host.prompt("go");
    let asked = host.asked("hook_callback");
    host.respond_error(&asked, "ValueError: broken");
    host.result();
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn no_hook_lifts_a_denial() {
    let sandbox = Sandbox::new();
    let flags = ["--disallowedTools", "Bash(touch:*)"];
    let mut host = Host::connect(&sandbox, &bash("touch made"), &flags, declared("PreToolUse", None, &["a"]));
    host.prompt("go");
    let asked = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
    if asked["type"] == "control_request" {
        host.respond(&asked, &verdict("allow", "please"));
        host.result();
    }
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn a_hook_changes_input_and_output() {
    let sandbox = Sandbox::new();
    let replies = json!([
        call(1, "Bash", &json!({ "command": "echo one" })),
        { "when": { "lastToolResultContains": "replaced" }, "text": "seen" },
    ]);
    let mut both = declared("PreToolUse", None, &["pre"]);
    both["hooks"]["PostToolUse"] = json!([{ "hookCallbackIds": ["post"] }]);
    let mut host = Host::connect(&sandbox, &replies, &["--allowedTools", "Bash"], both);
    host.prompt("go");
    let asked = host.asked("hook_callback");
    let output = json!({ "hookEventName": "PreToolUse", "updatedInput": { "command": "echo two" } });
    host.respond(&asked, &json!({ "hookSpecificOutput": output }));
    let asked = host.asked("hook_callback");
    assert_eq!(asked["request"]["input"]["hook_event_name"], "PostToolUse");
    assert_eq!(asked["request"]["input"]["tool_input"]["command"], "echo two");
    assert!(asked["request"]["input"]["tool_response"]["stdout"].as_str().unwrap().contains("two"));
    let output = json!({ "hookEventName": "PostToolUse", "updatedToolOutput": "replaced" });
    host.respond(&asked, &json!({ "hookSpecificOutput": output }));
    assert_eq!(host.result()["result"], "seen");
}

#[test]
fn a_prompt_can_be_blocked_or_given_context() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "contains": "today is Monday" }, "text": "noted" }]);
    let mut host = Host::connect(&sandbox, &replies, &[], declared("UserPromptSubmit", None, &["a"]));
    host.prompt("bad words");
    let asked = host.asked("hook_callback");
    assert_eq!(asked["request"]["input"]["prompt"], "bad words");
    host.respond(&asked, &json!({ "decision": "block", "reason": "watch your language" }));
    let result = host.result();
    assert_eq!((&result["is_error"], &result["errors"][0]), (&json!(true), &json!("watch your language")));
    host.prompt("what day is it");
    let asked = host.asked("hook_callback");
    let output = json!({ "hookEventName": "UserPromptSubmit", "additionalContext": "today is Monday" });
    host.respond(&asked, &json!({ "hookSpecificOutput": output }));
    assert_eq!(host.result()["result"], "noted");
}

#[test]
fn an_event_that_does_not_exist_is_named() {
    let sandbox = Sandbox::new();
    let hooks = json!({ "PreTooluse": [{ "hookCallbackIds": ["a"] }] });
    let hello = json!({ "type": "control_request", "request_id": "1",
        "request": { "subtype": "initialize", "hooks": hooks } });
    let prompt = json!({ "type": "user", "message": { "role": "user", "content": "go" } });
    let input = sandbox.write("../input", format!("{hello}\n{prompt}\n"));
    let mut command = Host::command(&sandbox, &json!([{ "text": "done" }]), &[]);
    let output = command.stdin(std::fs::File::open(input).unwrap()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let told = "there is no hook event `PreTooluse`; its hooks never run; did you mean `PreToolUse`?";
    assert!(text.contains(told), "{text}");
}

#[test]
fn an_interrupt_withdraws_the_call_of_a_hook() {
    let sandbox = Sandbox::new();
    let mut host = Host::connect(&sandbox, &bash("touch made"), &[], declared("PreToolUse", None, &["a"]));
    host.prompt("go");
    let asked = host.asked("hook_callback");
    host.ask(&json!({ "subtype": "interrupt" }));
    let cancelled = host.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(cancelled["request_id"], asked["request_id"]);
    assert_eq!(host.result()["is_error"], true);
}

#[test]
fn hook_events_are_told_when_they_are_wanted() {
    let sandbox = Sandbox::new();
    let flags = ["--include-hook-events", "--allowedTools", "Bash"];
    let mut host = Host::connect(&sandbox, &bash("true"), &flags, declared("PreToolUse", None, &["a"]));
    host.prompt("go");
    let asked = host.asked("hook_callback");
    host.respond(&asked, &json!({}));
    let told = host.until(|line| line["subtype"] == "hook_response");
    assert_eq!((&told["hook_event"], &told["outcome"]), (&json!("PreToolUse"), &json!("success")));
}
