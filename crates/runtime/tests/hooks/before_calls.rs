//! Hooks before a call: they see its input, deny, allow, ask, change the input, add context or end the turn; what they said
//! is on record, and a session that is resumed does not ask them again.

use serde_json::json;

use crate::hooks::support::{SESSION, Stage, call, specific, text, verdict};

fn writes() -> serde_json::Value {
    json!([call("Write", json!({"file_path": "a.txt", "content": "hi"})), text("done")])
}

#[tokio::test]
async fn a_hook_sees_the_call() {
    let mut stage = Stage::new(writes());
    let told = stage.hook("PreToolUse", Some("Write"), json!({}));
    let other = stage.hook("PreToolUse", Some("Edit"), json!({}));
    let ran = stage.run(&["go"]).await;
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    let expected = json!({
        "hook_event_name": "PreToolUse", "session_id": SESSION, "transcript_path": stage.log(),
        "cwd": stage.options.cwd, "permission_mode": "default", "tool_name": "Write", "tool_use_id": "call_1",
        "tool_input": {"file_path": "a.txt", "content": "hi"},
    });
    assert_eq!(told[0], expected);
    assert!(other.lock().unwrap().is_empty());
    let hooked = ran.hooked("PreToolUse");
    assert_eq!(hooked.len(), 1);
    assert_eq!(hooked[0]["runs"][0]["outcome"], "success");
    assert_eq!(hooked[0]["toolUseId"], "call_1");
    assert_eq!(
        ran.outcomes(),
        ["denied"],
        "without an opinion the call asks, and no one is attached to answer"
    );
}

