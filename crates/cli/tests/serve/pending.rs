//! Pending actions: answered by the id of their event, in any order, once; never by time; across restarts.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, confirm, custom, id, kind, message, pending, result, toolset};

fn two_asks() -> Server {
    let calls = Reply::ToolCalls(vec![
        ("Bash".to_owned(), json!({ "command": "echo 1 >> out.txt" })),
        ("Bash".to_owned(), json!({ "command": "echo 2 >> out.txt" })),
    ]);
    Server::replying(vec![calls, Reply::text("done")])
}

fn asking() -> Value {
    json!([toolset(&[("Bash", "always_ask")]), custom("weather")])
}

#[test]
fn wrong_repeated_foreign_and_late_answers_are_refused_and_change_nothing() {
    let server = two_asks();
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    let other = server.session(&asking());
    let foreign = pending(&server.ask(&other, "go"));
    let before = server.events(&session);
    for (events, status) in [
        (json!([confirm("evt_00000000000070008000000000000000", "allow")]), 400),
        (json!([confirm("toolu_0123", "allow")]), 400),
        (json!([confirm(&foreign[0], "allow")]), 400),
        (json!([result(&ids[0], "x")]), 400),
        (json!([confirm(&ids[0], "allow"), confirm(&ids[0], "deny")]), 409),
        (json!([confirm(&ids[0], "allow"), confirm(&foreign[0], "allow")]), 400),
        (json!([confirm(&ids[0], "perhaps")]), 400),
        (json!([message("hello?")]), 409),
    ] {
        let answer = server.send(&session, &events);
        answer.error(status);
        if status == 409 {
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{events}");
        }
    }
    assert_eq!(server.events(&session), before, "all or nothing");
    server.send(&session, &json!([confirm(&ids[0], "allow")])).ok();
    let (kind_of_error, text) = server.send(&session, &json!([confirm(&ids[0], "allow")])).error(409);
    assert_eq!(kind_of_error, "conflict_error");
    assert!(text.contains("answered before"), "{text}");
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&ids[1], "deny")])).ok();
    stream.until_end_of_turn();
    server.send(&session, &json!([confirm(&ids[1], "allow")])).error(409);
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "1\n");
}

#[test]
fn answers_in_one_request_and_in_any_order_run_the_calls_in_their_order() {
    let server = two_asks();
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&ids[1], "allow"), confirm(&ids[0], "allow")])).ok();
    stream.until_end_of_turn();
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "1\n2\n");
    let statuses =
        stream.kinds().into_iter().filter(|kind| kind.starts_with("session.status")).collect::<Vec<_>>();
    assert_eq!(statuses, ["session.status_running", "session.status_idle"]);
}

#[test]
fn an_answer_may_come_before_the_idle_event() {
    let server = two_asks();
    let session = server.session(&asking());
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let mut answered = 0;
    loop {
        let event = stream.next().unwrap();
        match kind(&event).as_str() {
            "agent.tool_use" => {
                server.send(&session, &json!([confirm(&id(&event), "allow")])).ok();
                answered += 1;
            }
            "session.status_idle" if event["stop_reason"]["type"] == "end_turn" => break,
            _ => {}
        }
    }
    assert_eq!(answered, 2);
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "1\n2\n");
}

#[test]
fn the_same_result_again_is_replayed_for_claude_clients_and_a_conflict_for_others() {
    let script = Script::by(|request, _| match qoder_testkit::assistant_count(request) {
        0 => Reply::tool("weather", json!({})),
        _ => Reply::text("ok"),
    });
    let server = Server::scripted(script);
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    let path = format!("/v1/sessions/{session}/events");
    let body = |text: &str| json!({ "events": [result(&ids[0], text)] });
    let first = server.claude("POST", &path, &body("sunny")).ok();
    let again = server.claude("POST", &path, &body("sunny")).ok();
    assert_eq!(first["data"][0]["id"], again["data"][0]["id"]);
    server.claude("POST", &path, &body("rain")).error(409);
    server.post(&path, &body("sunny")).error(409);
    let other = server.token(&["--user", "bob", "--tenant", "ana"]);
    let bearer = format!("Bearer {other}");
    let headers = [("authorization", bearer.as_str()), ("anthropic-version", "2023-06-01")];
    server.bare("POST", &path, &headers, body("sunny").to_string().as_bytes()).error(409);
    let count =
        server.events(&session).iter().filter(|event| kind(event) == "user.custom_tool_result").count();
    assert_eq!(count, 1, "it is stored once");
}

