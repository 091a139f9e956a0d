//! Silence and endless calls end: before the first byte, in the
//! middle of a stream, and in all. Dropping the stream ends the
//! request.

use std::time::Duration;

use futures::StreamExt;
use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailureClass};

use crate::support::{
    Server, Step, anthropic_text, ask_once, cut_stream, events, request, stream_text, user,
};

fn impatient(server: &Server) -> qoder_models::ModelOptions {
    let mut options = server.options();
    options.environment.insert("QODER_API_TIMEOUT_MS".into(), "150".into());
    options.max_attempts = 2;
    options
}

#[tokio::test]
async fn a_slow_first_byte_is_tried_again() {
    let server = Server::start(vec![vec![Step::Hang], events(&anthropic_text("ok"))]).await;
    let mut options = impatient(&server);
    // Long enough for the second attempt on a busy machine.
    options.environment.insert("QODER_API_TIMEOUT_MS".into(), "1500".into());
    let told = ask_once(&options).await;
    assert_eq!(told.retries[0].3.class, ModelFailureClass::Timeout);
    assert_eq!(told.reply().content, [ContentBlock::text("ok")]);
}

#[tokio::test]
async fn silence_in_the_middle_of_a_stream_ends_the_attempt() {
    let mut half = cut_stream(&stream_text(&anthropic_text("x")[..4]), 1000);
    half.push(Step::Hang);
    let server = Server::start(vec![half.clone(), half]).await;
    let told = ask_once(&impatient(&server)).await;
    assert_eq!(told.failure().class, ModelFailureClass::Timeout);
    assert!(told.failure().message.contains("150 ms"), "{}", told.failure().message);
}

#[tokio::test]
async fn a_stream_that_never_ends_is_bounded_in_all() {
    // Pieces keep coming, so only the limit on the whole call can end it.
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n".repeat(50_000);
    let mut endless = cut_stream(&ping, 40);
    endless.push(Step::Hang);
    let server = Server::start(vec![endless.clone(), endless]).await;
    let told = ask_once(&impatient(&server)).await;
    assert_eq!(told.failure().class, ModelFailureClass::Timeout);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mut half = cut_stream(&stream_text(&anthropic_text("x")[..4]), 1000);
    half.push(Step::Hang);
    let server = Server::start(vec![half, events(&anthropic_text("next"))]).await;
    let model = resolve(&server.options()).unwrap();
    let mut stream = model.stream(request(vec![user("a")]));
    assert!(tokio::time::timeout(Duration::from_secs(30), stream.next()).await.unwrap().is_some());
    drop(stream);
    let told = crate::support::ask(&model, request(vec![user("b")])).await;
    assert_eq!(told.reply().content, [ContentBlock::text("next")]);
    assert_eq!(server.connections(), 2, "the broken-off response must not be reused");
}
