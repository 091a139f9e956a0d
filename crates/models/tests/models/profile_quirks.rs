//! What each profile does otherwise, shown by the bytes of requests. Each case names the public source of the quirk.

use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, ImageSource, Role, ToolDefinition, ToolResultContent};
use serde_json::{Value, json};

use crate::support::{Server, anthropic_text, ask, events, message, request, user};

fn answer(style: &str) -> Vec<Value> {
    match style {
        "anthropic" => anthropic_text("ok"),
        "openai" => vec![json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})],
        _ => vec![
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    }
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: "Bash".into(), input: json!({"command": "ls"}) }
}

fn result(id: &str, content: ToolResultContent) -> ContentBlock {
    ContentBlock::ToolResult { tool_use_id: id.into(), content, is_error: false }
}

fn image() -> ContentBlock {
    ContentBlock::Image {
        source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    }
}

fn thinking(signature: &str) -> ContentBlock {
    ContentBlock::Thinking { thinking: "hm".into(), signature: signature.into() }
}

/// A conversation with everything that servers differ in: reasoning, a call, a result with an image, two prompts in a row.
async fn body_with(profile: &str, style: &str, change: impl Fn(&mut ModelOptions)) -> Value {
    let server = Server::start(vec![events(&answer(style))]).await;
    let mut options = server.styled(style, "some-model");
    options.compat = json!(profile);
    change(&mut options);
    let mut asked = request(vec![
        user("first"),
        message(Role::Assistant, vec![thinking("chat:"), call("call_8a2f_long-id")]),
        message(
            Role::User,
            vec![
                result(
                    "call_8a2f_long-id",
                    ToolResultContent::Blocks(vec![ContentBlock::text("seen"), image()]),
                ),
                ContentBlock::text("and now?"),
            ],
        ),
        user("hello?"),
    ]);
    asked.system = [].into();
    asked.effort = Some("high".into());
    asked.max_output_tokens = Some(100);
    asked.parameters.insert("store".into(), json!(true));
    asked.parameters.insert("parallel_tool_calls".into(), json!(false));
    asked.tools = vec![ToolDefinition {
        name: "Bash".into(),
        description: "Runs.".into(),
        input_schema: json!({"$schema": "s", "type": "object", "properties": {"n": {"exclusiveMinimum": 0}}})
            .into(),
    }]
    .into();
    ask(&resolve(&options).unwrap(), asked).await.reply();
    server.requests()[0].json()
}

async fn body(profile: &str, style: &str) -> Value {
    body_with(profile, style, |_| {}).await
}

