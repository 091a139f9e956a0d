//! What a test can ask the server afterwards: paths, headers, bodies, the order of events in time,
//! how many connections were made; and that a script without state answers a repeated request the
//! same way.

use crate::client::post;
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

#[test]
fn requests_are_kept_with_their_moments() {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("one"), Reply::text("two")]));
    let first = post(&server, "/v1/messages", &json!({ "n": 1, "stream": true }));
    let second = post(&server, "/v1/messages?beta=true", &json!({ "n": 2, "stream": true }));
    let text = |answer: &crate::client::Answer| -> String {
        answer.events().iter().filter_map(|event| event["delta"]["text"].as_str()).collect()
    };
    assert_eq!((text(&first), text(&second)), ("one".to_owned(), "two".to_owned()));
    assert!(second.complete && second.status == 200 && first.head.contains("request-id"));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(server.connections(), 2);
    assert_eq!(requests[1].path, "/v1/messages?beta=true");
    assert_eq!(requests[1].json()["n"], 2);
    assert_eq!(requests[0].header("HOST"), Some("test"));
    assert!(requests[0].at <= requests[0].answered && requests[0].answered <= requests[1].at);
}

#[test]
fn bodies_can_be_forgotten() {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("one")]).forget_bodies());
    post(&server, "/v1/messages", &json!({ "stream": true }));
    assert_eq!(server.requests()[0].body, b"");
    assert_eq!(server.requests()[0].json(), Value::Null);
}

#[test]
fn a_function_sees_the_body_and_the_number() {
    let script = Script::by(|request, number| Reply::text(format!("{}-{number}", request["word"])));
    let server = ScriptedServer::start(script);
    let texts: Vec<String> = (0..2)
        .map(|_| {
            let events = post(&server, "/v1/messages", &json!({ "word": 5, "stream": true })).events();
            events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect()
        })
        .collect();
    assert_eq!(texts, ["5-0", "5-1"]);
}

#[test]
fn a_repeated_request_gets_the_same_answer_with_the_same_ids() {
    let replies = vec![Reply::tool("Read", json!({ "file_path": "a" })), Reply::tool("Read", json!({}))];
    let server = ScriptedServer::start(Script::by_assistant_count(replies));
    let first = json!({ "stream": true, "messages": [{ "role": "user", "content": "go" }] });
    let second = json!({ "stream": true, "messages": [
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": "…" },
        { "role": "user", "content": "result" },
    ]});
    let ask = |request: &Value| post(&server, "/v1/messages", request).body;
    assert_eq!(ask(&first), ask(&first));
    let id = |body: &str| body.split("toolu_").nth(1).map(|rest| rest[..16].to_owned());
    assert_ne!(id(&ask(&first)), id(&ask(&second)), "ids differ between two places of a conversation");
    assert!(id(&ask(&second)).is_some());
}

#[test]
fn a_connection_serves_many_requests() {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("one"), Reply::text("two")]));
    let first = "POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    let second = "POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let answers = crate::client::exchange(&server, &format!("{first}{second}"));
    assert!(answers.body.contains("\"one\"") && answers.body.contains("\"two\""), "{}", answers.body);
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}
