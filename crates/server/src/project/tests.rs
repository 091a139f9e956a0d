//! Tests of the projector: what records come to, and that a fold of any prefix continues as the whole would have.

use qoder_testkit::LogBuilder;
use qoder_types::record::{Answered, AskKind, Asked, RecordBody};
use qoder_types::{
    Actor, Behavior, CallOutcome, Decision, DecisionLayer, ModelFailureClass, PermissionMode, Record,
    ReplayClass, ToolResultContent,
};
use serde_json::{Value, json};

use super::{Previews, Projected, Projector};
use crate::model::event::NewEvent;
use crate::model::ids::SessionId;
use crate::model::status::StopReason;
use crate::model::tools;
use crate::model::toolset::Toolset;

fn toolset() -> Toolset {
    let tools = json!([
        { "type": tools::TOOLSET, "configs": [
            { "name": "write", "permission_policy": { "type": "always_ask" } },
            { "name": "Grep", "enabled": false },
        ]},
        { "type": tools::CUSTOM, "name": "get_weather" },
        { "type": tools::MCP_TOOLSET, "mcp_server_name": "mail" },
    ]);
    Toolset::new(&tools::read(&tools).unwrap())
}

fn projector() -> Projector {
    Projector::new(SessionId([5; 16]), toolset(), 0.01)
}

fn decision(behavior: Behavior) -> Decision {
    Decision {
        behavior,
        layer: DecisionLayer::Rule,
        rule: None,
        origin: None,
        mode: PermissionMode::Default,
        reason: "because".to_owned(),
        considered: Vec::new(),
        answered_by: None,
    }
}

fn asked(id: &str, tool: &str, kind: AskKind) -> RecordBody {
    RecordBody::Asked(Box::new(Asked {
        tool_use_id: id.to_owned(),
        tool_name: tool.to_owned(),
        kind,
        decision: decision(Behavior::Ask),
        suggestions: Vec::new(),
    }))
}

fn answered(id: &str) -> RecordBody {
    RecordBody::Answered(Box::new(Answered {
        tool_use_id: id.to_owned(),
        allow: true,
        message: None,
        updated_input: None,
        updated_permissions: Vec::new(),
        interrupt: false,
        result: None,
        by: Actor::Host,
    }))
}

fn project(projector: &mut Projector, records: &[Record]) -> Vec<NewEvent> {
    let mut previews = Previews::default();
    records.iter().flat_map(|record| projector.project(record, &mut previews).events).collect()
}

fn kinds(events: &[NewEvent]) -> Vec<&str> {
    events.iter().map(|event| event.kind).collect()
}

fn body(event: &NewEvent) -> Value {
    serde_json::from_str(&event.body).unwrap()
}

fn call(id: &str, name: &str) -> (String, String, Value) {
    (id.to_owned(), name.to_owned(), json!({ "x": 1 }))
}

/// A reply that calls tools.
fn calling(calls: &[(String, String, Value)]) -> LogBuilder {
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, name, input)| (id.as_str(), name.as_str(), input.clone())).collect();
    LogBuilder::new().prompt("go").model_requested().tool_calls(calls)
}

