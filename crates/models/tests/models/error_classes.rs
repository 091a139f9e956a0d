//! Every class of failure: which status and body mean what, what is tried
//! again, how waits asked for are honoured, and that no key gets into a
//! message.

use qoder_types::ModelFailureClass as Class;
use serde_json::json;

use crate::support::{Server, Step, anthropic_text, ask_once, events, status};

fn body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[tokio::test]
async fn statuses_and_bodies_have_classes() {
    let cases = [
        (401, body("authentication_error", "invalid x-api-key"), Class::Authentication, false),
        (402, body("billing_error", "pay first"), Class::Permission, false),
        (403, body("permission_error", "not yours"), Class::Permission, false),
        (404, body("not_found_error", "model: x"), Class::NotFound, false),
        (400, body("invalid_request_error", "messages.0: wrong"), Class::InvalidRequest, false),
        (
            400,
            body("invalid_request_error", "prompt is too long: 210000 tokens"),
            Class::ContextTooLong,
            false,
        ),
        (400, body("x", "This model's maximum context length is 8192 tokens"), Class::ContextTooLong, false),
        (413, body("request_too_large", "too large"), Class::ContextTooLong, false),
        (422, "plain words".to_owned(), Class::InvalidRequest, false),
        (408, String::new(), Class::Timeout, true),
        (429, body("rate_limit_error", "slow down"), Class::RateLimit, true),
        (500, body("api_error", "oops"), Class::Server, true),
        (502, "<html>bad gateway</html>".to_owned(), Class::Server, true),
        (503, String::new(), Class::Overloaded, true),
        (529, body("overloaded_error", "busy"), Class::Overloaded, true),
    ];
    for (code, text, class, again) in cases {
        let server = Server::start(vec![status(code, &[], &text); 3]).await;
        let told = ask_once(&server.options()).await;
        assert_eq!(told.failure().class, class, "{code} {text}");
        assert_eq!(told.failure().status, Some(code));
        assert_eq!(told.retries.len(), if again { 2 } else { 0 }, "{code}");
        assert_eq!(server.requests().len(), if again { 3 } else { 1 }, "{code}");
    }
}

#[tokio::test]
async fn prompts_that_do_not_fit_are_recognised_in_many_words() {
    let words = [
        "the request exceeds the available context size. try increasing the context size",
        "Context size has been exceeded.",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Input is too long for requested model.",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "This model's maximum context length is 4096 tokens",
        "Your input exceeds the context window of this model",
        "context_length_exceeded",
    ];
    for (number, text) in words.iter().enumerate() {
        let code = [400, 413, 422, 500][number % 4];
        for code in [code, 500] {
            let server = Server::start(vec![status(code, &[], &body("x", text))]).await;
            let told = ask_once(&server.options()).await;
            assert_eq!(told.failure().class, Class::ContextTooLong, "{code} {text}");
            assert!(told.retries.is_empty());
        }
    }
    let typed = json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "no"}});
    for answer in [status(400, &[], &typed.to_string()), events(&[typed])] {
        let server = Server::start(vec![answer]).await;
        assert_eq!(ask_once(&server.options()).await.failure().class, Class::ContextTooLong);
    }
    let limited = body("rate_limit_error", "too many tokens per minute for this context window");
    let server = Server::start(vec![status(429, &[("retry-after", "3600")], &limited)]).await;
    assert_eq!(ask_once(&server.options()).await.failure().class, Class::RateLimit);
}

#[tokio::test]
async fn the_endpoints_words_and_advice_are_in_the_message() {
    let server =
        Server::start(vec![status(401, &[], &body("authentication_error", "invalid x-api-key"))]).await;
    let told = ask_once(&server.options()).await;
    let message = &told.failure().message;
    assert!(message.contains("invalid x-api-key") && message.contains("ANTHROPIC_API_KEY"), "{message}");
    assert!(message.contains("127.0.0.1:"), "{message}");
}

#[tokio::test]
async fn keys_in_error_bodies_are_masked() {
    let echo = body("authentication_error", "your key sk-ant-secret-1 is wrong");
    let server = Server::start(vec![status(401, &[], &echo)]).await;
    let told = ask_once(&server.options()).await;
    assert!(!told.failure().message.contains("sk-ant-secret-1"), "{}", told.failure().message);
    assert!(told.failure().message.contains("***"));
}

#[tokio::test]
async fn waits_asked_for_are_honoured() {
    let server = Server::start(vec![
        status(429, &[("retry-after-ms", "7")], ""),
        status(429, &[("retry-after", "0")], ""),
        events(&anthropic_text("ok")),
    ])
    .await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.retries.iter().map(|retry| retry.2).collect::<Vec<_>>(), [7, 0]);
    assert!(told.result.is_ok());
}

#[tokio::test]
async fn a_wait_that_is_too_long_fails_with_a_hint() {
    let server = Server::start(vec![status(429, &[("retry-after", "3600")], "")]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.failure().retry_after_ms, Some(3_600_000));
    assert!(told.failure().message.contains("3600 seconds"), "{}", told.failure().message);
    assert!(told.retries.is_empty());
}

#[tokio::test]
async fn the_endpoint_may_say_whether_to_try_again() {
    let server = Server::start(vec![status(500, &[("x-should-retry", "false")], "")]).await;
    let told = ask_once(&server.options()).await;
    assert!(told.retries.is_empty());
    let server =
        Server::start(vec![status(409, &[("x-should-retry", "true")], ""), events(&anthropic_text("ok"))])
            .await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.retries.len(), 1);
    assert!(told.result.is_ok());
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server =
        Server::start(vec![status(307, &[("location", "http://elsewhere.test/v1/messages")], "")]).await;
    let told = ask_once(&server.options()).await;
    assert!(told.failure().message.contains("http://elsewhere.test"), "{}", told.failure().message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn no_connection_names_host_port_and_what_to_check() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = Server::start(vec![]).await;
    let mut options = server.options();
    options.base_url = Some(format!("http://{address}"));
    let told = ask_once(&options).await;
    let failure = told.failure();
    assert_eq!(failure.class, Class::Network);
    assert!(failure.message.contains(&address.to_string()), "{}", failure.message);
    assert!(
        failure.message.contains("base URL") && failure.message.contains("HTTP_PROXY"),
        "{}",
        failure.message
    );
    assert_eq!(told.retries.len(), 2);
}

#[tokio::test]
async fn a_connection_closed_without_answer_is_tried_again() {
    let server = Server::start(vec![vec![Step::Close], events(&anthropic_text("ok"))]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.retries[0].3.class, Class::Network);
    assert!(told.result.is_ok());
}
