//! One connection serves many turns, also
//! after an error that was answered
//! properly.

use qoder_models::resolve;

use crate::support::{Server, Step, anthropic_text, ask, events, request, status, user};

#[tokio::test]
async fn many_calls_share_one_connection() {
    let mut answers = vec![events(&anthropic_text("ok")); 5];
    answers.insert(2, status(529, &[], "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}"));
    let server = Server::start(answers).await;
    let model = resolve(&server.options()).unwrap();
    assert_eq!(server.connections(), 0, "nothing is opened before the first request");
    for turn in 0..5 {
        assert!(ask(&model, request(vec![user("hello")])).await.result.is_ok(), "turn {turn}");
    }
    assert_eq!(server.requests().len(), 6);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_costs_no_attempt() {
    let answers = vec![events(&anthropic_text("one")), vec![Step::Close], events(&anthropic_text("two"))];
    let server = Server::start(answers).await;
    let model = resolve(&server.options()).unwrap();
    ask(&model, request(vec![user("a")])).await.reply();
    let told = ask(&model, request(vec![user("a")])).await;
    assert!(told.retries.is_empty() && told.notices.is_empty(), "it is silent");
    assert_eq!(told.reply().content, [qoder_types::ContentBlock::text("two")]);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn it_is_sent_again_once_and_no_more() {
    let answers = vec![events(&anthropic_text("one")), vec![Step::Close], vec![Step::Close]];
    let server = Server::start(answers).await;
    let mut options = server.options();
    options.max_attempts = 1;
    let model = resolve(&options).unwrap();
    ask(&model, request(vec![user("a")])).await.reply();
    ask(&model, request(vec![user("a")])).await.failure();
    assert_eq!(server.requests().len(), 3);
}
