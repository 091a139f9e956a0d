//! Hooks before a prompt opens a turn: they see it, may add to it, and may keep it from the model; then the turn is over at
//! once, with a result that says why.

use serde_json::json;

use crate::hooks::support::{Stage, specific, text};

#[tokio::test]
async fn a_hook_sees_the_prompt_and_adds_to_it() {
    let mut stage = Stage::new(json!([text("hello")]));
    let output = specific("UserPromptSubmit", json!({"additionalContext": "it is Tuesday"}));
    let told = stage.hook("UserPromptSubmit", Some("Bash"), output);
    let ran = stage.run(&["what day is it?"]).await;
    let prompt = told.lock().unwrap()[0]["prompt"].clone();
    assert_eq!(prompt, "what day is it?", "a prompt has nothing that a matcher could look at");
    assert!(ran.conversation[0].contains("what day is it?") && ran.conversation[1].contains("it is Tuesday"));
    assert_eq!(ran.result()["subtype"], "success");
    let order: Vec<_> = ran.records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    let hook = order.iter().position(|kind| *kind == "hook").unwrap();
    assert_eq!(order[hook + 1], "user", "{order:?}");
}

#[tokio::test]
async fn a_blocked_prompt_never_reaches_the_model() {
    let blocks = [
        json!({"decision": "block", "reason": "no secrets here"}),
        json!({"continue": false, "stopReason": "no secrets here"}),
    ];
    for output in blocks {
        let mut stage = Stage::new(json!([text("never said")]));
        stage.hook("UserPromptSubmit", None, output);
        let ran = stage.run(&["the password is hunter2"]).await;
        let result = ran.result();
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!(result["errors"], json!(["no secrets here"]));
        assert_eq!((&result["error_code"], &result["num_turns"]), (&json!(48_716), &json!(0)));
        assert!(ran.conversation.is_empty(), "{:?}", ran.conversation);
        assert_eq!(ran.of_type("input-withdrawn").len(), 1);
        assert!(ran.of_type("model-request").is_empty());
        assert_eq!(ran.system("init").len(), 1, "a turn is announced before its result");
    }
}

#[tokio::test]
async fn the_prompt_behind_a_blocked_one_gets_its_turn() {
    let mut stage = Stage::new(json!([text("fine")]));
    stage.hook_by("UserPromptSubmit", None, |input| {
        let bad = input["prompt"].as_str().unwrap().contains("bad");
        Ok(if bad { json!({"decision": "block", "reason": "bad"}) } else { json!({}) })
    });
    let ran = stage.run(&["a bad one", "a good one"]).await;
    assert_eq!(ran.result()["result"], "fine");
    assert!(ran.conversation[0].contains("a good one"));
    assert_eq!(ran.of_type("turn-end").len(), 2);
}

#[tokio::test]
async fn an_interrupted_hook_lets_no_prompt_through() {
    let mut stage = Stage::new(json!([text("never said")]));
    stage.silent_hook("UserPromptSubmit", std::time::Duration::from_secs(600));
    stage.interrupt.trigger();
    let ran = stage.run(&["hello"]).await;
    assert_eq!(ran.result()["terminal_reason"], "aborted_streaming");
    assert!(ran.conversation.is_empty() && ran.of_type("model-request").is_empty());
}
