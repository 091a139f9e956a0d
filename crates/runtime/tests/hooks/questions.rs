//! Hooks of a question: they run before the host or a person is asked, also when no one is attached, and answer for the
//! mode alone. What a rule wants to be asked about stays a person's to answer.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, specific, text, verdict};

fn writes() -> Value {
    json!([call("Write", json!({"file_path": "a.txt", "content": "hi"})), text("done")])
}

fn decision(decision: Value) -> Value {
    let mut part = json!({});
    part["decision"] = decision;
    specific("PermissionRequest", part)
}

#[tokio::test]
async fn a_hook_allows_in_place_of_a_person() {
    for host in [None, Some(false)] {
        let mut stage = Stage::new(writes());
        if let Some(allow) = host {
            stage = stage.answering(allow);
        }
        let told = stage.hook("PermissionRequest", Some("Write"), decision(json!({"behavior": "allow"})));
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), ["completed"]);
        assert!(ran.heard.questions.lock().unwrap().is_empty());
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["tool_name"], "Write");
        assert!(told[0]["permission_suggestions"].is_array(), "{}", told[0]);
        assert_eq!(ran.decision()["layer"], "hook");
        assert_eq!(ran.decision()["answeredBy"], "hook PermissionRequest 1");
    }
}

#[tokio::test]
async fn a_hook_denies_with_a_message_for_the_model() {
    let mut stage = Stage::new(writes()).answering(true);
    stage.hook("PermissionRequest", None, decision(json!({"behavior": "deny", "message": "use b.txt"})));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(ran.results().contains("\"use b.txt\""));
    assert!(ran.heard.questions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hook_without_an_opinion_leaves_the_question_open() {
    let mut stage = Stage::new(writes()).answering(true);
    let told = stage.hook("PermissionRequest", None, json!({}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    assert_eq!(ran.heard.questions.lock().unwrap().len(), 1);
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(ran.decision()["layer"], "person");
}

#[tokio::test]
async fn a_call_that_does_not_ask_is_not_shown() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
    let told = stage.hook("PermissionRequest", None, decision(json!({"behavior": "deny"})));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["completed"]);
    assert!(told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_allowance_may_change_the_input_which_is_judged_again() {
    let allow = |path: &str| {
        decision(json!({"behavior": "allow", "updatedInput": {"file_path": path, "content": "changed"}}))
    };
    let mut stage = Stage::new(writes()).rules(&[], &["Edit(secret.txt)"]);
    stage.hook("PermissionRequest", None, allow("b.txt"));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["completed"]);
    assert_eq!(std::fs::read_to_string(stage.path("b.txt")).unwrap(), "changed");

    let mut stage = Stage::new(writes()).rules(&[], &["Edit(secret.txt)"]);
    stage.hook("PermissionRequest", None, allow("secret.txt"));
    assert_eq!(stage.run(&["go"]).await.outcomes(), ["denied"]);
    assert!(!stage.path("secret.txt").exists());
}

#[tokio::test]
async fn an_allowance_may_bring_rules_but_no_mode() {
    let twice = json!([
        call("Write", json!({"file_path": "a.txt", "content": "1"})),
        {"toolCalls": [{"id": "call_2", "name": "Write", "input": {"file_path": "b.txt", "content": "2"}}]},
        text("done")]);
    let mut stage = Stage::new(twice);
    let rules = json!({"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow", "destination": "session"});
    let mode = json!({"type": "setMode", "mode": "bypassPermissions", "destination": "session"});
    let output = json!({"behavior": "allow", "updatedPermissions": [rules, mode]});
    let told = stage.hook("PermissionRequest", None, decision(output));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed", "completed"]);
    assert_eq!(told.lock().unwrap().len(), 1, "the rule makes the second question unnecessary");
    assert!(ran.warned("only a person may"));
    assert_eq!(ran.end.unwrap().permission_mode.as_str(), "default");
}

#[tokio::test]
async fn a_changed_input_opens_no_question_of_a_rule() {
    let mut stage = Stage::new(writes()).answering(true);
    stage.options.settings = Some(json!({"permissions": {"ask": ["Edit(b.txt)"]}}).to_string());
    let input = json!({"file_path": "b.txt", "content": "changed"});
    stage.hook("PermissionRequest", None, decision(json!({"behavior": "allow", "updatedInput": input})));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(!stage.path("b.txt").exists() && !stage.path("a.txt").exists());
    assert!(ran.results().contains("a hook cannot allow that"));
}

#[tokio::test]
async fn what_a_rule_or_another_hook_wants_to_be_asked_about_is_a_persons_to_answer() {
    let by_rule = |stage: &mut Stage| {
        stage.options.settings = Some(json!({"permissions": {"ask": ["Write"]}}).to_string());
    };
    let by_hook = |stage: &mut Stage| {
        stage.hook("PreToolUse", None, verdict("ask", "look"));
    };
    let ways: [&dyn Fn(&mut Stage); 2] = [&by_rule, &by_hook];
    for way in ways {
        let mut stage = Stage::new(writes()).answering(false);
        way(&mut stage);
        stage.hook("PermissionRequest", None, decision(json!({"behavior": "allow"})));
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), ["denied"]);
        assert_eq!(ran.heard.questions.lock().unwrap().len(), 1);
        assert_eq!(ran.decision()["layer"], "person");
    }
}
