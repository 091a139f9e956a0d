//! Outcomes: a session works, is graded against a rubric and revises, until it is satisfied, stopped, or out of iterations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_testkit::{Reply, Script, assistant_count};
use serde_json::{Value, json};

use super::support::{Cluster, Server, id, kind};

/// What a model answers that writes these, and that grades as `grade` says of what it reads.
fn answer(texts: &[&str], grade: impl Fn(&str) -> Reply, request: &Value) -> Reply {
    if request["system"].to_string().contains("You grade the work") {
        return grade(&request["messages"].to_string());
    }
    Reply::text(*texts.get(assistant_count(request)).unwrap_or(&"nothing is left"))
}

/// Such a model.
fn working(texts: &'static [&'static str], grade: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Script {
    Script::by(move |request, _| answer(texts, &grade, request))
}

fn verdict(result: &str, explanation: &str) -> Reply {
    Reply::text(json!({ "result": result, "explanation": explanation }).to_string())
}

fn outcome(max_iterations: u64) -> Value {
    json!({ "type": "user.define_outcome", "description": "Write a report.", "max_iterations": max_iterations,
        "rubric": { "type": "text", "content": "It has a title." } })
}

/// What the session says about its outcomes.
fn evaluations(server: &Server, session: &str) -> Vec<Value> {
    let session = server.get(&format!("/v1/sessions/{session}")).ok();
    session["outcome_evaluations"].as_array().unwrap().clone()
}

fn find(events: &[Value], wanted: &str) -> Vec<Value> {
    events.iter().filter(|event| kind(event) == wanted).cloned().collect()
}

fn is_revised(server: &Server) {
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    let sent = server.send(&session, &json!([outcome(3)])).ok();
    let defined = &sent["data"][0];
    assert_eq!(defined["rubric"], json!({ "type": "text", "content": "It has a title." }));
    assert!(defined["processed_at"].is_string(), "{defined}");
    stream.until_end_of_turn();
    let events = server.events(&session);
    let (starts, ends) =
        (find(&events, "span.outcome_evaluation_start"), find(&events, "span.outcome_evaluation_end"));
    let seen: Vec<_> = ends.iter().map(|end| (end["iteration"].clone(), end["result"].clone())).collect();
    assert_eq!(seen, [(json!(0), json!("needs_revision")), (json!(1), json!("satisfied"))]);
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(end["outcome_evaluation_start_id"], start["id"]);
        assert_eq!(end["outcome_id"], defined["outcome_id"]);
        assert!(end["usage"]["input_tokens"].as_u64().unwrap() > 0, "{end}");
    }
    let kinds: Vec<String> = events.iter().map(kind).filter(|kind| !kind.starts_with("span.model")).collect();
    assert_eq!(
        kinds,
        [
            "user.define_outcome",
            "session.status_running",
            "agent.message",
            "span.outcome_evaluation_start",
            "span.outcome_evaluation_end",
            "agent.message",
            "span.outcome_evaluation_start",
            "span.outcome_evaluation_end",
            "session.status_idle",
        ]
    );
    let evaluation = evaluations(server, &session).remove(0);
    assert_eq!((&evaluation["result"], &evaluation["iteration"]), (&json!("satisfied"), &json!(1)));
    assert_eq!(
        (&evaluation["type"], &evaluation["explanation"]),
        (&json!("outcome_evaluation"), &json!("fine"))
    );
    assert!(evaluation["completed_at"].is_string() && evaluation.get("rubric").is_none(), "{evaluation}");
    server.ask(&session, "thanks");
    assert_eq!(evaluations(server, &session).len(), 1, "a later turn is not graded");
    assert_eq!(find(&server.events(&session), "span.outcome_evaluation_start").len(), 2);
}

fn until_titled(work: &str) -> Reply {
    if work.contains("# A title") {
        verdict("satisfied", "fine")
    } else {
        verdict("needs_revision", "no title")
    }
}

#[test]
fn work_is_revised_until_the_grader_is_satisfied() {
    is_revised(&Server::scripted(working(&["some words", "# A title"], until_titled)));
}

#[test]
fn so_it_is_on_postgres() {
    let cluster = Cluster::start(1, Some(working(&["some words", "# A title"], until_titled)));
    is_revised(&cluster.nodes[0]);
}

#[test]
fn the_last_iteration_is_followed_by_one_more_turn() {
    let server =
        Server::scripted(working(&["one", "two", "I gave up"], |_| verdict("needs_revision", "no title")));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([outcome(2)])).ok();
    stream.until_end_of_turn();
    let events = server.events(&session);
    let results: Vec<Value> =
        find(&events, "span.outcome_evaluation_end").iter().map(|end| end["result"].clone()).collect();
    assert_eq!(results, ["needs_revision", "max_iterations_reached"]);
    let last = find(&events, "agent.message").pop().unwrap();
    assert_eq!(last["content"][0]["text"], "I gave up");
    assert_eq!(evaluations(&server, &session)[0]["result"], "max_iterations_reached");
    server.send(&session, &json!([outcome(1)])).ok();
}

#[test]
fn an_interrupt_ends_the_evaluation_and_the_outcome() {
    let late = |_: &str| Reply::SlowFirstByte { ms: 120_000, reply: Box::new(verdict("satisfied", "late")) };
    let server = Server::scripted(working(&["words"], late));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([outcome(3)])).ok();
    stream.until("span.outcome_evaluation_start");
    assert_eq!(
        (server.status(&session), &evaluations(&server, &session)[0]["result"]),
        ("running".to_owned(), &json!("evaluating"))
    );
    let refused =
        server.claude("POST", &format!("/v1/sessions/{session}/events"), &json!({ "events": [outcome(1)] }));
    assert!(refused.error(409).1.contains("works towards an outcome"));
    server.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    assert_eq!(stream.until("span.outcome_evaluation_end")["result"], "interrupted");
    stream.until_end_of_turn();
    let evaluation = evaluations(&server, &session).remove(0);
    assert_eq!(
        (&evaluation["result"], evaluation["completed_at"].is_string()),
        (&json!("interrupted"), true)
    );
}

