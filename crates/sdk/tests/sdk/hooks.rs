//! Hooks of the program, as they are registered with the engine: which are there, with which words, and what their
//! failure means. A hook that panics is an error, never the end of the program.

use std::sync::{Arc, Mutex};

use qoder_agent_sdk::{HookDetail, HookEvent, HookInput, HookJsonOutput, HookMatcher, OnFailure, query};
use serde_json::json;

use crate::support::{Place, all, result};

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

#[tokio::test]
async fn a_session_with_hooks_runs_and_hooks_that_panic_end_nothing() {
    let place = Place::new();
    let called = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&called);
    let options = place
        .playing(&json!([{ "text": "done" }]))
        .hook(
            HookEvent::UserPromptSubmit,
            HookMatcher::new().hook(move |input, _, _| {
                seen.lock().unwrap().push(input.hook_event_name);
                async { HookJsonOutput::default() }
            }),
        )
        .hook(
            HookEvent::Stop,
            HookMatcher::new().on_failure(OnFailure::Continue).hook(|input: HookInput, _, _| async move {
                if input.session_id == "nobody" { HookJsonOutput::default() } else { panic!("a bug") }
            }),
        );
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "done");
    assert!(called.lock().unwrap().iter().all(|event| event == "UserPromptSubmit"));
}
