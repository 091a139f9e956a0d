//! `kill -9` after every single event of a turn: at the next start the turn continues by itself, nothing is lost, no effect happens
//! twice, and what a subscriber saw is a prefix of the log for ever.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use super::support::{Server, bash, confirm, custom, id, kind, message, result, toolset};

/// A turn with a command that leaves a mark, a call of the client and a call that is asked about.
fn replies() -> Vec<Reply> {
    vec![
        bash("echo effect >> effects.txt"),
        Reply::ToolCalls(vec![
            ("weather".to_owned(), json!({ "city": "Oslo" })),
            ("Write".to_owned(), json!({ "file_path": "w.txt", "content": "x" })),
        ]),
        Reply::text("done"),
    ]
}

/// Reads events and answers what waits, until the turn has ended or so many events were read. Events that were read before are
/// compared with those that come.
fn follow(server: &Server, session: &str, seen: &mut Vec<Value>, most: usize) -> bool {
    let last = seen.last().map(id);
    let mut stream = server.stream(session, last.as_deref());
    while seen.len() < most {
        let event = stream.next().expect("the stream stays open");
        seen.push(event.clone());
        match kind(&event).as_str() {
            "agent.custom_tool_use" => {
                drop(server.send(session, &json!([result(&id(&event), "sunny")])).ok())
            }
            "agent.tool_use" if event["evaluated_permission"] == "ask" => {
                server.send(session, &json!([confirm(&id(&event), "allow")])).ok();
            }
            "session.status_idle" if event["stop_reason"]["type"] == "end_turn" => return true,
            _ => {}
        }
    }
    false
}

/// Answers what still waits after a restart, because the answer was not sent before the kill.
fn answer_what_waits(server: &Server, session: &str, seen: &[Value]) {
    let events = server.events(session);
    for event in &events {
        let answered = |key: &str| events.iter().any(|other| other[key] == event["id"]);
        match kind(event).as_str() {
            "agent.custom_tool_use" if !answered("custom_tool_use_id") && seen.contains(event) => {
                server.send(session, &json!([result(&id(event), "sunny")])).ok();
            }
            "agent.tool_use"
                if event["evaluated_permission"] == "ask"
                    && seen.contains(event)
                    && !events.iter().any(|other| {
                        kind(other) == "user.tool_confirmation" && other["tool_use_id"] == event["id"]
                    }) =>
            {
                server.send(session, &json!([confirm(&id(event), "allow")])).ok();
            }
            _ => {}
        }
    }
}

#[test]
fn a_turn_continues_by_itself_after_a_kill_behind_any_event() {
    let mut server = Server::replying(replies());
    let tools = json!([toolset(&[("Write", "always_ask")]), custom("weather")]);
    let agent = server.agent(&tools);
    let environment = server.environment();
    let mut cut = 1;
    loop {
        let body = json!({ "agent": agent, "environment_id": environment });
        let session = id(&server.post("/v1/sessions", &body).ok());
        let sent = server.send(&session, &json!([message("go")])).ok();
        let mut seen = vec![sent["data"][0].clone()];
        if follow(&server, &session, &mut seen, cut) {
            break;
        }
        server.kill();
        server.start_again();
        answer_what_waits(&server, &session, &seen);
        let before = seen.len();
        assert!(follow(&server, &session, &mut seen, usize::MAX), "cut after {cut}");
        check(&server, &session, &seen, before, cut);
        cut += 1;
    }
    assert!(cut > 15, "the turn has {cut} events");
}

fn check(server: &Server, session: &str, seen: &[Value], before: usize, cut: usize) {
    let stored = server.events(session);
    let ids = |events: &[Value]| events.iter().map(id).collect::<Vec<_>>();
    // The last event of the turn may be followed by one about the answer that crossed it.
    assert_eq!(
        ids(seen),
        ids(&stored)[..seen.len()],
        "cut after {cut}: without gap or repeat, before {before}"
    );
    let of = |wanted: &str| stored.iter().filter(|event| kind(event) == wanted).collect::<Vec<_>>();
    assert_eq!(of("user.message").len(), 1, "cut after {cut}");
    assert_eq!(of("agent.message").len(), 1, "cut after {cut}");
    assert_eq!(of("agent.custom_tool_use").len(), 1, "cut after {cut}");
    let uses = of("agent.tool_use");
    assert_eq!(uses.len(), 2, "cut after {cut}");
    for call in uses {
        let results = of("agent.tool_result");
        let own: Vec<_> = results.iter().filter(|result| result["tool_use_id"] == call["id"]).collect();
        assert_eq!(own.len(), 1, "cut after {cut}: one result a call");
    }
    let effects = std::fs::read_to_string(server.workspace(session).join("effects.txt")).unwrap_or_default();
    assert!(effects.lines().count() <= 1, "cut after {cut}: no effect happens twice");
    let starts = of("span.model_request_start");
    let ends = of("span.model_request_end");
    assert_eq!(starts.len(), ends.len(), "cut after {cut}: every span is closed");
    let last = stored.iter().rev().find(|event| kind(event).starts_with("session.status")).unwrap();
    assert_eq!(last["stop_reason"]["type"], "end_turn", "cut after {cut}");
    assert_eq!(server.status(session), "idle");
}

#[test]
fn parked_sessions_cost_nothing_and_are_answered_after_a_kill() {
    let mut server = Server::replying(vec![Reply::tool("weather", json!({})), Reply::text("ok")]);
    let session = server.session(&json!([custom("weather")]));
    let asked = super::support::pending(&server.ask(&session, "weather?"));
    server.kill();
    server.start_again();
    assert_eq!(server.status(&session), "idle", "nothing is rescheduled that only waits");
    let before = server.events(&session);
    assert!(!before.iter().any(|event| kind(event) == "session.status_rescheduled"));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([result(&asked[0], "rain")])).ok();
    stream.until_end_of_turn();
}

#[test]
fn accepted_inputs_survive_a_kill_right_after_the_answer() {
    let mut server = Server::replying(vec![Reply::text("one"), Reply::text("two")]);
    let sessions: Vec<String> = (0..5).map(|_| server.session(&json!([]))).collect();
    for session in &sessions {
        server.send(session, &json!([message("go")])).ok();
    }
    server.kill();
    server.start_again();
    for session in &sessions {
        let first = id(&server.events(session)[0]);
        let mut stream = server.stream(session, Some(&first));
        stream.until_end_of_turn();
        assert_eq!(server.kinds(session).iter().filter(|kind| *kind == "agent.message").count(), 1);
    }
}
