//! A refusal that names a field or a limit leads to one more request without it, is remembered, and is reported with the
//! line for the settings. Each case has the words of a real server and their public source.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ImageSource, Role};
use serde_json::{Value, json};

use crate::support::{Received, Server, Step, anthropic_text, ask, events, message, request, status, user};

fn ok(style: &str) -> Vec<Step> {
    events(&match style {
        "anthropic" => anthropic_text("ok"),
        "openai" => vec![json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})],
        _ => vec![
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    })
}

struct Case {
    source: &'static str,
    style: &'static str,
    status: u16,
    body: &'static str,
    /// A JSON pointer that the first request has and the second has not.
    gone: &'static str,
    /// What the settings line sets.
    compat: &'static str,
}

const CASES: &[Case] = &[
    Case {
        source: "https://docs.mistral.ai/api: unknown fields are refused",
        style: "openai",
        status: 422,
        body: r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
        gone: "/stream_options",
        compat: r#""neverSent":["stream_options"]"#,
    },
    Case {
        source: "https://github.com/Kilo-Org/kilocode/issues/10375",
        style: "openai",
        status: 400,
        body: r#"{"message":"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}"#,
        gone: "/messages/2/reasoning_content",
        compat: r#""neverSent":["reasoning_content"]"#,
    },
    Case {
        source: "https://github.com/ITSpecialist111/ai_automation_suggester/issues/38",
        style: "openai",
        status: 400,
        body: r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
        gone: "/max_tokens",
        compat: r#""outputLimit":"max_completion_tokens""#,
    },
    Case {
        source: "https://docs.claude.com/en/api/errors: extra inputs are not permitted",
        style: "anthropic",
        status: 400,
        body: r#"{"type":"error","error":{"type":"invalid_request_error","message":"cache_control: Extra inputs are not permitted"}}"#,
        gone: "/cache_control",
        compat: r#""neverSent":["cache_control"]"#,
    },
    Case {
        source: "https://github.com/ollama/ollama/issues/17301",
        style: "anthropic",
        status: 400,
        body: r#"{"type":"error","error":{"type":"invalid_request_error","message":"this model does not support image input"}}"#,
        gone: "/messages/0/content/1/source",
        compat: r#""images":"none""#,
    },
    Case {
        source: "https://github.com/ggml-org/llama.cpp/issues/13566",
        style: "openai",
        status: 500,
        body: r#"{"error":{"code":500,"message":"image input is not supported by this server","type":"server_error"}}"#,
        gone: "/messages/1/content/1/image_url",
        compat: r#""images":"none""#,
    },
    Case {
        source: "https://github.com/Wei-Shaw/sub2api/issues/2863",
        style: "openai-responses",
        status: 400,
        body: r#"{"error":{"code":"invalid_encrypted_content","message":"The encrypted content zzz could not be verified.","param":null,"type":"invalid_request_error"}}"#,
        gone: "/input/1/encrypted_content",
        compat: r#""neverSent":["encrypted_content"]"#,
    },
    Case {
        source: "https://platform.openai.com/docs/api-reference/responses: include",
        style: "openai-responses",
        status: 400,
        body: r#"{"error":{"message":"Unknown parameter: 'include'.","type":"invalid_request_error","param":"include","code":"unknown_parameter"}}"#,
        gone: "/include",
        compat: r#""neverSent":["include"]"#,
    },
    Case {
        source: "https://docs.litellm.ai/docs/completion/drop_params (as LiteLLM 1.8x words it)",
        style: "openai",
        status: 400,
        body: r#"{"error":{"message":"litellm.UnsupportedParamsError: smol doesn't support `reasoning.effort`","type":"invalid_request_error","param":null,"code":"400"}}"#,
        gone: "/reasoning_effort",
        compat: r#""neverSent":["reasoning_effort"]"#,
    },
    Case {
        source: "https://docs.litellm.ai/docs/completion/drop_params (as LiteLLM 1.8x words it)",
        style: "openai-responses",
        status: 400,
        body: r#"{"error":{"message":"litellm.UnsupportedParamsError: smol doesn't support `reasoning.effort`","type":"invalid_request_error","param":null,"code":"400"}}"#,
        gone: "/reasoning",
        compat: r#""neverSent":["reasoning"]"#,
    },
    Case {
        source: "https://docs.litellm.ai/docs/completion/drop_params (as LiteLLM 1.8x words it)",
        style: "anthropic",
        status: 400,
        body: r#"{"error":{"message":"litellm.UnsupportedParamsError: smol doesn't support `reasoning.effort`","type":"invalid_request_error","param":null,"code":"400"}}"#,
        gone: "/output_config",
        compat: r#""neverSent":["thinking","output_config"]"#,
    },
];

