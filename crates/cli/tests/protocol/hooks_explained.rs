//! What hooks in the host leave behind: a decision that is explained with the hook's name, a question for a person when one
//! fails, and no trace of a prompt or call when they are withdrawn.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, QODERCLI, call, say};

const SESSION: &str = "22222222-2222-4222-8222-222222222222";

fn writes(sandbox: &Sandbox) -> Value {
    let file = sandbox.project().join("new.txt");
    json!([call(1, "Write", &json!({ "file_path": file, "content": "one" })), say("done")])
}

fn declared(event: &str, matcher: Option<&str>) -> Value {
    json!({ "hooks": { event: [{ "matcher": matcher, "hookCallbackIds": ["hook_0"] }] } })
}

#[test]
fn the_hosts_hook_denies_a_call_and_is_named_for_it() {
    let sandbox = Sandbox::new();
    let flags = ["--permission-mode", "acceptEdits", "--session-id", SESSION];
    let mut host =
        Host::connect(&sandbox, &writes(&sandbox), &flags, declared("PreToolUse", Some("Write|Edit")));
    host.prompt("write");
    let asked = host.asked("hook_callback");
    let request = &asked["request"];
    assert_eq!((&request["callback_id"], &request["tool_use_id"]), (&json!("hook_0"), &json!("toolu_1")));
    assert_eq!(request["input"]["hook_event_name"], "PreToolUse");
    assert_eq!(request["input"]["tool_input"]["content"], "one");
    assert_eq!(request["input"]["session_id"], SESSION);
    host.respond(
        &asked,
        &json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "the file is frozen" } }),
    );
    assert_eq!(host.tool_result(), "the file is frozen");
    assert_eq!(host.result()["permission_denials"][0]["tool_name"], "Write");
    assert_eq!(host.end().0, 0);
    assert!(!sandbox.project().join("new.txt").exists());

    let run = |arguments: &[&str]| {
        let output = sandbox.command(QODERCLI).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let explained = run(&["permissions", "explain", SESSION, "toolu_1"]);
    assert!(explained.contains("hooks    PreToolUse: hook_0 denies it: the file is frozen"), "{explained}");
    assert!(explained.contains("layer    hook"), "{explained}");
    let why: Value =
        serde_json::from_str(&run(&["permissions", "explain", SESSION, "toolu_1", "--json"])).unwrap();
    assert_eq!((&why["decision"], &why["reason"]["type"]), (&json!("deny"), &json!("hook")));
    assert_eq!(why["reason"]["answeredBy"], "hook hook_0");
    assert_eq!(why["hooks"][0]["runs"][0]["outcome"], "success");
    let shown = run(&["sessions", "show", SESSION]);
    assert!(shown.contains("1 hook for PreToolUse: deny (the file is frozen)"), "{shown}");
}

#[test]
fn a_hook_that_raises_leaves_the_question_to_a_person() {
    let sandbox = Sandbox::new();
    let flags = ["--permission-mode", "acceptEdits", "--permission-prompt-tool", "stdio"];
    let mut host = Host::connect(&sandbox, &writes(&sandbox), &flags, declared("PreToolUse", None));
    host.prompt("write");
    let asked = host.asked("hook_callback");
    host.respond_error(&asked, "ValueError: oops");
    let question = host.asked("can_use_tool");
    assert!(question["request"]["decision_reason"].as_str().unwrap().contains("ValueError: oops"));
    host.respond(&question, &json!({ "behavior": "allow", "updatedInput": question["request"]["input"] }));
    assert_eq!(host.result()["result"], "done");
    assert!(sandbox.project().join("new.txt").exists());
}

#[test]
fn an_interrupt_withdraws_a_hook() {
    let sandbox = Sandbox::new();
    for (event, reason) in [("PreToolUse", "aborted_tools"), ("UserPromptSubmit", "aborted_streaming")] {
        let mut host = Host::connect(&sandbox, &writes(&sandbox), &[], declared(event, None));
        host.prompt("write");
        let asked = host.asked("hook_callback");
        host.ask(&json!({ "subtype": "interrupt" }));
        let cancelled = host.until(|line| line["type"] == "control_cancel_request");
        assert_eq!(cancelled["request_id"], asked["request_id"]);
        assert_eq!(host.result()["terminal_reason"], reason);
        assert!(!sandbox.project().join("new.txt").exists());
    }
}