#[test]
fn a_killed_server_grades_again_and_reports_it_once() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let mut server = Server::scripted(working(&["words"], move |_| {
        let fine = verdict("satisfied", "fine");
        if slow.load(Ordering::SeqCst) {
            Reply::SlowFirstByte { ms: 120_000, reply: Box::new(fine) }
        } else {
            fine
        }
    }));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([outcome(3)])).ok();
    let start = stream.until("span.outcome_evaluation_start");
    server.kill();
    is_slow.store(false, Ordering::SeqCst);
    server.start_again();
    let mut stream = server.stream(&session, Some(&id(&start)));
    let end = stream.until("span.outcome_evaluation_end");
    assert_eq!((&end["result"], &end["outcome_evaluation_start_id"]), (&json!("satisfied"), &start["id"]));
    stream.until_end_of_turn();
    let events = server.events(&session);
    assert_eq!(find(&events, "span.outcome_evaluation_start").len(), 1);
    assert_eq!(find(&events, "agent.message").len(), 1, "the work is not repeated");
}

#[test]
fn a_session_begins_with_an_outcome_and_what_is_wrong_is_named() {
    let server = Server::scripted(working(&["words"], |_| Reply::text("I cannot say.")));
    let body = json!({ "agent": server.agent(&json!([])), "environment_id": server.environment(),
        "initial_events": [outcome(3)] });
    let session = id(&server.post("/v1/sessions", &body).ok());
    let mut stream = server.stream(&session, Some(&id(&server.events(&session)[0])));
    stream.until_end_of_turn();
    let evaluation = evaluations(&server, &session).remove(0);
    assert_eq!(evaluation["result"], "failed", "what the grader says cannot be read");
    for (field, value, named) in [
        ("rubric", json!({ "type": "file", "file_id": "file_1" }), "rubric.file_id"),
        ("max_iterations", json!(21), "max_iterations"),
        ("description", json!(""), "description"),
    ] {
        let mut event = outcome(3);
        event[field] = value;
        let refused = server.send(&session, &json!([event]));
        assert!(refused.error(400).1.contains(named), "{named}");
    }
    assert_eq!(kind(&server.ask(&session, "hello")), "session.status_idle");
}

#[test]
fn an_interrupt_while_it_works_ends_the_outcome_without_an_evaluation() {
    let server = Server::scripted(Script::by(|_, _| Reply::SlowFirstByte {
        ms: 120_000,
        reply: Box::new(Reply::text("late")),
    }));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([outcome(3)])).ok();
    stream.until("span.model_request_start");
    server.send(&session, &json!([{ "type": "user.interrupt" }])).ok();
    stream.until_end_of_turn();
    assert_eq!(evaluations(&server, &session)[0]["result"], "interrupted");
    assert!(find(&server.events(&session), "span.outcome_evaluation_end").is_empty());
}

#[test]
fn a_killed_server_continues_a_revision() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let mut server = Server::scripted(Script::by(move |request, _| {
        let is_revision = assistant_count(request) == 1;
        match answer(&["some words", "# A title"], until_titled, request) {
            reply if is_revision && slow.load(Ordering::SeqCst) => {
                Reply::SlowFirstByte { ms: 120_000, reply: Box::new(reply) }
            }
            reply => reply,
        }
    }));
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([outcome(3)])).ok();
    stream.until("span.outcome_evaluation_end");
    let again = stream.until("span.model_request_start");
    server.kill();
    is_slow.store(false, Ordering::SeqCst);
    server.start_again();
    server.stream(&session, Some(&id(&again))).until_end_of_turn();
    let events = server.events(&session);
    let ends: Vec<_> = find(&events, "span.outcome_evaluation_end");
    assert_eq!(
        ends.iter().map(|end| end["result"].clone()).collect::<Vec<_>>(),
        ["needs_revision", "satisfied"]
    );
    assert_eq!(find(&events, "agent.message").len(), 2, "the session reads once that it has to revise");
}

#[test]
fn a_deployment_has_an_outcome_whose_rubric_is_a_file() {
    let server = Server::scripted(working(&["# A title"], |work| {
        let knows = work.contains("The title is short.");
        verdict(if knows { "satisfied" } else { "failed" }, "read")
    }));
    let body = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"rubric.md\"\r\n\r\nThe title is short.\r\n--b--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let file = id(&server.request("POST", "/v1/files", &headers, body.as_bytes()).ok());
    let mut event = outcome(1);
    event["rubric"] = json!({ "type": "file", "file_id": file });
    let body = json!({ "name": "nightly", "agent": server.agent(&json!([])), "environment_id": server.environment(),
        "initial_events": [event] });
    let deployment = id(&server.post("/v1/deployments", &body).ok());
    let run = server.post(&format!("/v1/deployments/{deployment}/run"), &json!({})).ok();
    let session = run["session_id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    let events = server.events(&session);
    assert_eq!(events[0]["rubric"], json!({ "type": "file", "file_id": file }));
    server.stream(&session, Some(&id(&events[0]))).until_end_of_turn();
    assert_eq!(evaluations(&server, &session)[0]["result"], "satisfied");
}
