//! One connection serves many turns, also
//! after an error that was answered
//! properly.

use qoder_models::resolve;

use crate::support::{Server, anthropic_text, ask, events, request, status, user};

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
