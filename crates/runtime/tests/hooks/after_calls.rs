//! Hooks after a call: they see its typed output or its error, replace what the model reads, add to it, object to it, or end
//! the turn. Denied calls concern them not.

use serde_json::json;

use crate::hooks::support::{Stage, call, specific, text};

fn reads() -> serde_json::Value {
    json!([call("Read", json!({"file_path": "notes.txt"})), text("done")])
}

fn stage() -> Stage {
    let stage = Stage::new(reads());
    stage.write("notes.txt", "the original text");
    stage
}

#[tokio::test]
async fn a_hook_sees_the_typed_output() {
    let mut stage = stage();
    let told = stage.hook("PostToolUse", Some("Read"), json!({}));
    let failed = stage.hook("PostToolUseFailure", None, json!({}));
    let ran = stage.run(&["go"]).await;
    let told = told.lock().unwrap();
    assert_eq!(told[0]["tool_name"], "Read");
    assert_eq!(told[0]["tool_input"], json!({"file_path": "notes.txt"}));
    assert!(told[0]["tool_response"].to_string().contains("the original text"), "{}", told[0]);
    assert_eq!(told[0]["tool_use_id"], "call_1");
    assert!(failed.lock().unwrap().is_empty());
    assert!(ran.results().contains("the original text"));
}

#[tokio::test]
async fn the_last_replacement_is_all_that_the_model_reads() {
    let mut stage = stage();
    stage.hook("PostToolUse", None, specific("PostToolUse", json!({"updatedToolOutput": "one"})));
    stage.hook("PostToolUse", None, specific("PostToolUse", json!({"updatedToolOutput": "two"})));
    stage.hook("PostToolUse", None, specific("PostToolUse", json!({"updatedToolOutput": ""})));
    let ran = stage.run(&["go"]).await;
    assert!(ran.results().contains("\"two\""), "{}", ran.results());
    assert!(!ran.said("the original text") && !ran.said("\"one\""));
    assert_eq!(ran.outcomes(), ["completed"]);
}

#[tokio::test]
async fn decision_block_and_reason_prevent_further_processing_of_the_result() {
    let mut stage = stage();
    stage.hook("PostToolUse", None, specific("PostToolUse", json!({"additionalContext": "mind the gap"})));
    stage.hook("PostToolUse", None, json!({"decision": "block", "reason": "that was stale"}));
    let ran = stage.run(&["go"]).await;
    let results = ran.results();
    for part in ["The call was made", "mind the gap", "that was stale"] {
        assert!(results.contains(part), "{part}: {results}");
    }
    assert!(!results.contains("the original text"), "{results}");
    assert_eq!(ran.hooked("PostToolUse")[0]["verdict"], "deny");
}

#[tokio::test]
async fn a_failed_call_has_an_event_of_its_own() {
    let mut stage = Stage::new(reads());
    let told = stage.hook(
        "PostToolUseFailure",
        None,
        specific("PostToolUseFailure", json!({"additionalContext": "try ls"})),
    );
    let succeeded = stage.hook("PostToolUse", None, json!({}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["failed"]);
    let told = told.lock().unwrap();
    assert!(told[0]["error"].as_str().unwrap().contains("notes.txt"), "{}", told[0]);
    assert_eq!(told[0]["is_interrupt"], false);
    assert!(succeeded.lock().unwrap().is_empty());
    assert!(ran.results().contains("try ls"));
}

#[tokio::test]
async fn an_interrupted_call_has_failed_by_an_interrupt() {
    let mut stage = Stage::new(json!([call("Bash", json!({"command": "sleep 600"})), text("done")]));
    stage = stage.rules(&["Bash"], &[]);
    let told = stage.hook("PostToolUseFailure", None, json!({}));
    let (interrupt, log) = (stage.interrupt.clone(), stage.log());
    let watcher = tokio::spawn(async move {
        while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"tool-start\"")) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        interrupt.trigger();
    });
    let ran = stage.run(&["go"]).await;
    watcher.await.unwrap();
    assert_eq!(ran.outcomes(), ["interrupted"]);
    assert_eq!(told.lock().unwrap()[0]["is_interrupt"], true);
}

#[tokio::test]
async fn a_denied_call_concerns_no_hook_after_it() {
    let mut stage = stage().rules(&[], &["Read(notes.txt)"]);
    let told = stage.hook("PostToolUse", None, json!({}));
    let failed = stage.hook("PostToolUseFailure", None, json!({}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(told.lock().unwrap().is_empty() && failed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hook_can_end_the_turn_after_a_call() {
    let mut stage = stage();
    stage.hook("PostToolUse", None, json!({"continue": false, "stopReason": "seen enough"}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    let result = ran.result();
    assert_eq!((&result["errors"], &result["error_code"]), (&json!(["seen enough"]), &json!(48_716)));
    assert_eq!(result["num_turns"], 1, "the model is not asked again");
}
