//! Hooks that fail, time out or give an invalid answer: before a call that means to ask, elsewhere it has no effect, unless
//! the hook says otherwise. The host is warned in any case.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_config::hooks::{HookFunction, OnFailure};
use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, text};

fn writes() -> Value {
    json!([call("Write", json!({"file_path": "a.txt", "content": "hi"})), text("done")])
}

fn fails() -> HookFunction {
    Arc::new(|_| std::future::ready(Err("it fell over".to_owned())).boxed())
}

#[tokio::test]
async fn before_a_call_every_failure_asks() {
    let answers: [HookFunction; 5] = [
        fails(),
        Arc::new(|_| std::future::pending().boxed()),
        Arc::new(|_| std::future::ready(Ok(json!("yes"))).boxed()),
        Arc::new(|_| panic!("a fault in the hook")),
        Arc::new(|_| {
            let output = json!({"hookSpecificOutput": {"permissionDecision": "deny"}});
            std::future::ready(Ok(output)).boxed()
        }),
    ];
    let outcomes = ["error", "timeout", "error", "error", "error"];
    for (function, outcome) in answers.into_iter().zip(outcomes) {
        let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
        stage.register("PreToolUse", None, None, Duration::from_millis(20), function);
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), ["denied"], "no one is attached to answer the question");
        assert!(ran.warned("the hook PreToolUse 1 for PreToolUse failed"));
        let run = &ran.hooked("PreToolUse")[0]["runs"][0];
        assert_eq!(run["outcome"], outcome);
        assert!(run["problem"].is_string());
        assert_eq!(ran.hooked("PreToolUse")[0]["verdict"], "ask");
    }
}

#[tokio::test]
async fn a_hook_says_what_its_failure_means() {
    let cases =
        [(OnFailure::Continue, "completed"), (OnFailure::Ask, "completed"), (OnFailure::Block, "denied")];
    for (on_failure, outcome) in cases {
        let mut stage = Stage::new(writes()).rules(&["Write"], &[]).answering(true);
        stage.register("PreToolUse", None, Some(on_failure), Duration::from_secs(60), fails());
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), [outcome], "{on_failure:?}");
        let questions = usize::from(on_failure == OnFailure::Ask);
        assert_eq!(ran.heard.questions.lock().unwrap().len(), questions, "{on_failure:?}");
    }
}

#[tokio::test]
async fn elsewhere_a_failure_has_no_effect() {
    let mut stage = Stage::new(writes()).rules(&["Write"], &[]);
    for event in ["UserPromptSubmit", "PostToolUse", "Stop", "SessionStart", "SessionEnd"] {
        stage.register(event, None, None, Duration::from_secs(60), fails());
    }
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed"]);
    assert_eq!(ran.result()["subtype"], "success");
    for event in ["UserPromptSubmit", "PostToolUse", "Stop", "SessionStart", "SessionEnd"] {
        assert!(ran.warned(&format!("for {event} failed: it fell over; it has no effect")), "{event}");
        assert_eq!(ran.hooked(event).len(), 1, "{event}");
    }
}

#[tokio::test]
async fn a_failing_hook_beside_an_allowing_one_keeps_the_question_open() {
    let mut stage = Stage::new(writes()).answering(false);
    stage.hook("PreToolUse", None, crate::hooks::support::verdict("allow", ""));
    stage.register("PreToolUse", None, None, Duration::from_secs(60), fails());
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.heard.questions.lock().unwrap().len(), 1);
    assert_eq!(ran.outcomes(), ["denied"]);
}

#[tokio::test]
async fn a_matcher_that_cannot_be_used_is_told_once() {
    let twice = json!([
        call("Write", json!({"file_path": "a.txt", "content": "1"})),
        {"toolCalls": [{"id": "call_2", "name": "Write", "input": {"file_path": "b.txt", "content": "2"}}]},
        text("done")]);
    let mut stage = Stage::new(twice.clone()).rules(&["Write"], &[]);
    let told = stage.hook("PostToolUse", Some("Wri("), json!({}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed", "completed"]);
    assert!(told.lock().unwrap().is_empty());
    let warnings = ran.heard.warnings.lock().unwrap().clone();
    assert_eq!(warnings.iter().filter(|text| text.contains("never called")).count(), 1, "{warnings:?}");
    // One that could have denied the call is not lost; look-around is no part of our expressions.
    for matcher in ["Wri(", "^(?!Read)"] {
        let mut stage = Stage::new(twice.clone()).rules(&["Write"], &[]);
        let told = stage.hook("PreToolUse", Some(matcher), crate::hooks::support::verdict("allow", ""));
        let ran = stage.run(&["go"]).await;
        assert_eq!(ran.outcomes(), ["denied", "denied"], "{matcher}");
        assert!(told.lock().unwrap().is_empty());
        let warnings = ran.heard.warnings.lock().unwrap().clone();
        let everything = warnings.iter().filter(|text| text.contains("fails for everything"));
        assert_eq!(everything.count(), 1, "{warnings:?}");
    }
}

#[tokio::test]
async fn a_message_for_the_host_is_told() {
    let mut stage = Stage::new(json!([text("hello")]));
    stage.hook("UserPromptSubmit", None, json!({"systemMessage": "the quota is nearly used"}));
    assert!(stage.run(&["hi"]).await.warned("the quota is nearly used"));
}