fn conversation(style: &str) -> qoder_core::ports::ModelRequest {
    let image = ContentBlock::Image {
        source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    };
    let signature = match style {
        "openai" => "chat:",
        "openai-responses" => r#"responses:{"id":"rs_1","summary":[],"encrypted_content":"zzz"}"#,
        _ => "c2ln",
    };
    let thinking = ContentBlock::Thinking { thinking: "hm".into(), signature: signature.into() };
    let mut asked = request(vec![
        message(Role::User, vec![ContentBlock::text("look"), image]),
        message(Role::Assistant, vec![thinking, ContentBlock::text("a")]),
        user("continue"),
    ]);
    asked.max_output_tokens = Some(100);
    asked.effort = Some("high".into());
    asked
}

#[tokio::test]
async fn one_more_request_goes_out_without_what_was_refused() {
    for case in CASES {
        let refused = status(case.status, &[], case.body);
        let server = Server::start(vec![refused, ok(case.style), ok(case.style)]).await;
        let options = server.styled(case.style, "some-model");
        let model = resolve(&options).unwrap();
        let told = ask(&model, conversation(case.style)).await;
        told.reply();
        assert!(told.retries.is_empty(), "{}: it is no attempt", case.source);
        assert_eq!(told.notices.len(), 1, "{}", case.source);
        let notice = told.notices[0].replace(": ", ":").replace(", ", ",");
        assert!(notice.contains(case.compat), "{}: {notice}", case.source);
        assert!(notice.contains("\"baseUrl\""), "{notice}");
        // The same model, and one that is chosen anew with the same options, remember it.
        let again = ask(&resolve(&options).unwrap(), conversation(case.style)).await;
        assert!(!again.notices.iter().any(|notice| notice.contains("refused")), "{}", case.source);
        let bodies: Vec<Value> = server.requests().iter().map(Received::json).collect();
        assert_eq!(bodies.len(), 3, "{}", case.source);
        assert!(bodies[0].pointer(case.gone).is_some(), "{}: {}", case.source, bodies[0]);
        assert!(bodies[1].pointer(case.gone).is_none(), "{}: {}", case.source, bodies[1]);
        assert_eq!(bodies[1], bodies[2], "{}", case.source);
    }
}

// https://github.com/tailcallhq/forgecode/issues/1185: "supports at most 16384 completion tokens".
#[tokio::test]
async fn a_limit_that_is_named_is_kept_to() {
    for (style, field, body) in [
        (
            "openai",
            "max_tokens",
            r#"{"error":{"message":"max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided 9000."}}"#,
        ),
        (
            "anthropic",
            "max_tokens",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens for m"}}"#,
        ),
        (
            "openai-responses",
            "max_output_tokens",
            r#"{"error":{"message":"Invalid 'max_output_tokens': must be less than or equal to 4096"}}"#,
        ),
    ] {
        let server = Server::start(vec![status(400, &[], body), ok(style)]).await;
        let model = resolve(&server.styled(style, "some-model")).unwrap();
        let mut asked = request(vec![user("a")]);
        asked.max_output_tokens = Some(9000);
        let told = ask(&model, asked).await;
        told.reply();
        assert!(told.notices[0].contains("\"mostOutputTokens\":4096"), "{style}: {}", told.notices[0]);
        assert_eq!(server.requests()[1].json()[field], 4096, "{style}");
    }
}

/// How often the model was asked: a server that refuses without a reason is also asked for its list of models.
fn posts(server: &Server) -> usize {
    server.requests().iter().filter(|request| request.head.starts_with("POST ")).count()
}

#[tokio::test]
async fn a_refusal_that_comes_again_is_an_error() {
    let body = r#"{"error":{"message":"stream_options is not supported"}}"#;
    let server = Server::start(vec![status(400, &[], body); 5]).await;
    let model = resolve(&server.styled("openai", "m")).unwrap();
    for expected in [2, 3] {
        let told = ask(&model, request(vec![user("a")])).await;
        assert_eq!(told.failure().status, Some(400));
        assert_eq!(posts(&server), expected);
    }
}

#[tokio::test]
async fn a_refusal_that_names_nothing_is_an_error_at_once() {
    for (code, body) in [
        (400, r#"{"error":{"message":"please include a message in the store"}}"#),
        (400, r#"{"error":{"message":"messages: at least one is required"}}"#),
        (401, r#"{"error":{"message":"stream_options is not supported"}}"#),
        (400, ""),
        (422, "<html>unknown</html>"),
    ] {
        let server = Server::start(vec![status(code, &[], body); 3]).await;
        let told = ask(&resolve(&server.styled("openai", "m")).unwrap(), request(vec![user("a")])).await;
        assert!(told.result.is_err() && told.notices.is_empty(), "{body}");
        assert_eq!(posts(&server), 1, "{body}");
    }
}