#[tokio::test]
async fn a_denial_reaches_the_model_in_the_hooks_words() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]).answering(true);
    stage.hook("PreToolUse", None, verdict("allow", "fine"));
    stage.hook("PreToolUse", None, verdict("deny", "not on a Monday"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(!stage.path("a.txt").exists());
    assert!(ran.results().contains("\"not on a Monday\""), "{}", ran.results());
    let decision = ran.decision();
    assert_eq!((&decision["behavior"], &decision["layer"]), (&json!("deny"), &json!("hook")));
    assert_eq!(decision["answeredBy"], "hook PreToolUse 2");
    assert_eq!(decision["considered"][0]["behavior"], "allow", "what the rule would have said is kept");
    assert!(ran.heard.questions.lock().unwrap().is_empty(), "a denied call is not put to anybody");
    assert!(ran.system("permission_denied").is_empty());
    assert_eq!(ran.end.unwrap().permission_denials.len(), 1);
}

#[tokio::test]
async fn the_general_block_denies_too() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
    stage.hook("PreToolUse", None, json!({"decision": "block", "reason": "blocked"}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(ran.results().contains("blocked"));
}

#[tokio::test]
async fn an_allowance_answers_what_the_mode_asks() {
    let mut stage = Stage::new(writes()).answering(false);
    stage.hook("PreToolUse", None, verdict("allow", "it is safe"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    assert!(stage.path("a.txt").exists());
    let decision = ran.decision();
    assert_eq!((&decision["behavior"], &decision["layer"]), (&json!("allow"), &json!("hook")));
    assert!(ran.heard.questions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_allowance_lifts_no_ask_rule_and_no_safety_check() {
    let settings = json!({"permissions": {"ask": ["Write"]}}).to_string();
    let mut stage = Stage::new(writes());
    stage.options.settings = Some(settings);
    stage.hook("PreToolUse", None, verdict("allow", ""));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(!stage.path("a.txt").exists());

    let mut stage = Stage::new(json!([call("Bash", json!({"command": "sudo true"})), text("done")]));
    stage.hook("PreToolUse", None, verdict("allow", ""));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["denied"]);
}

#[tokio::test]
async fn a_hook_may_want_somebody_to_be_asked_about_what_a_rule_allows() {
    for allow in [true, false] {
        let mut stage = Stage::new(writes()).rules(&["Write"], &[]).answering(allow);
        stage.hook("PreToolUse", None, verdict("ask", "look at this"));
        let ran = stage.run(&["go"]).await;
        let questions = ran.heard.questions.lock().unwrap();
        assert_eq!(questions.len(), 1);
        assert_eq!(questions[0].decision.reason, "look at this");
        assert_eq!(ran.outcomes(), [if allow { "completed" } else { "denied" }]);
    }
}

#[tokio::test]
async fn where_nobody_answers_a_wish_to_ask_denies() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
    stage.hook("PreToolUse", None, verdict("ask", "look at this"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert_eq!(ran.decision()["layer"], "unattended");
}

#[tokio::test]
async fn a_deferring_hook_keeps_another_from_allowing() {
    let mut stage = Stage::new(writes());
    stage.hook("PreToolUse", None, verdict("allow", ""));
    stage.hook("PreToolUse", None, verdict("defer", ""));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["denied"]);
}

#[tokio::test]
async fn a_changed_input_is_what_is_judged_and_run() {
    let changed = |path: &str| {
        let input = json!({"file_path": path, "content": "changed"});
        specific("PreToolUse", json!({"permissionDecision": "allow", "updatedInput": input}))
    };
    let mut stage = Stage::new(writes()).rules(&[], &["Edit(secret.txt)"]);
    stage.hook("PreToolUse", None, changed("b.txt"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    assert_eq!(std::fs::read_to_string(stage.path("b.txt")).unwrap(), "changed");
    assert!(!stage.path("a.txt").exists());
    assert_eq!(ran.hooked("PreToolUse")[0]["updatedInput"]["file_path"], "b.txt");

    let mut stage = Stage::new(writes()).rules(&["Write"], &["Edit(secret.txt)"]);
    stage.hook("PreToolUse", None, changed("secret.txt"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert_eq!(ran.decision()["layer"], "rule");
    assert!(!stage.path("secret.txt").exists());
}

#[tokio::test]
async fn a_changed_input_that_does_not_fit_the_schema_does_not_run() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
    stage.hook("PreToolUse", None, specific("PreToolUse", json!({"updatedInput": {"content": 1}})));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["failed"]);
    assert!(ran.results().contains("do not fit its schema"));
}

#[tokio::test]
async fn a_call_whose_input_makes_no_sense_is_not_shown_to_hooks() {
    let mut stage = Stage::new(json!([call("Write", json!({"content": "x"})), text("done")]));
    let told = stage.hook("PreToolUse", None, verdict("allow", ""));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["failed"]);
    assert!(told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn context_comes_with_the_result_in_the_order_of_the_hooks() {
    let context = |text: &str| specific("PreToolUse", json!({"additionalContext": text}));
    for allowed in [true, false] {
        let mut stage = Stage::new(writes());
        if allowed {
            stage = stage.rules(&["Write"], &[]);
        }
        stage.hook("PreToolUse", None, context("first thing"));
        stage.hook("PreToolUse", None, context("second thing"));
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), [if allowed { "completed" } else { "denied" }]);
        assert!(ran.results().contains("first thing\\n\\nsecond thing"), "{}", ran.results());
    }
}

#[tokio::test]
async fn a_hook_can_end_the_turn_before_a_call() {
    let calls = json!([{"toolCalls": [
        {"id": "call_1", "name": "Write", "input": {"file_path": "a.txt", "content": "hi"}},
        {"id": "call_2", "name": "Write", "input": {"file_path": "b.txt", "content": "hi"}}]}, text("done")]);
    let mut stage = Stage::new(calls).rules(&["Write"], &[]);
    stage.hook("PreToolUse", None, json!({"continue": false, "stopReason": "enough for today"}));
    let ran = stage.run(&["go"]).await;
    let result = ran.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["errors"], json!(["enough for today"]));
    assert_eq!((&result["error_code"], &result["terminal_reason"]), (&json!(48_716), &json!("hook_stopped")));
    assert_eq!(ran.outcomes(), ["not_run", "not_run"]);
    assert_eq!(ran.hooked("PreToolUse").len(), 1);
    assert!(!stage.path("a.txt").exists() && !stage.path("b.txt").exists());
}

#[tokio::test]
async fn hooks_see_calls_of_servers_and_agents_by_their_names() {
    let mut stage = Stage::new(json!([call("Agent", json!({"prompt": "x"})), text("done")]));
    let by_other_name = stage.hook("PreToolUse", Some("Task"), verdict("deny", "no agents"));
    let ran = stage.run(&["go"]).await;
    assert_eq!(by_other_name.lock().unwrap()[0]["tool_name"], "Agent");
    assert_eq!(ran.outcomes(), ["denied"]);
}
