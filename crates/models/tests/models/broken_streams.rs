//! Streams that break: cut off, malformed, not a stream at all. A retry
//! starts the told message again and the reply is never a mixture of two
//! attempts.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailureClass};
use serde_json::{Value, json};

use crate::support::{
    Server, Step, anthropic_text, ask, ask_once, assert_well_ordered, cut_stream, events, pieces, request,
    status, stream_text, user,
};

#[tokio::test]
async fn a_cut_stream_is_tried_again_without_duplicates() {
    let whole = anthropic_text("complete");
    let mut closed = cut_stream(&stream_text(&whole[..4]), 20);
    closed.push(Step::Close);
    let ended = pieces(&stream_text(&whole[..5]), 40);
    let server = Server::start(vec![closed, ended, events(&whole)]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.reply().content, [ContentBlock::text("complete")]);
    let classes: Vec<ModelFailureClass> = told.retries.iter().map(|retry| retry.3.class).collect();
    assert_eq!(classes, [ModelFailureClass::Network, ModelFailureClass::MalformedStream]);
    assert_eq!(told.retries.iter().map(|retry| (retry.0, retry.1)).collect::<Vec<_>>(), [(1, 2), (2, 2)]);
    assert_eq!(told.kinds().iter().filter(|kind| **kind == "message_start").count(), 3);
    assert_eq!(told.partial_text(), "complete");
    let last = told.partials.iter().rposition(|event| event["type"] == "message_start").unwrap();
    assert_well_ordered(&told.partials[last..]);
}

#[tokio::test]
async fn chat_streams_need_an_end_too() {
    let start = json!({"choices": [{"delta": {"content": "half"}, "finish_reason": null}]});
    let done = Value::String("[DONE]".into());
    let whole = [json!({"choices": [{"delta": {"content": "all"}, "finish_reason": "stop"}]}), done.clone()];
    let empty = [json!({"choices": [{"delta": {"role": "assistant"}}]}), done];
    let server =
        Server::start(vec![events(std::slice::from_ref(&start)), events(&empty), events(&whole)]).await;
    let told = ask_once(&server.styled("openai", "m")).await;
    assert_eq!(told.reply().content, [ContentBlock::text("all")]);
    assert_eq!(told.retries.len(), 2);
}

#[tokio::test]
async fn malformed_events_are_tried_again_and_then_reported() {
    let mut bad = stream_text(&anthropic_text("x")[..3]);
    bad.push_str("data: {\"type\": \"content_block_delta\", \n\n");
    let mut invalid = cut_stream("", 1);
    invalid.push(Step::Send(b"5\r\ndata:\r\n4\r\n\xff\xfe\n\n\r\n0\r\n\r\n".to_vec()));
    let early = events(&anthropic_text("x")[1..]);
    let server = Server::start(vec![pieces(&bad, 1000), invalid, early]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.failure().class, ModelFailureClass::MalformedStream);
    assert_eq!(told.retries.len(), 2);
    assert!(told.failure().message.contains("before message_start"), "{}", told.failure().message);
    assert!(told.failure().message.starts_with("127.0.0.1:"), "{}", told.failure().message);
    assert!(told.failure().message.contains("after 3 attempts"), "{}", told.failure().message);
}

#[tokio::test]
async fn an_error_inside_the_stream_is_classified() {
    let mut overloaded = anthropic_text("x")[..4].to_vec();
    overloaded.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let refused =
        vec![json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad thing"}})];
    let server =
        Server::start(vec![events(&overloaded), events(&anthropic_text("fine")), events(&refused)]).await;
    let model = resolve(&server.options()).unwrap();
    let told = ask(&model, request(vec![user("a")])).await;
    assert_eq!(told.retries[0].3.class, ModelFailureClass::Overloaded);
    assert_eq!(told.reply().content, [ContentBlock::text("fine")]);
    let told = ask(&model, request(vec![user("b")])).await;
    assert_eq!(told.failure().class, ModelFailureClass::InvalidRequest);
    assert!(told.retries.is_empty());
}

#[tokio::test]
async fn errors_of_gateways_are_understood_and_never_quote_the_key() {
    let text = json!({"error": "model not loaded for key sk-ant-secret-1"});
    let fields = json!({"error": {"message": "no funds", "type": "billing_error"}});
    let server = Server::start(vec![events(std::slice::from_ref(&fields)), events(&[text])]).await;
    let mut options = server.options();
    options.max_attempts = 1;
    let model = resolve(&options).unwrap();
    assert_eq!(ask(&model, request(vec![user("a")])).await.failure().class, ModelFailureClass::Quota);
    let told = ask(&model, request(vec![user("b")])).await;
    assert!(told.failure().message.contains("model not loaded for key ***"), "{}", told.failure().message);
}

#[tokio::test]
async fn a_web_page_is_quoted_and_not_tried_again() {
    let page = format!("<html><body>Sign in to the hotel network {}</body></html>", "x".repeat(400));
    let answer = status(200, &[("content-type", "text/html")], &page);
    let server =
        Server::start(vec![answer, status(200, &[("content-type", "application/json")], "{\"a\":1}")]).await;
    let model = resolve(&server.options()).unwrap();
    let told = ask(&model, request(vec![user("a")])).await;
    let message = &told.failure().message;
    assert!(message.contains("a web page") && message.contains("Sign in to the hotel network"), "{message}");
    assert!(message.len() < 600, "{message}");
    assert!(told.retries.is_empty());
    let told = ask(&model, request(vec![user("b")])).await;
    assert!(told.failure().message.contains("{\"a\":1}"), "{}", told.failure().message);
}

#[tokio::test]
async fn a_stream_behind_a_wrong_content_type_is_read() {
    let text = stream_text(&anthropic_text("anyway"));
    let server = Server::start(vec![status(200, &[("content-type", "text/plain")], &text)]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.reply().content, [ContentBlock::text("anyway")]);
    assert_well_ordered(&told.partials);
}
