//! What the front reads of the server's events.

use qoder_protocol::messages::StreamMessage;
use qoder_protocol::{Resolution, SessionEvent, SessionState};
use qoder_types::Actor;
use serde_json::{Value, json};

use super::translate::{Sender, Translator};

fn all(translator: &mut Translator, events: &[Value]) -> Vec<String> {
    let read = events.iter().flat_map(|event| translator.translate(event, Sender::Another));
    read.map(|event| word(&event)).collect()
}

fn word(event: &SessionEvent) -> String {
    match event {
        SessionEvent::Message(message) => match &**message {
            StreamMessage::User(message) if message.is_replay => format!("prompt {}", message.text()),
            StreamMessage::User(_) => "results".to_owned(),
            StreamMessage::Assistant(message) => {
                let kinds: Vec<Value> =
                    message.content().iter().map(|block| json!(block)["type"].clone()).collect();
                format!("reply {}", json!(kinds))
            }
            StreamMessage::Result(result) => {
                format!("result {} {:?}", result.subtype.as_str(), result.errors)
            }
            StreamMessage::System(message) => json!(message)["subtype"].as_str().unwrap().to_owned(),
            StreamMessage::PromptSuggestion(_) => "suggestion".to_owned(),
        },
        SessionEvent::Partial { event, .. } => {
            let event: Value = serde_json::from_str(event).unwrap();
            format!("piece {}", event["type"].as_str().unwrap())
        }
        SessionEvent::Asked(question) => format!("asked {} {}", question.tool_name, question.tool_use_id),
        SessionEvent::Resolved { resolution: Resolution::Answered(answer), .. } => {
            format!("{} by {}", answer.word(), answer.by)
        }
        SessionEvent::Resolved { resolution: Resolution::Withdrawn, .. } => "withdrawn".to_owned(),
        SessionEvent::Ended { problem } => format!("ended {}", problem.as_deref().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

fn ask(id: &str) -> Value {
    json!({ "id": id, "type": "agent.tool_use", "name": "bash", "input": { "command": "ls" },
        "evaluated_permission": "ask" })
}

fn waits(ids: &[&str]) -> Value {
    json!({ "type": "session.status_idle", "stop_reason": { "type": "requires_action", "event_ids": ids } })
}

fn idle(reason: &str) -> Value {
    json!({ "type": "session.status_idle", "stop_reason": { "type": reason } })
}

#[test]
fn a_call_that_waits_is_asked_once_and_answered_by_someone() {
    let mut translator = Translator::new("sess_1", "m");
    let events =
        [json!({ "type": "session.status_running" }), ask("evt_1"), ask("evt_2"), waits(&["evt_1", "evt_2"])];
    let read = all(&mut translator, &events);
    assert_eq!(
        read,
        [
            "session_state_changed",
            "reply [\"tool_use\"]",
            "reply [\"tool_use\"]",
            "asked Bash evt_1",
            "asked Bash evt_2",
            "session_state_changed"
        ]
    );
    assert_eq!((translator.state(), translator.questions().len()), (SessionState::RequiresAction, 2));
    let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": "evt_1", "result": "allow" });
    let ours = Sender::Person(Actor::Named("ana".to_owned()));
    let read: Vec<String> = translator.translate(&answer, ours).iter().map(word).collect();
    assert_eq!(read, ["allow by ana"]);
    // What still waits is not asked again.
    assert_eq!(all(&mut translator, &[waits(&["evt_2"])]), ["session_state_changed"]);
    let deny = json!({ "type": "user.tool_confirmation", "tool_use_id": "evt_2", "result": "deny", "deny_message": "no" });
    assert_eq!(all(&mut translator, std::slice::from_ref(&deny)), ["deny by another client of the server"]);
    assert_eq!(all(&mut translator, &[deny]), [""; 0]);
    assert_eq!(translator.state(), SessionState::Running);
}

#[test]
fn the_end_of_a_turn_says_why_and_takes_questions_back() {
    let mut translator = Translator::new("sess_1", "m");
    let running = json!({ "type": "session.status_running" });
    all(&mut translator, &[running.clone(), ask("evt_1"), waits(&["evt_1"])]);
    let read = all(&mut translator, &[json!({ "type": "user.interrupt" }), idle("end_turn")]);
    assert_eq!(read, ["withdrawn", "result error_during_execution []", "session_state_changed"]);
    let failed = json!({ "type": "session.error", "error": { "message": "overloaded", "retry_status": { "type": "exhausted" } } });
    let read = all(&mut translator, &[running.clone(), failed, idle("retries_exhausted")]);
    assert_eq!(read[1..], ["result error_during_execution [\"overloaded\"]", "session_state_changed"]);
    let read = all(&mut translator, &[running, idle("end_turn")]);
    assert_eq!(read[1..], ["result success []", "session_state_changed"]);
}

#[test]
fn a_queued_message_is_shown_when_its_turn_comes() {
    let mut translator = Translator::new("sess_1", "m");
    let queued = json!({ "id": "evt_9", "type": "user.message", "processed_at": null,
        "content": [{ "type": "text", "text": "and then" }] });
    let read = all(&mut translator, &[json!({ "type": "session.status_running" }), queued.clone()]);
    assert_eq!(read, ["session_state_changed"]);
    let read = all(&mut translator, &[idle("end_turn")]);
    assert_eq!(read, ["result success []", "session_state_changed", "prompt and then"]);
    // A server that goes from one turn to the next without a pause.
    let (asked, called) = (json!({ "type": "span.model_request_start" }), ask("evt_1"));
    let running = json!({ "type": "session.status_running" });
    let read = all(&mut translator, &[running, asked.clone(), queued.clone(), called, asked.clone(), asked]);
    let expected = ["result success []", "prompt and then", "session_state_changed"];
    assert_eq!(read[read.len() - 3..], expected, "{read:?}");
    all(&mut translator, &[idle("end_turn")]);
    // With nothing to wait for, it is shown at once.
    assert_eq!(all(&mut translator, &[queued]), ["prompt and then"]);
}

#[test]
fn previews_become_pieces_and_the_whole_reply_follows() {
    let mut translator = Translator::new("sess_1", "m");
    let delta = |text: &str| {
        json!({ "type": "event_delta", "event_id": "evt_1",
            "delta": { "type": "content_delta", "index": 0, "content": { "type": "text", "text": text } } })
    };
    let start = json!({ "type": "event_start", "event": { "id": "evt_1", "type": "agent.message" } });
    let whole =
        json!({ "id": "evt_1", "type": "agent.message", "content": [{ "type": "text", "text": "Hello" }] });
    assert_eq!(
        all(&mut translator, &[start, delta("Hel"), delta("lo"), whole]),
        [
            "piece message_start",
            "piece content_block_start",
            "piece content_block_delta",
            "piece content_block_delta",
            "reply [\"text\"]"
        ]
    );
}

#[test]
fn calls_of_clients_and_of_threads_are_not_calls_of_the_conversation() {
    let mut translator = Translator::new("sess_1", "m");
    let custom = json!({ "id": "evt_1", "type": "agent.custom_tool_use", "name": "weather", "input": {} });
    assert_eq!(
        all(&mut translator, &[custom, waits(&["evt_1"])]),
        ["reply [\"tool_use\"]", "notice", "session_state_changed"]
    );
    let result = json!({ "id": "evt_2", "type": "user.custom_tool_result", "custom_tool_use_id": "evt_1",
        "content": [{ "type": "text", "text": "sunny" }] });
    assert!(all(&mut translator, &[result]).contains(&"results".to_owned()));
    let mut posted = ask("evt_3");
    posted["session_thread_id"] = json!("sthr_1");
    assert_eq!(
        all(&mut translator, &[posted, waits(&["evt_3"])]),
        ["asked Bash evt_3", "session_state_changed"]
    );
    assert_eq!(translator.questions()[0].agent_id.as_deref(), Some("sthr_1"));
}

#[test]
fn unknown_and_mistyped_events_are_passed_over() {
    let mut translator = Translator::new("sess_1", "m");
    for event in [
        json!({}),
        json!(null),
        json!({ "type": 7 }),
        json!({ "type": "workflow_run.created" }),
        json!({ "type": "agent.tool_use" }),
        json!({ "type": "session.status_idle", "stop_reason": { "type": "requires_action", "event_ids": [1, null] } }),
        json!({ "type": "event_delta", "delta": 3 }),
        json!({ "type": "user.message", "content": 4 }),
    ] {
        translator.translate(&event, Sender::Another);
    }
    let deleted = json!({ "type": "session.deleted" });
    assert_eq!(all(&mut translator, &[deleted]), ["ended the session was deleted"]);
}
