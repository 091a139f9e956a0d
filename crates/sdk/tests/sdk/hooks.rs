//! Hooks of the program around the steps of a turn: they refuse, change, add and put off. A hook that panics is an
//! error that counts as its registration says, never the end of the program.

use std::sync::{Arc, Mutex};

use qoder_agent_sdk::{
    HookDetail, HookEvent, HookInput, HookJsonOutput, HookMatcher, Message, OnFailure, QoderAgentOptions,
    query,
};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, tool_results};

#[test]
fn the_inputs_of_all_documented_events_are_typed() {
    let base =
        json!({ "session_id": "s", "transcript_path": "/t", "cwd": "/c", "permission_mode": "default" });
    let cases = [
        ("PreToolUse", json!({ "tool_name": "Bash", "tool_input": {} })),
        ("PostToolUse", json!({ "tool_name": "Bash", "tool_input": {}, "tool_response": "x" })),
        ("PostToolUseFailure", json!({ "tool_name": "Bash", "tool_input": {}, "error": "x" })),
        ("UserPromptSubmit", json!({ "prompt": "x" })),
        ("SessionStart", json!({ "source": "startup" })),
        ("SessionEnd", json!({ "reason": "other" })),
        ("Stop", json!({ "stop_hook_active": true })),
        ("SubagentStart", json!({ "agent_id": "a", "agent_type": "t" })),
        ("SubagentStop", json!({ "stop_hook_active": false })),
        ("PreCompact", json!({ "trigger": "auto", "custom_instructions": null })),
        ("PostCompact", json!({ "trigger": "auto", "compact_summary": "x" })),
        ("CwdChanged", json!({ "old_cwd": "/a", "new_cwd": "/b" })),
        ("InstructionsLoaded", json!({ "load_reason": "path_glob_match" })),
        ("FileChanged", json!({ "file_path": "/a", "event": "change" })),
        ("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": {} })),
    ];
    for (event, more) in cases {
        let mut value = base.clone();
        value["hook_event_name"] = json!(event);
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        let input = HookInput::from_value(value.clone());
        assert_ne!(input.detail, HookDetail::Unknown, "{event}");
        assert_eq!((input.hook_event_name.as_str(), input.cwd.as_str()), (event, "/c"));
        assert_eq!(serde_json::to_value(&input).unwrap(), value, "nothing is lost");
    }
    let later = HookInput::from_value(json!({ "hook_event_name": "Later", "x": 1 }));
    assert_eq!((later.detail, later.raw["x"].clone()), (HookDetail::Unknown, json!(1)));
}

fn writing(place: &Place) -> QoderAgentOptions {
    place.playing(&call_then_done("Write", &json!({ "file_path": "a.txt", "content": "x" })))
}

async fn run(options: QoderAgentOptions) -> Vec<Message> {
    all(query("Go.", options).unwrap()).await
}

#[tokio::test]
async fn a_hook_refuses_a_call_and_the_model_reads_why() {
    let place = Place::new();
    let guard = HookMatcher::for_tools("Write").hook(|input, id, _| async move {
        assert_eq!((input.tool_name(), id.as_deref()), (Some("Write"), Some("call_1")));
        HookJsonOutput::deny("not on Fridays")
    });
    let messages = run(writing(&place).allowed_tools(["Write"]).hook(HookEvent::PreToolUse, guard)).await;
    let (text, failed) = tool_results(&messages).remove(0);
    assert!(failed && text.contains("not on Fridays"), "{text}");
    assert!(!place.0.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_hook_lets_a_call_run_and_changes_its_input() {
    let place = Place::new();
    let change = HookMatcher::for_tools("Write").hook(|_, _, _| async {
        HookJsonOutput::allow_with(&json!({ "file_path": "b.txt", "content": "changed" }))
    });
    run(writing(&place).hook(HookEvent::PreToolUse, change)).await;
    assert_eq!(std::fs::read_to_string(place.0.project().join("b.txt")).unwrap(), "changed");
}

#[tokio::test]
async fn a_matcher_chooses_the_tools() {
    let place = Place::new();
    let other = HookMatcher::for_tools("Bash").hook(|_, _, _| async { HookJsonOutput::deny("no") });
    let messages = run(writing(&place).allowed_tools(["Write"]).hook(HookEvent::PreToolUse, other)).await;
    assert!(!tool_results(&messages)[0].1);
}

#[tokio::test]
async fn a_failing_hook_counts_as_its_registration_says() {
    for (on_failure, runs) in [(OnFailure::Continue, true), (OnFailure::Block, false)] {
        let place = Place::new();
        let broken = HookMatcher::new().on_failure(on_failure).hook(|input: HookInput, _, _| async move {
            if input.session_id.is_empty() { HookJsonOutput::default() } else { panic!("a bug") }
        });
        let messages =
            run(writing(&place).allowed_tools(["Write"]).hook(HookEvent::PreToolUse, broken)).await;
        assert_eq!(!tool_results(&messages)[0].1, runs, "{on_failure:?}");
        assert_eq!(result(&messages).text(), "done");
    }
}

#[tokio::test]
async fn what_a_tool_said_can_be_replaced() {
    let place = Place::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let saw = Arc::clone(&seen);
    let after = HookMatcher::new().hook(move |input, _, _| {
        saw.lock().unwrap().push(input.hook_event_name);
        async { HookJsonOutput::replace_output("nothing to see") }
    });
    let messages = run(writing(&place).allowed_tools(["Write"]).hook(HookEvent::PostToolUse, after)).await;
    assert_eq!(tool_results(&messages)[0].0, "nothing to see");
    assert_eq!(*seen.lock().unwrap(), ["PostToolUse"]);
}

#[tokio::test]
async fn a_prompt_can_be_added_to_and_a_stop_put_off() {
    let place = Place::new();
    let replies = json!([
        { "when": { "contains": "finish the tests" }, "text": "now done" },
        { "when": { "contains": "today is Friday" }, "text": "early", "repeat": true },
    ]);
    let context = HookMatcher::new()
        .hook(|_, _, _| async { HookJsonOutput::context(&HookEvent::UserPromptSubmit, "today is Friday") });
    let go_on = HookMatcher::new().hook(|input, _, _| async move {
        match input.detail {
            HookDetail::Stop { stop_hook_active: false } => HookJsonOutput::block("finish the tests"),
            _ => HookJsonOutput::default(),
        }
    });
    let options =
        place.playing(&replies).hook(HookEvent::UserPromptSubmit, context).hook(HookEvent::Stop, go_on);
    let messages = run(options).await;
    assert_eq!(result(&messages).text(), "now done", "{messages:#?}");
}

#[tokio::test]
async fn hooks_are_on_the_stream_when_that_is_wanted() {
    let place = Place::new();
    let quiet = || HookMatcher::new().hook(|_, _, _| async { HookJsonOutput::default() });
    let told = |messages: &[Message]| {
        let started =
            |message: &&Message| matches!(message, Message::System(s) if s.subtype == "hook_started");
        messages.iter().filter(started).count()
    };
    let options = || writing(&place).allowed_tools(["Write"]).hook(HookEvent::PreToolUse, quiet());
    assert_eq!(told(&run(options()).await), 0);
    assert_eq!(told(&run(options().include_hook_events(true)).await), 1);
}
