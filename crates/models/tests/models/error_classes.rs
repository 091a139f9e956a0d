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
        (402, body("billing_error", "pay first"), Class::Quota, false),
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
    assert!(told.retries[0].3.message.contains("cannot connect"), "the first try is reported as what it is");
}

#[tokio::test]
async fn a_connection_closed_without_answer_is_tried_again() {
    let server = Server::start(vec![vec![Step::Close], events(&anthropic_text("ok"))]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.retries[0].3.class, Class::Network);
    assert!(told.result.is_ok());
}

/// Errors by what they mean: the status, the body as the server sends it, its public source.
const MEANINGS: &[(u16, &str, Class, &str)] = &[
    (
        400,
        r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models"}}"#,
        Class::NotFound,
        "https://docs.litellm.ai/docs/proxy/debugging",
    ),
    (
        400,
        r#"{"error":{"message":"x is not a valid model ID","code":400},"user_id":"u"}"#,
        Class::NotFound,
        "https://openrouter.ai/docs/api-reference/errors",
    ),
    (
        400,
        r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
        Class::NotFound,
        "https://platform.openai.com/docs/guides/error-codes",
    ),
    (
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
        Class::Authentication,
        "https://ai.google.dev/gemini-api/docs/troubleshooting",
    ),
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: ab***cd."}"#,
        Class::Authentication,
        "https://docs.x.ai/docs/key-information/debugging",
    ),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        Class::Quota,
        "https://platform.openai.com/docs/guides/error-codes",
    ),
    (
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#,
        Class::Quota,
        "https://api-docs.deepseek.com/quick_start/error_codes",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}}"#,
        Class::Quota,
        "https://docs.claude.com/en/api/errors",
    ),
    (
        413,
        r#"{"error":{"message":"Request too large for model"}}"#,
        Class::ContextTooLong,
        "https://console.groq.com/docs/errors",
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens)","type":"exceed_context_size_error"}}"#,
        Class::ContextTooLong,
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    ),
];

#[tokio::test]
async fn failures_are_classed_by_what_they_mean_and_no_retry_mends_them() {
    for (code, text, class, source) in MEANINGS {
        let server = Server::start(vec![status(*code, &[], text); 3]).await;
        let told = ask_once(&server.styled("openai", "m")).await;
        assert_eq!(told.failure().class, *class, "{source}: {text}");
        assert_eq!(server.requests().len(), 1, "{source}");
    }
}

// https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md: 503 while the model loads.
#[tokio::test]
async fn a_server_that_loads_its_model_is_waited_for() {
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let other = r#"{"error":"model is loading"}"#;
    let server = Server::start(vec![
        status(503, &[], loading),
        status(500, &[], other),
        events(&anthropic_text("ok")),
    ])
    .await;
    let told = ask_once(&server.options()).await;
    assert!(told.retries.iter().all(|retry| retry.3.class == Class::Overloaded), "{:?}", told.retries);
    assert!(told.result.is_ok());
}

// https://ai.google.dev/gemini-api/docs/rate-limits and https://platform.openai.com/docs/guides/rate-limits.
#[tokio::test]
async fn waits_asked_for_in_the_body_are_honoured() {
    let gemini = r#"{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 0.004s.","details":[{"retryDelay":"0.004s"}]}}"#;
    let openai = r#"{"error":{"message":"Rate limit reached. Please try again in 6ms.","code":"rate_limit_exceeded"}}"#;
    let server = Server::start(vec![
        status(429, &[], gemini),
        status(429, &[], openai),
        events(&anthropic_text("ok")),
    ])
    .await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.retries.iter().map(|retry| retry.2).collect::<Vec<_>>(), [4, 6]);
    assert!(told.result.is_ok());
}

#[tokio::test]
async fn a_quota_that_is_used_up_leads_to_the_other_model() {
    let spent = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let server = Server::start(vec![status(429, &[], spent), events(&anthropic_text("ok"))]).await;
    let mut options = server.options();
    options.fallback_model = Some("other".into());
    let told = ask_once(&options).await;
    assert_eq!((told.fallbacks.len(), told.retries.len()), (1, 0));
    assert!(told.result.is_ok());
}
