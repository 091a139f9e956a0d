//! Calls that make no sense are answered with errors the model can repair, and the turn continues. A failing call does not
//! disturb its siblings, and results are in the order of the calls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{
    Wire, assert_calls_in_order, bodies, calls, command_at, records, results_in, run, stream,
};

#[test]
fn senseless_calls_are_told_what_is_wrong_and_the_turn_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let first = calls(&[
        ("toolu_1", "Frobnicate", json!({ "x": 1 })),
        ("toolu_2", "Read", json!("not an object")),
        ("toolu_3", "Read", json!({ "file_path": ["a list"] })),
        ("toolu_4", "Read", json!({})),
        ("toolu_5", "Read", json!({ "file_path": "missing.txt" })),
        ("toolu_6", "Read", json!({ "file_path": "notes.txt" })),
        ("toolu_7", "Read", json!({ "file_path": "notes.txt", "colour": "red" })),
    ]);
    let server = ScriptedServer::start(Script::by_assistant_count(vec![first, Reply::text("repaired")]));
    let finished = stream(&sandbox, &server, &["go", "--tools", "Read,Bash"]);
    assert_eq!(finished.success()["result"], "repaired");
    let results = results_in(&bodies(&server)[1]);
    let ids: Vec<&str> = results.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2", "toolu_3", "toolu_4", "toolu_5", "toolu_6", "toolu_7"]);
    let failed: Vec<bool> = results.iter().map(|(.., failed)| *failed).collect();
    assert_eq!(failed[..6], [true, true, true, true, true, false]);
    assert_eq!(results[0].1, "There is no tool named Frobnicate. The tools are: Bash, Read.");
    assert!(
        results[1].1.contains("not valid JSON") && results[1].1.contains("not an object"),
        "{}",
        results[1].1
    );
    for (index, named) in [(2, "/file_path"), (3, "\"file_path\" is a required property")] {
        assert!(
            results[index].1.starts_with("The arguments of Read do not fit its schema:"),
            "{}",
            results[index].1
        );
        assert!(results[index].1.contains(named), "{}", results[index].1);
        assert!(
            results[index].1.contains("Its fields are: file_path, offset, limit, pages."),
            "{}",
            results[index].1
        );
    }
    assert!(results[4].1.contains("missing.txt"), "{}", results[4].1);
    assert_eq!(results[5].1, "     1\thello\n");
    assert_calls_in_order(&sandbox);
    let denials = &finished.result()["permission_denials"];
    assert_eq!(denials, &json!([]), "a senseless call is an error, not a denial");
}

#[test]
fn results_stand_in_the_order_of_the_calls_whichever_ends_first() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let first = calls(&[
        ("toolu_slow", "Bash", json!({ "command": "sleep 0.2; echo slow" })),
        ("toolu_fails", "Bash", json!({ "command": "echo bad >&2; exit 3" })),
        ("toolu_quick", "Read", json!({ "file_path": "notes.txt" })),
        ("toolu_wrong", "Nothing", json!({})),
        ("toolu_last", "Bash", json!({ "command": "echo last" })),
    ]);
    let server = ScriptedServer::start(Script::by_assistant_count(vec![first, Reply::text("done")]));
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Bash"]);
    finished.success();
    let results = results_in(&bodies(&server)[1]);
    let seen: Vec<(&str, bool)> = results.iter().map(|(id, _, failed)| (id.as_str(), *failed)).collect();
    let expected = [
        ("toolu_slow", false),
        ("toolu_fails", true),
        ("toolu_quick", false),
        ("toolu_wrong", true),
        ("toolu_last", false),
    ];
    assert_eq!(seen, expected);
    assert_eq!((results[0].1.trim(), results[4].1.trim()), ("slow", "last"));
    assert!(results[1].1.contains("bad") && results[1].1.contains('3'), "{}", results[1].1);
    let outcome = |id: &str| {
        let entry = records(&sandbox, "user")
            .into_iter()
            .find(|entry| entry["message"]["content"][0]["tool_use_id"] == id)
            .unwrap();
        entry["outcome"].clone()
    };
    let outcomes: Vec<Value> = expected.iter().map(|(id, _)| outcome(id)).collect();
    assert_eq!(outcomes, ["completed", "failed", "completed", "failed", "completed"]);
}