fn roles(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

// Ids: https://github.com/langchain-ai/langchain/pull/24668 quotes "must be a-z, A-Z, 0-9, with a length of 9".
// Order: https://github.com/zed-industries/zed/issues/37021 quotes "Unexpected role 'user' after role 'tool'".
#[tokio::test]
async fn mistral_wants_short_ids_and_an_assistant_behind_results() {
    let body = body("mistral", "openai").await;
    assert_eq!(roles(&body), ["user", "assistant", "tool", "assistant", "user"]);
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(body["messages"][2]["tool_call_id"], id);
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert!(body.get("stream_options").is_none() && body.get("store").is_none());
    assert_eq!(body["max_tokens"], 100);
}

// https://github.com/janhq/jan/issues/8136: "property 'reasoning_content' is unsupported";
// https://github.com/fanenr/chatbot/issues/21: "property 'store' is unsupported".
#[tokio::test]
async fn groq_takes_neither_reasoning_nor_store() {
    let body = body("groq", "openai").await;
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert_eq!(body.get("store"), None);
    assert_eq!(body["max_completion_tokens"], 100);
}

// https://github.com/QwenLM/qwen-code/issues/11045: `reasoning` is accepted back, `reasoning_content` is not.
#[tokio::test]
async fn cerebras_takes_reasoning_under_its_own_name() {
    let body = body("cerebras", "openai").await;
    assert_eq!(body["messages"][1]["reasoning"], "hm");
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
}

// https://api-docs.deepseek.com/guides/thinking_mode and https://github.com/earendil-works/pi/issues/3636 (DeepSeek);
// https://github.com/anomalyco/opencode/issues/16318 (Kimi): calls without `reasoning_content` are refused.
#[tokio::test]
async fn deepseek_and_kimi_want_reasoning_beside_every_call() {
    for profile in ["deepseek", "kimi"] {
        assert_eq!(body(profile, "openai").await["messages"][1]["reasoning_content"], "hm", "{profile}");
    }
    let server = Server::start(vec![events(&answer("openai"))]).await;
    let mut options = server.styled("openai", "m");
    options.compat = json!("kimi");
    let mut asked = request(vec![
        user("go"),
        message(Role::Assistant, vec![call("functions.Bash:0")]),
        message(Role::User, vec![result("functions.Bash:0", ToolResultContent::Text(String::new()))]),
    ]);
    asked.system = [].into();
    ask(&resolve(&options).unwrap(), asked).await.reply();
    let body = server.requests()[0].json();
    assert!(body["messages"][1]["reasoning_content"].is_string());
    assert_eq!(
        body["messages"][1]["tool_calls"][0]["id"], "functions.Bash:0",
        "its own ids go back as they came"
    );
    assert_eq!(body["messages"][2]["content"], "(no output)");
}

// https://github.com/lessweb/deepcode-cli/issues/50: "unknown variant image_url, expected text".
#[tokio::test]
async fn a_text_stands_for_images_where_none_are_taken() {
    for (profile, style) in
        [("deepseek", "openai"), ("deepseek", "anthropic"), ("deepseek", "openai-responses")]
    {
        let sent = body(profile, style).await.to_string();
        assert!(!sent.contains("AAAA"), "{style}: {sent}");
        assert!(sent.contains("does not take images"), "{style}: {sent}");
    }
    let sent = body("openai", "openai").await.to_string();
    assert!(sent.contains("data:image/png;base64,AAAA"));
}

// https://github.com/pizza-bot-app/pizza-bot/issues/62: Unknown name "exclusiveMinimum" at tools[0]…
#[tokio::test]
async fn gemini_gets_schemas_without_the_keywords_that_it_refuses() {
    let body = body("gemini", "openai").await;
    assert_eq!(
        body["tools"][0]["function"]["parameters"],
        json!({"type": "object", "properties": {"n": {"minimum": 0}}})
    );
    assert_eq!(body.get("parallel_tool_calls"), None);
}

// https://github.com/ITSpecialist111/ai_automation_suggester/issues/38: use 'max_completion_tokens' instead.
#[tokio::test]
async fn openai_and_azure_name_the_output_limit_anew() {
    for profile in ["openai", "azure", "xai"] {
        let body = body(profile, "openai").await;
        assert_eq!(
            (body["max_completion_tokens"].as_u64(), body.get("max_tokens")),
            (Some(100), None),
            "{profile}"
        );
    }
}

// https://docs.litellm.ai/docs/reasoning_content: `thinking_blocks` go back with their signatures.
#[tokio::test]
async fn litellm_gets_signed_reasoning_as_thinking_blocks() {
    let server = Server::start(vec![events(&answer("openai"))]).await;
    let mut options = server.styled("openai", "claude");
    options.compat = json!("litellm");
    let asked = request(vec![
        user("go"),
        message(Role::Assistant, vec![thinking("c2ln"), ContentBlock::text("a")]),
        user("b"),
    ]);
    ask(&resolve(&options).unwrap(), asked).await.reply();
    assert_eq!(
        server.requests()[0].json()["messages"][2]["thinking_blocks"],
        json!([{"type": "thinking", "thinking": "hm", "signature": "c2ln"}])
    );
}

// https://github.com/vllm-project/vllm/issues/6862: "conversation roles must alternate user/assistant/…".
#[tokio::test]
async fn local_and_unknown_servers_get_alternating_roles() {
    for profile in ["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "unknown-chat"] {
        let body = body(profile, "openai").await;
        assert_eq!(roles(&body), ["user", "assistant", "tool", "user"], "{profile}");
        assert!(body["messages"][3]["content"].to_string().contains("hello?"), "{profile}");
    }
    let body = body("openai", "openai").await;
    assert_eq!(roles(&body), ["user", "assistant", "tool", "user", "user"]);
}

// https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/261: "'content' field must be a string or an array", and
// https://github.com/ggml-org/llama.cpp/issues/13471, which words it alike.
#[tokio::test]
async fn servers_that_refuse_null_get_an_empty_text() {
    for profile in ["lmstudio", "llamacpp"] {
        assert_eq!(body(profile, "openai").await["messages"][1]["content"], "", "{profile}");
    }
    assert_eq!(body("vllm", "openai").await["messages"][1]["content"], Value::Null);
}

// https://github.com/Wei-Shaw/claude-relay-service/pull/965: Bedrock accepts no fields that it does not know.
#[tokio::test]
async fn bedrock_and_vertex_get_no_mark_at_the_top() {
    for profile in ["bedrock", "vertex"] {
        let body = body(profile, "anthropic").await;
        assert_eq!(body.get("cache_control"), None, "{profile}");
        assert_eq!(body["tools"][0]["cache_control"], json!({"type": "ephemeral"}), "{profile}");
        assert_eq!(body.get("output_config"), None, "{profile}");
    }
    assert!(body("anthropic", "anthropic").await.get("cache_control").is_some());
}

// https://docs.getbifrost.ai/providers/supported-providers/ollama: `prompt_cache_key` and `store` are not supported.
#[tokio::test]
async fn local_servers_get_no_fields_of_the_hosted_service() {
    for profile in ["ollama", "vllm", "llamacpp"] {
        let body = body(profile, "openai-responses").await;
        for field in ["store", "include", "prompt_cache_key"] {
            assert_eq!(body.get(field), None, "{profile} {field}");
        }
    }
    let body = body("openai", "openai-responses").await;
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
}

#[tokio::test]
async fn an_unknown_model_gets_no_output_limit_that_nobody_asked_for() {
    for (style, field) in [("openai", "max_tokens"), ("openai-responses", "max_output_tokens")] {
        let server = Server::start(vec![events(&answer(style)); 3]).await;
        let mut options = server.styled(style, "my-model");
        ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
        options.max_output_tokens = Some(77);
        ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
        options = server.styled(style, "gpt-4o");
        ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
        let sent: Vec<Value> =
            server.requests().iter().map(|request| request.json()[field].clone()).collect();
        assert_eq!(sent, [Value::Null, json!(77), json!(16_384)], "{style}");
    }
}
