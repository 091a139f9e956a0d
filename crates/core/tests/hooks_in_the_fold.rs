//! What the fold makes of records of hooks: what they said about a call counts once and only before there is a decision,
//! and a hook that ends the turn leaves no call without an outcome.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use qoder_core::next::{EndReason, turn_end};
use qoder_core::recover::{CloseReason, close};
use qoder_core::{Limits, OptionNames, State, Step, next};
use qoder_types::record::{AssistantEntry, Decided, RecordBody, UserEntry};
use qoder_types::{
    Behavior, CallOutcome, Decision, DecisionLayer, HookVerdict, Hooked, PermissionMode, Record,
};
use serde_json::{Value, json};

fn applied(bodies: Vec<RecordBody>) -> State {
    let mut state = State::default();
    for body in bodies {
        state.apply(&Record { seq: state.last_seq + 1, timestamp: String::new(), body });
    }
    state
}

fn prompt() -> RecordBody {
    let entry = json!({"uuid": "u", "parentUuid": null, "message": {"role": "user", "content": "go"}});
    let entry: UserEntry = serde_json::from_str(&entry.to_string()).unwrap();
    RecordBody::User(Box::new(entry))
}

/// A reply that calls a tool.
fn call() -> RecordBody {
    let content = json!([{"type": "tool_use", "id": "call", "name": "Write", "input": {"n": 0}}]);
    let entry = json!({"uuid": "a", "parentUuid": "u", "message": {"content": content}});
    let entry: AssistantEntry = serde_json::from_str(&entry.to_string()).unwrap();
    RecordBody::Assistant(Box::new(entry))
}

fn hooked(event: &str, input: Option<Value>, stop: Option<&str>) -> RecordBody {
    RecordBody::Hooked(Box::new(Hooked {
        event: event.to_owned(),
        tool_use_id: Some("call".to_owned()),
        runs: Vec::new(),
        verdict: Some(HookVerdict::Deny),
        reason: None,
        by: None,
        updated_input: input,
        updated_input_by: None,
        additional_context: None,
        stop: stop.map(str::to_owned),
    }))
}

fn decided() -> RecordBody {
    let decision = Decision {
        behavior: Behavior::Allow,
        layer: DecisionLayer::Rule,
        rule: None,
        origin: None,
        mode: PermissionMode::Default,
        reason: String::new(),
        considered: Vec::new(),
        answered_by: None,
    };
    RecordBody::Decided(Decided { tool_use_id: "call".to_owned(), tool_name: "Write".to_owned(), decision })
}

fn limits() -> Limits {
    Limits {
        max_turns: None,
        context_window: 100_000,
        max_output_tokens: 1_000,
        permission_mode: PermissionMode::Default,
        exhausted: None,
        option_names: OptionNames::Flags,
    }
}

#[test]
fn the_first_word_about_a_call_counts() {
    let (one, two) = (Some(json!({"n": 1})), Some(json!({"n": 2})));
    let state =
        applied(vec![prompt(), call(), hooked("PreToolUse", one, None), hooked("PreToolUse", two, None)]);
    assert_eq!(state.call("call").unwrap().input, json!({"n": 1}));
    assert!(state.call("call").unwrap().hooked.is_some());
}

#[test]
fn a_word_after_the_decision_changes_no_input() {
    let late = hooked("PreToolUse", Some(json!({"n": 1})), None);
    let state = applied(vec![prompt(), call(), decided(), late]);
    assert_eq!(state.call("call").unwrap().input, json!({"n": 0}));
    assert!(state.call("call").unwrap().hooked.is_none());
}

#[test]
fn other_events_change_no_input() {
    for event in ["PermissionRequest", "PostToolUse", "Stop", "Else"] {
        let state = applied(vec![prompt(), call(), hooked(event, Some(json!({"n": 1})), None)]);
        assert_eq!(state.call("call").unwrap().input, json!({"n": 0}), "{event}");
    }
}

#[test]
fn a_turn_that_a_hook_ends_closes_its_calls_first() {
    let mut state = applied(vec![prompt(), call(), hooked("PreToolUse", None, Some("enough"))]);
    let step = next(&state, &limits());
    assert_eq!(step, Step::Close(vec!["call".to_owned()], CloseReason::Stopped));
    let closing = close(state.call("call").unwrap(), CloseReason::Stopped);
    assert_eq!(closing.outcome, CallOutcome::NotRun);
    state.calls.clear();
    let reason = EndReason::HookStopped("enough".to_owned());
    assert_eq!(next(&state, &limits()), Step::End(reason.clone()));
    let end = turn_end(&state, &limits(), &reason, 0);
    assert_eq!((end.errors, end.error_code), (vec!["enough".to_owned()], Some(48_716)));
}

#[test]
fn blocked_ends_are_counted_for_the_turn() {
    let state = applied(vec![prompt(), hooked("Stop", None, None), hooked("SubagentStop", None, None)]);
    assert_eq!(state.turn.unwrap().stop_blocks, 2);
    let state = applied(vec![prompt(), hooked("Stop", None, None), prompt()]);
    assert_eq!(state.turn.unwrap().stop_blocks, 0, "a new turn counts anew");
    assert!(applied(vec![hooked("Stop", None, Some("x"))]).turn.is_none(), "without a turn nothing happens");
}

#[test]
fn what_somebody_was_asked_about_is_not_changed() {
    let asked = json!({"toolUseId": "call", "toolName": "Write", "decision": {
        "behavior": "ask", "layer": "mode", "mode": "default", "reason": "it writes"}});
    let asked = RecordBody::Asked(Box::new(serde_json::from_value(asked).unwrap()));
    let state = applied(vec![prompt(), call(), asked, hooked("PreToolUse", Some(json!({"n": 1})), None)]);
    assert_eq!(state.call("call").unwrap().input, json!({"n": 0}));
    assert!(state.call("call").unwrap().hooked.is_some(), "what the hooks said besides counts");
}