#[test]
fn errors_and_images_are_results_too() {
    let server = Server::replying(vec![
        Reply::tool("weather", json!({})),
        Reply::tool("weather", json!({ "city": "Oslo" })),
        Reply::text("ok"),
    ]);
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    let mut stream = server.stream(&session, None);
    let failure = json!({ "type": "user.custom_tool_result", "custom_tool_use_id": ids[0], "is_error": true,
        "content": "no such city" });
    server.send(&session, &json!([failure])).ok();
    let ids = pending(&stream.until("session.status_idle"));
    let picture = json!([{ "type": "text", "text": "a map" },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } }]);
    server.send(&session, &json!([result(&ids[0], picture)])).ok();
    stream.until_end_of_turn();
    let last = server.model.as_ref().unwrap().requests().last().unwrap().json().to_string();
    assert!(
        last.contains("no such city") && last.contains("\"is_error\":true") && last.contains("image/png"),
        "{last}"
    );
}

#[test]
fn actions_wait_through_stops_and_kills_and_are_answered_elsewhere() {
    let mut server = two_asks();
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    server.kill();
    server.start_again();
    server.send(&session, &json!([confirm(&ids[0], "allow")])).ok();
    assert!(server.stop().success());
    server.start_again();
    let last = server.events(&session).pop().unwrap();
    assert_eq!(pending(&last), ids[1..], "what is left is named although no one drives the session");
    server.kill();
    server.start_again();
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&ids[1], "allow")])).ok();
    stream.until_end_of_turn();
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "1\n2\n");
}

#[test]
fn a_message_waits_behind_pending_actions_for_claude_clients() {
    let server = Server::replying(vec![bash("true"), Reply::text("one"), Reply::text("two")]);
    let session = server.session(&asking());
    let ids = pending(&server.ask(&session, "go"));
    let path = format!("/v1/sessions/{session}/events");
    let queued = server.claude("POST", &path, &json!({ "events": [message("and then?")] })).ok();
    assert_eq!(queued["data"][0]["processed_at"], Value::Null);
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([confirm(&ids[0], "allow")])).ok();
    stream.until_end_of_turn();
    let events = server.events(&session);
    let queued = events.iter().find(|event| event["id"] == queued["data"][0]["id"]).unwrap();
    assert!(queued["processed_at"].is_string(), "{queued}");
    let texts: Vec<&Value> = events.iter().filter(|event| kind(event) == "agent.message").collect();
    assert_eq!(texts.len(), 2);
    let idle = events.iter().filter(|event| event["stop_reason"]["type"] == "end_turn").count();
    assert_eq!(idle, 1, "the session is idle when nothing is queued");
}

#[test]
fn names_that_clash_with_tools_of_the_runtime_belong_to_the_client() {
    let script = Script::by(|request, _| {
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let name = tools.first().map(|tool| tool["name"].as_str().unwrap().to_owned()).unwrap_or_default();
        if qoder_testkit::assistant_count(request) == 0 {
            Reply::tool(name, json!({}))
        } else {
            Reply::text("ok")
        }
    });
    let server = Server::scripted(script);
    let session = server.session(&json!([custom("Bash")]));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    let used = stream.until("agent.custom_tool_use");
    assert_eq!(used["name"], "Bash");
    server.send(&session, &json!([result(&id(&used), "client ran it")])).ok();
    stream.until_end_of_turn();
}
