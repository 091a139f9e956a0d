//! The fallback model: asked once the main one
//! failed for good in a way that another model may
//! not.

use qoder_types::{ContentBlock, ModelFailureClass};

use crate::support::{Server, Step, anthropic_text, ask_once, events, status, stream_text};

#[tokio::test]
async fn an_overloaded_main_model_gives_way() {
    let mut answers = vec![status(529, &[], "busy"); 3];
    answers.push(events(&anthropic_text("from the second")));
    let server = Server::start(answers).await;
    let mut options = server.options();
    options.fallback_model = Some("claude-haiku-4-5".into());
    let told = ask_once(&options).await;
    assert_eq!(told.fallbacks, [("claude-sonnet-4-5".to_owned(), "claude-haiku-4-5".to_owned())]);
    assert_eq!(told.reply().content, [ContentBlock::text("from the second")]);
    assert_eq!(server.requests()[3].json()["model"], "claude-haiku-4-5");
    let expected = (10.0 + 7.0 * 5.0 + 2.0 * 1.25 + 5.0 * 0.1) / 1e6;
    assert!((told.reply().cost_usd - expected).abs() < 1e-12, "the price is the second model's");
}

#[tokio::test]
async fn a_missing_model_gives_way_at_once_and_a_bad_request_does_not() {
    let server = Server::start(vec![
        status(404, &[], "no such model"),
        events(&anthropic_text("ok")),
        status(400, &[], "bad"),
    ])
    .await;
    let mut options = server.options();
    options.fallback_model = Some("other".into());
    let told = ask_once(&options).await;
    assert!(told.retries.is_empty() && told.result.is_ok());
    assert_eq!(
        told.reply().provider,
        "anthropic",
        "of the protocol, when the host belongs to no known provider"
    );
    let told = ask_once(&options).await;
    assert_eq!(told.failure().class, ModelFailureClass::InvalidRequest);
    assert!(told.fallbacks.is_empty());
}

#[tokio::test]
async fn a_stream_that_always_ends_early_gives_way() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    let start = stream_text(&anthropic_text("half")[..3]).into_bytes();
    let mut answers = vec![vec![Step::Send(head), Step::Send(start), Step::Close]; 3];
    answers.push(events(&anthropic_text("from the second")));
    let server = Server::start(answers).await;
    let mut options = server.options();
    options.fallback_model = Some("claude-haiku-4-5".into());
    let told = ask_once(&options).await;
    assert_eq!(told.reply().content, [ContentBlock::text("from the second")]);
}

#[tokio::test]
async fn a_used_up_quota_gives_way_whatever_its_status() {
    let words = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#;
    let server = Server::start(vec![status(400, &[], words), events(&anthropic_text("ok"))]).await;
    let mut options = server.options();
    options.fallback_model = Some("other".into());
    assert!(ask_once(&options).await.result.is_ok());
}

#[tokio::test]
async fn the_fallback_has_its_own_attempts_and_its_failure_is_reported() {
    let server = Server::start(vec![status(503, &[], "busy"); 6]).await;
    let mut options = server.options();
    options.fallback_model = Some("other".into());
    let told = ask_once(&options).await;
    assert_eq!(told.failure().class, ModelFailureClass::Overloaded);
    assert_eq!((told.retries.len(), server.requests().len()), (4, 6));
}

#[tokio::test]
async fn the_provider_of_a_reply_is_the_one_that_answered() {
    let server = Server::start(vec![status(404, &[], "no such model")]).await;
    let mut options = server.options();
    options.fallback_model = Some("offline".into());
    let told = ask_once(&options).await;
    assert_eq!(told.reply().provider, "offline");
}
