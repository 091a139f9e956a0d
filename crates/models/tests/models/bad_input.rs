//! Mistakes in addresses and keys: an error that names the setting and the nearest right form, before anything is sent; and
//! addresses that are complete already simply work.

use std::collections::BTreeMap;

use qoder_models::{ModelConfigError, ModelOptions, ModelSettings, resolve};
use serde_json::{Value, json};

use crate::support::{Server, ask, events, request, user};

fn provider(fields: &Value) -> ModelOptions {
    let settings: ModelSettings = serde_json::from_value(json!({"providers": {"work": fields}})).unwrap();
    ModelOptions { model: Some("work/m".into()), settings, ..ModelOptions::default() }
}

fn mistake(options: &ModelOptions) -> (String, ModelConfigError) {
    let error = resolve(options).err().unwrap();
    (format!("{error}. {}", error.hint()), error)
}

#[test]
fn an_address_without_a_scheme_names_the_setting_and_the_right_form() {
    for (written, meant) in [
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("localhost:8080", "http://localhost:8080"),
        ("localhost:8080/v1", "http://localhost:8080/v1"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("//gpu:8000/v1", "http://gpu:8000/v1"),
    ] {
        let (text, error) = mistake(&provider(&json!({"protocol": "openai", "baseUrl": written})));
        assert_eq!(error.code(), "model_bad_url");
        assert!(text.contains("`providers.work.baseUrl`"), "{text}");
        assert!(text.contains(&format!("did you mean `{meant}`?")), "{text}");
    }
    let flags = ModelOptions { base_url: Some("localhost:1".into()), ..ModelOptions::default() };
    assert!(mistake(&flags).0.contains("--base-url"));
    let environment = BTreeMap::from([("OPENAI_BASE_URL".to_owned(), "localhost:1".to_owned())]);
    let variable = ModelOptions { model: Some("gpt-5".into()), environment, ..ModelOptions::default() };
    assert!(mistake(&variable).0.contains("OPENAI_BASE_URL"));
}

#[tokio::test]
async fn a_complete_address_works() {
    let ok = json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]});
    let ends = [
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/chat/completions",
        "/v1/chat/completions/",
        "/v1/models",
        "/v1/responses",
        "/v1/completions",
    ];
    let server = Server::start(vec![events(&[ok]); ends.len()]).await;
    for end in ends {
        let mut options = server.styled("openai", "m");
        options.base_url = Some(format!("{}{end}", server.url));
        ask(&resolve(&options).unwrap(), request(vec![user("a")])).await.reply();
    }
    for received in server.requests() {
        assert!(received.head.starts_with("POST /v1/chat/completions "), "{}", received.head);
    }
}

#[test]
fn two_keys_are_one_too_many() {
    let (text, error) = mistake(&provider(&json!({"apiKey": "a-key", "apiKeyEnv": "WORK_KEY"})));
    assert_eq!(error.code(), "model_two_keys");
    assert!(
        text.contains("`providers.work.apiKey`") && text.contains("`providers.work.apiKeyEnv`"),
        "{text}"
    );
    assert!(!text.contains("a-key"));
}

#[test]
fn a_key_of_another_provider_is_not_sent() {
    for (key, url, protocol, owner, asked) in [
        ("sk-ant-api03-x", "https://api.openai.com", "openai", "Anthropic", "OpenAI"),
        ("sk-proj-x", "https://api.anthropic.com", "anthropic", "OpenAI", "Anthropic"),
        ("gsk_x", "https://api.mistral.ai", "openai", "Groq", "Mistral"),
        ("sk-or-v1-x", "https://api.deepseek.com", "openai", "OpenRouter", "DeepSeek"),
    ] {
        let options = provider(&json!({"protocol": protocol, "baseUrl": url, "apiKey": key}));
        let (text, error) = mistake(&options);
        assert_eq!(error.code(), "model_wrong_key");
        assert!(
            text.contains(owner) && text.contains(asked) && text.contains("`apiKey` of provider `work`"),
            "{text}"
        );
        assert!(!text.contains(key), "{text}");
    }
    // Gateways take whatever key they were made for.
    for url in ["https://gateway.example.com", "http://localhost:4000"] {
        assert!(
            resolve(&provider(&json!({"protocol": "openai", "baseUrl": url, "apiKey": "sk-ant-x"}))).is_ok()
        );
    }
    let environment = BTreeMap::from([("OPENAI_API_KEY".to_owned(), "sk-ant-x".to_owned())]);
    let options = ModelOptions { model: Some("gpt-5".into()), environment, ..ModelOptions::default() };
    assert!(mistake(&options).0.contains("OPENAI_API_KEY"));
}
