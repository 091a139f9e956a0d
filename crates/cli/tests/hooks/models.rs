//! Hooks that ask a model: one question, an answer with `ok`, and a price that the session pays.

use serde_json::{Value, json};

use crate::support::{Stage, call, say, say_when};

fn prompt_hook(event: &str, more: &Value) -> Stage {
    let mut hook = json!({ "type": "prompt", "prompt": "Is the work done?" });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Stage::with(&json!({
        "hooks": { event: [{ "hooks": [hook] }] },
        "model": { "prices": { "scripted": { "input": 1_000_000, "output": 0 } } },
    }))
}

fn judged(answer: &str) -> Value {
    json!({ "when": { "purpose": "hook_prompt" }, "text": answer })
}

#[test]
fn a_prompt_hook_with_ok_false_blocks_with_its_reason_and_its_call_is_paid_for() {
    let stage = prompt_hook("Stop", &json!({ "once": true }));
    let mut answer = judged("{\"ok\": false, \"reason\": \"the tests are missing\"}");
    answer["usage"] = json!({ "input_tokens": 1000, "output_tokens": 1 });
    let ran =
        stage.run(&json!([say("first"), answer, say_when("the tests are missing", "tests added")]), &[]);
    assert_eq!(ran.said(), "tests added");
    let lines = stage.sandbox.transcript_lines();
    let asked = lines.iter().find(|line| line["type"] == "side-call").unwrap();
    assert_eq!(asked["purpose"], "hook_prompt", "{asked:#}");
    assert!(ran.result()["total_cost_usd"].as_f64().unwrap() >= 1000.0, "{:#}", ran.result());
}

#[test]
fn a_prompt_hook_with_ok_true_lets_a_call_run_and_false_does_not() {
    for (answer, runs) in [("{\"ok\": true}", true), ("Sure: {\"ok\": false, \"reason\": \"risky\"}", false)]
    {
        let stage = prompt_hook("PreToolUse", &json!({}));
        let replies =
            json!([call(1, "Bash", &json!({ "command": "touch made" })), judged(answer), say("done")]);
        stage.run(&replies, &["--allowedTools", "Bash"]).said();
        assert_eq!(stage.sandbox.project().join("made").exists(), runs, "{answer}");
    }
}

#[test]
fn a_prompt_hook_that_answers_nonsense_fails_closed_before_a_call() {
    for answer in ["yes", "{\"ok\": \"yes\"}", "{}"] {
        let stage = prompt_hook("PreToolUse", &json!({}));
        let replies =
            json!([call(1, "Bash", &json!({ "command": "touch made" })), judged(answer), say("done")]);
        let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
        assert!(!stage.sandbox.project().join("made").exists() && ran.stderr.contains("failed"), "{answer}");
    }
}
