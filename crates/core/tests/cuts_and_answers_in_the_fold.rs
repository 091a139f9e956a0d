//! What the fold makes of a cut and of answers in a shape: the conversation is shorter, what was spent stays, and a turn
//! ends by its answer or by too many attempts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use qoder_core::next::{EndReason, turn_end};
use qoder_core::structured::{MOST_ATTEMPTS, STRUCTURED_OUTPUT};
use qoder_core::{Exhausted, Limits, OptionNames, State, Step, next};
use qoder_types::record::{AssistantEntry, Cut, Epoch, RecordBody, TurnSubtype, UserEntry, UserOrigin};
use qoder_types::{ContentBlock, PermissionMode, Record, ToolDefinition};
use serde_json::{Value, json};

fn apply(state: &mut State, body: RecordBody) {
    state.apply(&Record { seq: state.last_seq + 1, timestamp: String::new(), body });
}

fn user(uuid: &str, origin: UserOrigin, content: &Value, more: &Value) -> RecordBody {
    let mut entry = json!({ "uuid": uuid, "parentUuid": null, "origin": origin,
        "message": { "role": "user", "content": content } });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let entry: UserEntry = serde_json::from_str(&entry.to_string()).unwrap();
    RecordBody::User(Box::new(entry))
}

fn prompt(uuid: &str) -> RecordBody {
    user(uuid, UserOrigin::Prompt, &json!(uuid), &json!({}))
}

fn reply(uuid: &str, content: &Value) -> RecordBody {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let message = json!({ "content": content, "model": "m", "usage": usage, "stop_reason": "end_turn" });
    let entry = json!({ "uuid": uuid, "parentUuid": null, "message": message, "costUSD": 1.0 });
    let entry: AssistantEntry = serde_json::from_str(&entry.to_string()).unwrap();
    RecordBody::Assistant(Box::new(entry))
}

fn said(uuid: &str) -> RecordBody {
    reply(uuid, &json!([{ "type": "text", "text": uuid }]))
}

fn called(uuid: &str, tool: &str, ids: &[&str]) -> RecordBody {
    let call = |id: &&str| json!({ "type": "tool_use", "id": id, "name": tool, "input": { "n": 1 } });
    reply(uuid, &Value::Array(ids.iter().map(call).collect()))
}

fn result(uuid: &str, id: &str, outcome: &str, output: &Value) -> RecordBody {
    let block = json!([{ "type": "tool_result", "tool_use_id": id, "content": uuid }]);
    user(uuid, UserOrigin::ToolResult, &block, &json!({ "outcome": outcome, "toolUseResult": output }))
}

fn cut(at: &str, messages: u64, results: Vec<ContentBlock>) -> RecordBody {
    RecordBody::Cut(Box::new(Cut { at: Some(at.to_owned()), messages, results, by: "test".into() }))
}