#[test]
fn a_turn_of_text() {
    let records =
        LogBuilder::new().prompt("hi").model_requested().assistant_text("hello").turn_ended("done").build();
    let mut projector = projector();
    let events = project(&mut projector, &records);
    assert_eq!(kinds(&events), ["span.model_request_start", "agent.message", "span.model_request_end"]);
    assert_eq!(body(&events[1])["content"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!(body(&events[2])["model_request_start_id"], events[0].id.to_string());
    assert_eq!(projector.resting(|_, _| None).unwrap().stop, StopReason::EndTurn);
    assert!(projector.usage().tokens.output_tokens > 0);
}

#[test]
fn calls_show_what_was_evaluated_and_their_results_refer_to_them() {
    let log = calling(&[call("a", "Bash"), call("b", "mcp__mail__send"), call("c", "Grep")])
        .decision("a", "Bash", Behavior::Allow)
        .decision("b", "mcp__mail__send", Behavior::Allow)
        .tool_started("a", "Bash", ReplayClass::Effectful)
        .tool_result("a", "out", CallOutcome::Completed)
        .tool_result("b", "sent", CallOutcome::Completed)
        .tool_result("c", "There is no tool named Grep.", CallOutcome::Completed);
    let events = project(&mut projector(), &log.build());
    let kinds = kinds(&events);
    assert_eq!(
        kinds[2..],
        [
            "agent.tool_use",
            "agent.mcp_tool_use",
            "agent.tool_result",
            "agent.mcp_tool_result",
            "agent.tool_use",
            "agent.tool_result",
        ]
    );
    let (bash, mail, grep) = (body(&events[2]), body(&events[3]), body(&events[6]));
    assert_eq!(bash["evaluated_permission"], "allow");
    assert_eq!(bash["evaluation"], json!({ "type": "always_allow" }));
    assert_eq!((&mail["mcp_server_name"], &mail["name"]), (&json!("mail"), &json!("send")));
    assert_eq!((&grep["evaluated_permission"], grep.get("evaluation")), (&json!("deny"), None));
    assert_eq!(body(&events[4])["tool_use_id"], events[2].id.to_string());
    assert_eq!(body(&events[5])["mcp_tool_use_id"], events[3].id.to_string());
    assert!(!events.iter().any(|event| event.body.contains("\"a\"")), "the runtime's ids stay inside");
}

#[test]
fn asks_and_clients_tools_are_actions_until_all_are_answered() {
    let mut projector = projector();
    let log = calling(&[call("a", "Write"), call("b", "get_weather"), call("c", "Read")])
        .push(asked("a", "Write", AskKind::Permission))
        .push(asked("b", "get_weather", AskKind::External));
    let mut previews = Previews::default();
    let all: Vec<Projected> =
        log.build().iter().map(|record| projector.project(record, &mut previews)).collect();
    let actions: Vec<_> = all.iter().flat_map(|each| &each.actions).collect();
    let found: Vec<_> = actions.iter().map(|action| (action.call_id.as_str(), action.kind)).collect();
    assert_eq!(found, [("a", "ask"), ("b", "custom")]);
    assert_eq!(projector.resting(|_, _| None), None, "the third call is not decided yet");
    let next = LogBuilder::empty().decision("c", "Read", Behavior::Allow).build();
    projector.project(&next[0], &mut previews);
    let ids: Vec<_> = actions.iter().map(|action| action.event).collect();
    assert_eq!(projector.resting(|_, _| None).unwrap().stop, StopReason::requires(&ids));
    projector.project(&LogBuilder::empty().push(answered("a")).build()[0], &mut previews);
    assert_eq!(projector.resting(|_, _| None), None, "an answer is to be decided about");
    let decided = LogBuilder::empty().decision("a", "Write", Behavior::Allow).build();
    assert_eq!(projector.project(&decided[0], &mut previews).events, [], "its event is there already");
    assert_eq!(projector.resting(|_, _| None).unwrap().stop, StopReason::requires(&ids[1..]));
}

#[test]
fn the_result_of_a_clients_tool_is_its_own_event() {
    let log = calling(&[call("b", "get_weather")])
        .push(asked("b", "get_weather", AskKind::External))
        .push(answered("b"))
        .decision("b", "get_weather", Behavior::Allow)
        .tool_result("b", "sunny", CallOutcome::Completed);
    let events = project(&mut projector(), &log.build());
    assert_eq!(kinds(&events)[2..], ["agent.custom_tool_use"]);
    assert_eq!(body(&events[2]), json!({ "name": "get_weather", "input": { "x": 1 } }));
}

#[test]
fn a_failure_closes_the_span_and_ends_the_turn() {
    let log = LogBuilder::new()
        .prompt("hi")
        .model_requested()
        .model_requested()
        .model_failed(ModelFailureClass::Overloaded, "busy");
    let mut projector = projector();
    let events = project(&mut projector, &log.build());
    let expected = [
        "span.model_request_start",
        "span.model_request_end",
        "span.model_request_start",
        "span.model_request_end",
        "session.error",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(body(&events[1])["is_error"], true);
    let error = &body(&events[4])["error"];
    assert_eq!(
        (&error["type"], &error["retry_status"]["type"]),
        (&json!("model_overloaded_error"), &json!("exhausted"))
    );
    assert_eq!(projector.resting(|_, _| None), None);
}

#[test]
fn an_interrupted_turn_does_not_rest_before_its_end() {
    let mut projector = projector();
    let log =
        calling(&[call("a", "Write")]).push(asked("a", "Write", AskKind::Permission)).interrupted("user");
    project(&mut projector, &log.build());
    assert_eq!(projector.resting(|_, _| None), None);
    let events = project(
        &mut projector,
        &LogBuilder::empty().tool_result("a", "not run", CallOutcome::Completed).build(),
    );
    assert_eq!(kinds(&events), ["agent.tool_result"]);
    project(&mut projector, &LogBuilder::empty().turn_ended("done").build());
    assert_eq!(projector.resting(|_, _| None).unwrap().stop, StopReason::EndTurn);
}

#[test]
fn a_queued_input_is_processed_when_its_turn_begins() {
    let id = crate::model::ids::EventId::now();
    let log = LogBuilder::new().input(&id.to_string(), "more");
    let mut projector = projector();
    project(&mut projector, &log.build());
    assert!(projector.is_unfinished() && projector.resting(|_, _| None).is_none());
    let log = LogBuilder::empty().prompt_from_input(&id.to_string(), "more").build();
    let out = projector.project(&log[0], &mut Previews::default());
    assert_eq!((out.processed, out.begins), (vec![id], true));
}

#[test]
fn a_fold_of_any_prefix_continues_as_the_whole_would_have() {
    let records = calling(&[call("a", "Write"), call("b", "get_weather")])
        .push(asked("a", "Write", AskKind::Permission))
        .push(asked("b", "get_weather", AskKind::External))
        .push(answered("a"))
        .decision("a", "Write", Behavior::Allow)
        .push(answered("b"))
        .decision("b", "get_weather", Behavior::Allow)
        .tool_started("a", "Write", ReplayClass::Effectful)
        .tool_result("a", "written", CallOutcome::Completed)
        .tool_result("b", "sunny", CallOutcome::Completed)
        .model_requested()
        .assistant_text("done")
        .turn_ended("done")
        .build();
    // Ids of events that nothing refers to are made when they are stored.
    let stable = |events: &[NewEvent]| -> Vec<(&'static str, Value)> {
        events.iter().map(|event| (event.kind, body(event))).collect()
    };
    let whole = stable(&project(&mut projector(), &records));
    for cut in 0..=records.len() {
        let before = stable(&project(&mut projector(), &records[..cut]));
        let mut later = projector();
        project(&mut later, &records[..cut]);
        let after = stable(&project(&mut later, &records[cut..]));
        assert_eq!([before, after].concat(), whole, "cut after {cut}");
    }
}

#[test]
fn pieces_have_the_id_of_the_event_that_follows_and_a_retry_has_another() {
    let mut previews = Previews::default();
    let text = |previews: &mut Previews, word: &str| {
        previews.take(
            &json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": word } })
            .to_string(),
        )
    };
    let start = |previews: &mut Previews| {
        previews.take(&json!({ "type": "message_start", "message": {} }).to_string());
        let block = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
        assert_eq!(previews.take(&block.to_string()), []);
    };
    start(&mut previews);
    let lost = text(&mut previews, "He");
    start(&mut previews);
    let first = text(&mut previews, "Hel");
    assert_eq!(first.iter().map(|frame| frame.kind).collect::<Vec<_>>(), ["event_start", "event_delta"]);
    assert_ne!(first[0].id, lost[0].id);
    let second = text(&mut previews, "lo");
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].data["delta"]["content"]["text"], "lo");
    assert_eq!(previews.take("nonsense"), []);
    let log = LogBuilder::new().prompt("hi").model_requested().assistant_text("Hello").build();
    let mut projector = projector();
    let events: Vec<NewEvent> =
        log.iter().flat_map(|record| projector.project(record, &mut previews).events).collect();
    let message = events.iter().find(|event| event.kind == "agent.message").unwrap();
    assert_eq!((message.id, message.is_previewed), (first[0].id, true));
}

#[test]
fn results_with_blocks_stay_blocks() {
    let content = ToolResultContent::Blocks(vec![qoder_types::ContentBlock::text("x")]);
    assert_eq!(super::bodies::result_blocks(&content), [json!({ "type": "text", "text": "x" })]);
}
