//! A session that waits for an answer and resumes in another process follows what its hooks said before, without asking
//! them again; a rule that was written meanwhile still denies.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, specific, text};

/// A session whose hook wants a question, about another file than the model named.
fn parked() -> (Stage, crate::hooks::support::Received) {
    let replies = json!([call("Write", json!({"file_path": "a.txt", "content": "hi"})), text("done")]);
    let mut stage = Stage::new(replies).rules(&["Write"], &[]);
    stage.options.settings = Some(json!({"permissions": {"unattended": "park"}}).to_string());
    let input = json!({"file_path": "b.txt", "content": "changed"});
    let part =
        json!({"permissionDecision": "ask", "permissionDecisionReason": "look", "updatedInput": input});
    let told = stage.hook("PreToolUse", None, specific("PreToolUse", part));
    (stage, told)
}

#[tokio::test]
async fn the_verdict_on_record_counts_and_the_hook_is_not_asked_again() {
    let (stage, told) = parked();
    let ran = stage.run(&["go"]).await;
    assert!(ran.end.is_none() && ran.outcomes().is_empty());
    assert_eq!(ran.of_type("permission-ask").len(), 1);
    let stage = stage.answering(true);
    let ran = stage.run(&[]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    assert_eq!(std::fs::read_to_string(stage.path("b.txt")).unwrap(), "changed");
    assert!(!stage.path("a.txt").exists());
    assert_eq!(told.lock().unwrap().len(), 1);
    let questions = ran.heard.questions.lock().unwrap();
    assert_eq!(questions[0].input["file_path"], "b.txt", "what is asked about is what would run");
    assert_eq!(questions[0].decision.reason, "look");
}

#[tokio::test]
async fn a_rule_that_was_written_meanwhile_denies() {
    let (stage, _) = parked();
    stage.run(&["go"]).await;
    let stage = stage.answering(true).rules(&["Write"], &["Edit(b.txt)"]);
    let ran = stage.run(&[]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    let decision: &Value = &ran.of_type("decision")[0]["decision"];
    assert_eq!(decision["layer"], "rule");
    assert!(!stage.path("b.txt").exists());
}