fn shaped() -> RecordBody {
    let tool = ToolDefinition {
        name: STRUCTURED_OUTPUT.to_owned(),
        description: "".into(),
        input_schema: json!({}).into(),
    };
    RecordBody::Epoch(Epoch {
        number: 1,
        reason: String::new(),
        model: "m".to_owned(),
        system: vec!["four".to_owned()],
        tools: vec![tool],
        source: String::new(),
    })
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
fn a_cut_shortens_the_conversation_and_forgets_no_costs() {
    let mut state = State::default();
    for body in [shaped(), prompt("one"), said("a"), prompt("two"), said("b"), cut("a", 2, Vec::new())] {
        apply(&mut state, body);
    }
    assert_eq!((state.prompt.len(), state.leaf.as_deref()), (2, Some("a")));
    assert_eq!((state.turn.is_none(), state.last_turn.is_none(), state.calls.len()), (true, true, 0));
    assert!((state.total_cost_usd - 2.0).abs() < f64::EPSILON);
    // "four", "one" and "a" again, with nothing that the provider counted.
    let context = &state.context;
    assert_eq!((context.system_bytes, context.total_bytes, context.reported, context.replies), (4, 4, 0, 1));
    assert_eq!(context.tokens(), 2);
    assert_eq!(
        state.epoch.as_ref().unwrap().number,
        2,
        "what the model sees is no longer what it saw, and more"
    );
    assert_eq!(next(&state, &limits()), Step::Idle);
}

#[test]
fn a_cut_within_a_batch_leaves_its_other_calls_open() {
    let mut state = State::default();
    for body in [prompt("one"), called("a", "Read", &["x", "y"]), result("r", "x", "completed", &json!({}))] {
        apply(&mut state, body);
    }
    let kept: Vec<ContentBlock> = state.calls.iter().filter_map(|call| call.result.clone()).collect();
    let messages = state.prompt.len() as u64;
    for body in [result("s", "y", "completed", &json!({})), said("b"), cut("r", messages, kept)] {
        apply(&mut state, body);
    }
    let open: Vec<&str> = state.open_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(open, ["y"]);
    apply(&mut state, result("t", "y", "unknown", &json!({})));
    assert_eq!((state.prompt.len(), state.calls.len()), (3, 0), "both results are one message");
}

#[test]
fn a_cut_of_another_conversation_changes_nothing() {
    let mut state = State::default();
    for body in [prompt("one"), said("a"), cut("z", 9, Vec::new())] {
        apply(&mut state, body);
    }
    assert_eq!((state.prompt.len(), state.leaf.as_deref(), state.turn.is_some()), (2, Some("a"), true));
}

#[test]
fn an_answer_ends_the_turn_unless_something_is_said_after_it() {
    let mut state = State::default();
    let answer = json!({ "n": 1 });
    for body in [shaped(), prompt("one"), called("a", STRUCTURED_OUTPUT, &["x"])] {
        apply(&mut state, body);
    }
    apply(&mut state, result("r", "x", "completed", &answer));
    assert_eq!(next(&state, &limits()), Step::End(EndReason::Completed));
    let end = turn_end(&state, &limits(), &EndReason::Completed, 0);
    assert_eq!((end.structured_output, end.result.as_deref()), (Some(answer.clone()), Some("{\"n\":1}")));
    apply(&mut state, user("n", UserOrigin::Notice, &json!("continue"), &json!({})));
    assert_eq!(next(&state, &limits()), Step::CallModel);
    apply(&mut state, said("b"));
    assert_eq!(next(&state, &limits()), Step::End(EndReason::Completed), "the answer still stands");
    let end = turn_end(&state, &limits(), &EndReason::Completed, 0);
    assert_eq!((end.structured_output, end.result.as_deref()), (Some(answer), Some("b")));
}

#[test]
fn attempts_are_counted_whatever_they_were() {
    let mut state = State::default();
    apply(&mut state, shaped());
    apply(&mut state, prompt("one"));
    for attempt in 0..MOST_ATTEMPTS {
        let id = format!("call-{attempt}");
        if attempt % 2 == 0 {
            apply(&mut state, called(&format!("a{attempt}"), STRUCTURED_OUTPUT, &[&id]));
            apply(&mut state, result(&format!("r{attempt}"), &id, "failed", &json!({})));
        } else {
            apply(&mut state, said(&format!("a{attempt}")));
            if attempt + 1 < MOST_ATTEMPTS {
                assert!(matches!(next(&state, &limits()), Step::Notice(_)));
                apply(&mut state, user(&id, UserOrigin::Notice, &json!("again"), &json!({})));
            }
        }
    }
    assert_eq!(next(&state, &limits()), Step::End(EndReason::NoStructuredOutput));
    let end = turn_end(&state, &limits(), &EndReason::NoStructuredOutput, 0);
    assert_eq!((end.subtype, end.result), (TurnSubtype::ErrorMaxStructuredOutputRetries, None));
}

#[test]
fn what_is_spent_stops_the_next_call_and_no_end() {
    let spent = Limits { exhausted: Some(Exhausted::Money("1".to_owned())), ..limits() };
    let mut state = State::default();
    apply(&mut state, prompt("one"));
    let ended = Step::End(EndReason::Exhausted(Exhausted::Money("1".to_owned())));
    assert_eq!(next(&state, &spent), ended);
    apply(&mut state, said("a"));
    assert_eq!(next(&state, &spent), Step::End(EndReason::Completed));
}

#[test]
fn a_cut_finds_the_results_of_calls_whose_id_came_again() {
    let mut state = State::default();
    apply(&mut state, prompt("first"));
    apply(&mut state, called("a1", "Bash", &["call_0"]));
    apply(&mut state, result("r1", "call_0", "completed", &Value::Null));
    apply(&mut state, called("a2", "Bash", &["call_0"]));
    let ids = |state: &State| -> Vec<String> {
        let text = json!(state.prompt.iter().map(|message| &message.message).collect::<Vec<_>>()).to_string();
        let named = text.split("\"id\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        named.collect()
    };
    assert_eq!(ids(&state), ["call_0", "call_0_2"]);
    assert_eq!(state.calls[0].id, "call_0", "records know it by the id that it was given");
    let kept: ContentBlock =
        serde_json::from_value(json!({ "type": "tool_result", "tool_use_id": "call_0", "content": "kept" }))
            .unwrap();
    apply(&mut state, cut("a2", 4, vec![kept]));
    assert!(state.calls[0].result.is_some());
    apply(&mut state, prompt("second"));
    assert_eq!(ids(&state), ["call_0", "call_0_2"]);
}
