//! Errors that come with status 200: as an event, as a JSON document,
//! and as a document that calls itself a stream. They are classed like
//! the status they name and quoted.

use qoder_types::ModelFailureClass as Class;
use serde_json::{Value, json};

use crate::support::{Server, Step, ask_once, events, status};

fn cases() -> Vec<(Value, Class)> {
    vec![
        (json!({"error": {"code": 400, "message": "its own words"}}), Class::InvalidRequest),
        (json!({"error": {"code": 401, "message": "its own words"}}), Class::Authentication),
        (json!({"error": {"code": "403", "message": "its own words"}}), Class::Permission),
        (json!({"error": {"code": 404, "message": "its own words"}}), Class::NotFound),
        (
            json!({"object": "error", "message": "its own words", "type": "BadRequestError", "code": 400}),
            Class::InvalidRequest,
        ),
        (json!({"type": "error", "message": "its own words", "code": 401}), Class::Authentication),
        (json!({"message": "its own words", "status": 403}), Class::Permission),
        (json!({"error": "its own words", "code": 404}), Class::NotFound),
        (
            json!({"error": {"code": 500, "message": "its own words: Context size has been exceeded."}}),
            Class::ContextTooLong,
        ),
        (json!({"error": {"code": 429, "message": "its own words"}}), Class::RateLimit),
        (
            json!({"error": {"code": 503, "message": "its own words", "status": "UNAVAILABLE"}}),
            Class::Overloaded,
        ),
        (
            json!({"error": {"code": 500, "message": "its own words"}, "choices": [{"delta": {"content": ""},
            "finish_reason": "error"}]}),
            Class::Server,
        ),
    ]
}

#[tokio::test]
async fn errors_are_classed_like_the_status_they_name() {
    for style in ["anthropic", "openai"] {
        for (error, class) in cases() {
            let text = error.to_string();
            let ways: [Vec<Step>; 4] = [
                events(std::slice::from_ref(&error)),
                status(200, &[("content-type", "application/json")], &text),
                status(200, &[("content-type", "text/event-stream")], &text),
                status(200, &[("content-type", "application/json")], &format!("[{text}]")),
            ];
            for (number, way) in ways.into_iter().enumerate() {
                let server = Server::start(vec![way.clone(), way.clone(), way]).await;
                let told = ask_once(&server.styled(style, "m")).await;
                let failure = told.failure();
                assert_eq!(failure.class, class, "{style} {number} {text}: {}", failure.message);
                assert!(failure.message.contains("its own words"), "{}", failure.message);
                let again = matches!(class, Class::RateLimit | Class::Overloaded | Class::Server);
                assert_eq!(told.retries.len(), if again { 2 } else { 0 }, "{style} {number} {text}");
            }
        }
    }
}

#[tokio::test]
async fn an_empty_error_beside_a_reply_means_nothing() {
    for empty in [json!({}), json!(""), json!(false), json!([]), Value::Null] {
        let reply =
            json!({"error": empty, "choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]});
        let server = Server::start(vec![events(&[reply])]).await;
        let told = ask_once(&server.styled("openai", "m")).await;
        assert_eq!(told.reply().content, [qoder_types::ContentBlock::text("fine")]);
        assert!(told.retries.is_empty());
    }
}
