//! Hooks at the end of a turn: they may make the model continue, a bounded number of times, or end the turn with an error.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, specific, text};

#[tokio::test]
async fn a_block_makes_the_model_go_on() {
    let mut stage = Stage::new(json!([text("first"), text("second")]));
    let told = stage.hook_by("Stop", None, |input| {
        let active = input["stop_hook_active"] == Value::Bool(true);
        Ok(if active { json!({}) } else { json!({"decision": "block", "reason": "run the tests as well"}) })
    });
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.result()["result"], "second");
    assert_eq!(ran.result()["num_turns"], 2);
    assert!(ran.said("run the tests as well"));
    let told = told.lock().unwrap();
    let active: Vec<_> = told.iter().map(|input| input["stop_hook_active"].clone()).collect();
    assert_eq!(active, [json!(false), json!(true)]);
    assert_eq!(told[0]["last_assistant_message"], "first");
    let verdicts: Vec<_> = ran.hooked("Stop").iter().map(|record| record["verdict"].clone()).collect();
    assert_eq!(verdicts, [json!("deny"), Value::Null]);
}

#[tokio::test]
async fn hooks_cannot_hold_a_turn_for_ever() {
    let mut stage = Stage::new(json!([{"text": "done", "repeat": true}]));
    let told = stage.hook("Stop", None, json!({"decision": "block", "reason": "more"}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(told.lock().unwrap().len(), 8);
    assert_eq!(ran.result()["subtype"], "success");
    assert_eq!(ran.result()["num_turns"], 9);
    assert!(ran.warned("it ends now"));
}

#[tokio::test]
async fn context_at_the_end_is_made_use_of() {
    let mut stage = Stage::new(json!([text("first"), text("second")]));
    stage.hook_by("Stop", None, |input| {
        let active = input["stop_hook_active"] == Value::Bool(true);
        Ok(if active {
            json!({})
        } else {
            specific("Stop", json!({"additionalContext": "the build is red"}))
        })
    });
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.result()["result"], "second");
    assert!(ran.said("the build is red"));
}

#[tokio::test]
async fn a_hook_can_end_the_turn_with_an_error() {
    let mut stage = Stage::new(json!([text("first")]));
    stage.hook("Stop", None, json!({"continue": false, "stopReason": "over", "decision": "block"}));
    let ran = stage.run(&["go"]).await;
    assert_eq!((&ran.result()["errors"], &ran.result()["error_code"]), (&json!(["over"]), &json!(48_716)));
    assert_eq!(ran.result()["num_turns"], 1);
}

#[tokio::test]
async fn a_turn_that_fails_is_not_held() {
    let mut stage = Stage::new(json!([{"error": {"status": 400, "message": "no"}}]));
    let told = stage.hook("Stop", None, json!({"decision": "block", "reason": "more"}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.result()["terminal_reason"], "api_error");
    assert!(told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_interrupt_withdraws_a_hook_that_holds_the_turn() {
    let mut stage = Stage::new(json!([text("first")]));
    let interrupt = stage.interrupt.clone();
    let function: qoder_config::hooks::HookFunction = std::sync::Arc::new(move |_| {
        interrupt.trigger();
        Box::pin(std::future::pending())
    });
    stage.register("Stop", None, None, std::time::Duration::from_secs(600), function);
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.result()["subtype"], "error_during_execution");
    assert_eq!(ran.of_type("interrupt").len(), 1);
}
