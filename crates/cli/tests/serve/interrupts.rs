//! Stopping a turn, and messages while one runs, in both dialects.

use std::time::Duration;

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, confirm, custom, id, kind, message, pending, result_text, toolset};

/// A model that is slow at first.
fn slow() -> Server {
    Server::scripted(Script::by(|request, _| match qoder_testkit::assistant_count(request) {
        0 => {
            let said = request["messages"].as_array().map_or(0, Vec::len);
            let late = Reply::SlowFirstByte { ms: 20_000, reply: Box::new(Reply::text("late")) };
            if said > 1 { Reply::text("at once") } else { late }
        }
        _ => Reply::text("later"),
    }))
}

fn interrupt() -> Value {
    json!({ "type": "user.interrupt" })
}

#[test]
fn an_interrupt_ends_the_turn_while_the_model_speaks() {
    let server = slow();
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    assert_eq!(server.status(&session), "running");
    server.send(&session, &json!([interrupt()])).ok();
    let end = stream.until("span.model_request_end");
    assert_eq!(end["is_error"], true);
    assert_eq!(stream.until("session.status_idle")["stop_reason"], json!({ "type": "end_turn" }));
    assert_eq!(server.ask(&session, "again")["stop_reason"]["type"], "end_turn", "the session stays usable");
}

#[test]
fn an_interrupt_ends_a_command_and_its_call_has_a_result() {
    let server = Server::replying(vec![bash("touch begun; sleep 60; touch ended"), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[])]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until("agent.tool_use");
    let begun = server.workspace(&session).join("begun");
    while !begun.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    server.send(&session, &json!([interrupt()])).ok();
    let result = stream.until("agent.tool_result");
    assert_eq!(result["is_error"], true, "{result}");
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    assert!(!server.workspace(&session).join("ended").exists());
}

#[test]
fn an_interrupt_closes_pending_actions() {
    let server = Server::replying(vec![bash("touch made"), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[("Bash", "always_ask")]), custom("weather")]));
    let ids = pending(&server.ask(&session, "go"));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([interrupt()])).ok();
    let result = stream.until("agent.tool_result");
    assert!(result["is_error"] == true && !result_text(&result).is_empty(), "{result}");
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
    server.send(&session, &json!([confirm(&ids[0], "allow")])).error(409);
    assert!(!server.workspace(&session).join("made").exists());
}

#[test]
fn an_interrupt_of_an_idle_session_is_stored_and_changes_nothing() {
    let server = Server::replying(vec![Reply::text("one"), Reply::text("two")]);
    let session = server.session(&json!([]));
    server.send(&session, &json!([interrupt()])).ok();
    assert_eq!(server.kinds(&session), ["user.interrupt"]);
    assert_eq!(server.status(&session), "idle");
    server.ask(&session, "go");
    server.send(&session, &json!([interrupt()])).ok();
    assert_eq!(server.kinds(&session).last().unwrap(), "user.interrupt");
    assert_eq!(server.ask(&session, "again")["stop_reason"]["type"], "end_turn");
}

#[test]
fn a_cancel_is_accepted_while_a_turn_runs_and_does_nothing_otherwise() {
    let server = slow();
    let session = server.session(&json!([]));
    let path = format!("/api/v1/cloud/sessions/{session}/cancel");
    let nothing = server.post(&path, &json!({}));
    assert_eq!(nothing.status, 200);
    assert_eq!(nothing.json(), json!({ "id": session, "type": "session", "status": "idle" }));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    let cancelled = server.request("POST", &path, &[], b"");
    assert_eq!(cancelled.status, 202);
    assert_eq!(cancelled.json()["status"], "canceling");
    assert_eq!(stream.until("session.status_idle")["stop_reason"]["type"], "end_turn");
}

#[test]
fn a_message_while_a_turn_runs_is_a_conflict_for_qoder_and_queued_for_claude() {
    let server = slow();
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    let refused = server.send(&session, &json!([message("more")]));
    refused.error(409);
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    let path = format!("/v1/sessions/{session}/events");
    let queued = server.claude("POST", &path, &json!({ "events": [message("more")] })).ok();
    assert_eq!(queued["data"][0]["processed_at"], Value::Null);
    server.send(&session, &json!([interrupt()])).ok();
    let idle = stream.until("session.status_idle");
    assert_eq!(idle["stop_reason"]["type"], "end_turn");
    let events = server.events(&session);
    let queued = events.iter().find(|event| event["id"] == queued["data"][0]["id"]).unwrap();
    assert!(queued["processed_at"].is_string(), "it had its turn: {queued}");
    assert!(events.iter().any(|event| kind(event) == "agent.message"), "{:?}", server.kinds(&session));
}

#[test]
fn an_interrupt_and_a_message_in_one_request_redirect_the_agent() {
    let server = slow();
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until("span.model_request_start");
    server.send(&session, &json!([interrupt(), message("something else")])).ok();
    let idle = stream.until("session.status_idle");
    assert_eq!(idle["stop_reason"]["type"], "end_turn");
    let said = stream.seen.iter().find(|event| kind(event) == "agent.message").unwrap();
    assert_eq!(said["content"][0]["text"], "at once");
    assert_eq!(id(&idle), id(server.events(&session).last().unwrap()));
}

#[test]
fn words_of_the_operator_reach_the_model_before_the_next_message_and_open_no_turn() {
    let server = Server::replying(vec![Reply::text("ok")]);
    let session = server.session(&json!([]));
    let system = json!({ "type": "system.message", "content": [{ "type": "text", "text": "be brief" }] });
    server.send(&session, &json!([system])).ok();
    assert_eq!(server.status(&session), "idle");
    assert_eq!(server.model.as_ref().unwrap().requests().len(), 0);
    server.ask(&session, "/clear is just text");
    let request = server.model.as_ref().unwrap().requests().last().unwrap().json().to_string();
    assert!(request.contains("be brief") && request.contains("/clear is just text"), "{request}");
    let events = server.events(&session);
    assert!(events[0]["processed_at"].is_string(), "{}", events[0]);
}
