//! The same reply arrives in the words of the protocol whose path was called,
//! streamed and whole, with arguments in several pieces that make up the
//! JSON.

use crate::client::{exchange, post};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

fn everything() -> ScriptedServer {
    ScriptedServer::start(Script::by(|_, _| Reply::Blocks {
        thinking: Some(("let me think".to_owned(), "signed".to_owned())),
        text: Some("hello world".to_owned()),
        tools: vec![("call_1".to_owned(), "Read".to_owned(), json!({ "file_path": "/a/b" }))],
        stop_reason: None,
        usage: Some(json!({ "input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 2 })),
    }))
}

fn joined(events: &[Value], kind: &str, pointer: &str) -> String {
    let pieces = events.iter().filter(|event| event["type"] == kind || kind.is_empty());
    pieces.filter_map(|event| event.pointer(pointer).and_then(Value::as_str)).collect()
}

#[test]
fn messages_are_streamed_block_by_block() {
    let server = everything();
    let answer = post(&server, "/v1/messages", &json!({ "model": "m", "stream": true, "messages": [] }));
    assert!(answer.complete && answer.head.contains("text/event-stream"), "{}", answer.head);
    let events = answer.events();
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!(events[0]["message"]["model"], "m");
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 7);
    assert_eq!(joined(&events, "content_block_delta", "/delta/thinking"), "let me think");
    assert_eq!(joined(&events, "content_block_delta", "/delta/signature"), "signed");
    assert_eq!(joined(&events, "content_block_delta", "/delta/text"), "hello world");
    assert_eq!(joined(&events, "content_block_delta", "/delta/partial_json"), r#"{"file_path":"/a/b"}"#);
    let starts: Vec<&Value> = events.iter().filter(|event| event["type"] == "content_block_start").collect();
    assert_eq!(starts.len(), 3);
    assert_eq!(starts[2]["content_block"]["name"], "Read");
    let last_delta = &events[events.len() - 2];
    assert_eq!(last_delta["delta"]["stop_reason"], "tool_use");
    assert_eq!(last_delta["usage"]["output_tokens"], 3);
    assert_eq!(events[events.len() - 1]["type"], "message_stop");
}

#[test]
fn chat_completions_are_streamed_in_chunks() {
    let server = everything();
    let answer = post(&server, "/v1/chat/completions", &json!({ "stream": true, "messages": [] }));
    let events = answer.events();
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(joined(&events, "", "/choices/0/delta/content"), "hello world");
    assert_eq!(joined(&events, "", "/choices/0/delta/reasoning_content"), "let me think");
    assert_eq!(
        joined(&events, "", "/choices/0/delta/tool_calls/0/function/arguments"),
        r#"{"file_path":"/a/b"}"#
    );
    assert_eq!(joined(&events, "", "/choices/0/delta/tool_calls/0/id"), "call_1");
    assert_eq!(joined(&events, "", "/choices/0/finish_reason"), "tool_calls");
    let usage = &events[events.len() - 1]["usage"];
    assert_eq!(usage["prompt_tokens"], 9);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 2);
}

#[test]
fn responses_are_streamed_item_by_item() {
    let server = everything();
    let answer = post(&server, "/v1/responses", &json!({ "stream": true, "input": [] }));
    let events = answer.events();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    assert_eq!(joined(&events, "response.output_text.delta", "/delta"), "hello world");
    assert_eq!(joined(&events, "response.reasoning_summary_text.delta", "/delta"), "let me think");
    assert_eq!(
        joined(&events, "response.function_call_arguments.delta", "/delta"),
        r#"{"file_path":"/a/b"}"#
    );
    let last = &events[events.len() - 1];
    assert_eq!(last["type"], "response.completed");
    let kinds: Vec<&str> = last["response"]["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(last["response"]["usage"]["total_tokens"], 12);
}

#[test]
fn a_request_that_does_not_stream_gets_one_document() {
    let server = everything();
    let document = |path: &str| -> Value {
        let answer = post(&server, path, &json!({ "model": "m" }));
        assert!(answer.head.contains("application/json"));
        serde_json::from_str(&answer.body).unwrap()
    };
    assert_eq!(document("/v1/messages")["content"][1]["text"], "hello world");
    assert_eq!(document("/v1/messages")["content"][2]["input"]["file_path"], "/a/b");
    assert_eq!(document("/v1/chat/completions")["choices"][0]["message"]["content"], "hello world");
    assert_eq!(document("/v1/responses")["output"][2]["call_id"], "call_1");
}

#[test]
fn two_models_are_listed() {
    let server = everything();
    let answer = exchange(&server, "GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n");
    let list: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2));
    let missing = exchange(&server, "GET /v1/nothing HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(missing.status, 404);
}

#[test]
fn an_output_limit_is_told_in_every_protocol() {
    let server = ScriptedServer::start(Script::list(vec![Reply::Blocks {
        thinking: None,
        text: Some("cut".to_owned()),
        tools: Vec::new(),
        stop_reason: Some("max_tokens".to_owned()),
        usage: None,
    }]));
    let stream = json!({ "stream": true });
    let messages = post(&server, "/v1/messages", &stream).events();
    assert_eq!(joined(&messages, "message_delta", "/delta/stop_reason"), "max_tokens");
    let chat = post(&server, "/v1/chat/completions", &stream).events();
    assert_eq!(joined(&chat, "", "/choices/0/finish_reason"), "length");
    let responses = post(&server, "/v1/responses", &stream).events();
    assert_eq!(
        joined(&responses, "response.incomplete", "/response/incomplete_details/reason"),
        "max_output_tokens"
    );
}