/// A server that answers each connection with the next text and gives back the last request's body.
fn raw_server(answers: Vec<String>) -> (String, std::thread::JoinHandle<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let mut last = Value::Null;
        for answer in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            last = serde_json::from_slice(&body).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
            write!(connection, "{head}content-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        }
        last
    };
    (address, std::thread::spawn(serve))
}

#[test]
fn arguments_that_are_not_json_are_an_error_the_model_can_repair() {
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let whole = |blocks: &str, stop_reason: &str| {
        let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted-large",
            "content": [], "stop_reason": null, "usage": { "input_tokens": 5, "output_tokens": 1 } });
        let start = event(json!({ "type": "message_start", "message": message }));
        let delta = json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason },
            "usage": { "output_tokens": 4 } });
        format!("{start}{blocks}{}{}", event(delta), event(json!({ "type": "message_stop" })))
    };
    let block = |start: Value, delta: Value| {
        event(json!({ "type": "content_block_start", "index": 0, "content_block": start }))
            + &event(json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
            + &event(json!({ "type": "content_block_stop", "index": 0 }))
    };
    let broken = block(
        json!({ "type": "tool_use", "id": "toolu_1", "name": "Read", "input": {} }),
        json!({ "type": "input_json_delta", "partial_json": "{\"file_path\": \"notes" }),
    );
    let text = block(json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": "sorry" }));
    let (address, server) = raw_server(vec![whole(&broken, "tool_use"), whole(&text, "end_turn")]);
    let sandbox = Sandbox::new();
    let mut command = command_at(&sandbox, &address, Wire::Messages);
    command.args(["-p", "go", "--output-format", "json"]);
    assert_eq!(run(command).success()["result"], "sorry");
    let request = server.join().unwrap();
    let results = results_in(&request);
    assert_eq!((results.len(), results[0].2), (1, true));
    assert!(results[0].1.starts_with("The arguments of Read are not valid JSON:"), "{}", results[0].1);
    assert!(results[0].1.contains("{\"file_path\": \"notes"), "{}", results[0].1);
    let call = &request["messages"][1]["content"][0];
    assert!(call["input"].is_object(), "the endpoint only takes objects: {call}");
}

#[test]
fn calls_that_share_an_id_have_results_of_their_own() {
    for wire in Wire::ALL {
        for id in ["toolu_same", ""] {
            let sandbox = Sandbox::new();
            sandbox.write("notes.txt", "hello\n");
            let read = |path: &str| (id, "Read", json!({ "file_path": path }));
            let twice = calls(&[read("notes.txt"), read("missing.txt")]);
            let server = ScriptedServer::start(Script::by_assistant_count(vec![twice, Reply::text("done")]));
            let mut command = command_at(&sandbox, &server.base_url(), wire);
            command.args(["-p", "go", "--output-format", "stream-json"]);
            let finished = run(command);
            assert_eq!(finished.success()["result"], "done", "{wire:?} {id:?}");
            let results = finished.of("user");
            assert_eq!(results.len(), 2, "{wire:?} {id:?}");
            let ids: Vec<Value> =
                results.iter().map(|line| line["message"]["content"][0]["tool_use_id"].clone()).collect();
            assert_ne!(ids[0], ids[1], "{wire:?} {id:?}: each call is answered by its own id");
            assert_calls_in_order(&sandbox);
        }
    }
}

#[test]
fn a_text_of_blanks_beside_a_call_is_not_sent_back() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let blank = Reply::Blocks {
        thinking: None,
        text: Some("\n\n".to_owned()),
        tools: vec![("toolu_1".to_owned(), "Read".to_owned(), json!({ "file_path": "notes.txt" }))],
        stop_reason: None,
        usage: None,
    };
    let server = ScriptedServer::start(Script::by_assistant_count(vec![blank, Reply::text("done")]));
    stream(&sandbox, &server, &["go"]).success();
    // Endpoints refuse texts that hold nothing but blanks.
    let reply = &bodies(&server)[1]["messages"][1]["content"];
    let kinds: Vec<&Value> = reply.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_use"], "{reply}");
}
