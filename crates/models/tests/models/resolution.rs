//! From names, settings, flags and environment to a route:
//! which provider, which model, which key, and what is
//! refused.

use std::collections::BTreeMap;

use qoder_models::{ModelOptions, ModelSettings, SECRET_ENVIRONMENT, configured_secrets, resolve};
use serde_json::json;

use crate::support::{Server, anthropic_text, ask_once, events};

fn with_environment(pairs: &[(&str, &str)]) -> ModelOptions {
    ModelOptions {
        environment: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        max_attempts: 1,
        ..ModelOptions::default()
    }
}

fn name_of(options: &ModelOptions) -> String {
    resolve(options).unwrap().facts().name
}

#[test]
fn without_any_provider_the_offline_model_answers() {
    let facts = resolve(&ModelOptions::default()).unwrap().facts();
    assert_eq!((facts.name.as_str(), facts.key_source), ("offline", "none"));
    let mut options = ModelOptions::default();
    for name in ["auto", "offline", " ", ""] {
        options.model = Some(name.into());
        assert_eq!(name_of(&options), "offline", "{name:?}");
    }
    options.model = Some("absent/model".into());
    assert_eq!(resolve(&options).err().unwrap().code(), "model_unknown_provider");
}

#[test]
fn a_model_that_was_named_is_never_another_one() {
    for name in ["claude-sonnet-4-5", "gpt-5", "performance", "lite", "anything"] {
        let named = ModelOptions { model: Some(name.into()), ..ModelOptions::default() };
        let error = resolve(&named).err().unwrap();
        assert_eq!(error.code(), "model_no_provider", "{name}");
        assert!(error.to_string().contains(name) && error.hint().contains("offline"), "{error}");
        let behind = ModelOptions { fallback_model: Some(name.into()), ..ModelOptions::default() };
        assert_eq!(resolve(&behind).err().unwrap().code(), "model_no_provider", "{name}");
    }
}

#[test]
fn names_choose_among_providers_of_the_environment() {
    let mut options = with_environment(&[
        ("ANTHROPIC_API_KEY", "a"),
        ("OPENAI_API_KEY", "o"),
        ("ANTHROPIC_MODEL", "claude-mine"),
        ("OPENAI_MODEL", "gpt-mine"),
    ]);
    assert_eq!(name_of(&options), "claude-mine");
    options.model = Some("gpt-4.1".into());
    let facts = resolve(&options).unwrap().facts();
    assert_eq!((facts.name.as_str(), facts.context_window, facts.key_source), ("gpt-4.1", 1_047_576, "user"));
    options.model = Some("openai/strange".into());
    assert_eq!(name_of(&options), "strange");
    options.environment.remove("ANTHROPIC_API_KEY");
    options.model = None;
    assert_eq!(name_of(&options), "gpt-mine");
    options.model = Some("anthropic/claude-x".into());
    assert_eq!(name_of(&options), "anthropic/claude-x", "an id with a slash, for the one provider there is");
}

#[test]
fn tiers_and_settings() {
    let settings: ModelSettings = serde_json::from_value(json!({
        "providers": {
            "work": {"protocol": "anthropic", "baseUrl": "https://work.test", "apiKey": "key-of-work", "models": ["w1", "w2"]},
            "home": {"protocol": "openai-chat", "baseUrl": "http://localhost:1/v1", "models": ["h1"]}
        },
        "tiers": {"ultimate": "work/big", "lite": "offline"},
        "contextWindows": {"big": 12345},
        "maxOutputTokens": {"big": 77},
        "somethingNew": true
    }))
    .unwrap();
    let mut options = ModelOptions { settings, ..ModelOptions::default() };
    assert_eq!(name_of(&options), "h1", "the first provider's first model");
    for (name, expected) in
        [("w2", "w2"), ("work/any", "any"), ("ultimate", "big"), ("lite", "offline"), ("free", "free")]
    {
        options.model = Some(name.into());
        assert_eq!(name_of(&options), expected);
    }
    options.model = Some("ultimate".into());
    let facts = resolve(&options).unwrap().facts();
    assert_eq!((facts.context_window, facts.max_output_tokens), (12345, 77));
    options.model = Some("other/x".into());
    let error = resolve(&options).err().unwrap();
    assert!(error.hint().contains("home, work"), "{}", error.hint());
    assert_eq!(configured_secrets(&options), ["key-of-work"]);
    assert!(!format!("{:?}", options.settings).contains("key-of-work"));
}

#[test]
fn mistakes_have_codes_and_hints() {
    let with = |provider: serde_json::Value| ModelOptions {
        settings: serde_json::from_value(json!({"providers": {"p": provider}})).unwrap(),
        ..ModelOptions::default()
    };
    let cases = [
        (with(json!({"protocol": "gopher"})), "model_unknown_protocol"),
        (with(json!({"baseUrl": "not a url"})), "model_bad_url"),
        (with(json!({"apiKeyEnv": "NOT_SET"})), "model_missing_environment"),
        (with(json!({"headers": {"bad header": "x"}})), "model_bad_header"),
        (
            ModelOptions { model: Some("scripted:/does/not/exist".into()), ..ModelOptions::default() },
            "model_unreadable_file",
        ),
    ];
    for (options, code) in cases {
        let error = resolve(&options).err().unwrap();
        assert_eq!(error.code(), code);
        assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    }
}

#[tokio::test]
async fn tokens_and_headers_travel_as_configured() {
    let server = Server::start(vec![events(&anthropic_text("ok")); 4]).await;
    let gateway =
        with_environment(&[("QODER_BASE_URL", &server.url), ("QODER_PERSONAL_ACCESS_TOKEN", "pat-123456")]);
    ask_once(&gateway).await.reply();
    let token =
        with_environment(&[("ANTHROPIC_BASE_URL", &server.url), ("ANTHROPIC_AUTH_TOKEN", "tok-123456")]);
    ask_once(&token).await.reply();
    let keyless = with_environment(&[("ANTHROPIC_BASE_URL", &server.url)]);
    ask_once(&keyless).await.reply();
    let mut headers = ModelOptions {
        environment: BTreeMap::from([("MY_KEY".to_owned(), "env-key-1".to_owned())]),
        ..ModelOptions::default()
    };
    headers.settings =
        serde_json::from_value(json!({"providers": {"p": {"baseUrl": server.url, "apiKeyEnv": "MY_KEY",
        "headers": {"X-Team": "blue"}}}}))
        .unwrap();
    ask_once(&headers).await.reply();

    let requests = server.requests();
    assert_eq!(requests[0].header("authorization").as_deref(), Some("Bearer pat-123456"));
    assert_eq!(requests[0].json()["model"], "auto", "the gateway knows the tiers itself");
    assert_eq!(requests[1].header("authorization").as_deref(), Some("Bearer tok-123456"));
    assert_eq!(requests[1].header("x-api-key"), None);
    assert_eq!((requests[2].header("authorization"), requests[2].header("x-api-key")), (None, None));
    assert_eq!(requests[3].header("x-api-key").as_deref(), Some("env-key-1"));
    assert_eq!(requests[3].header("x-team").as_deref(), Some("blue"));
    assert_eq!(configured_secrets(&headers), ["env-key-1"]);
    assert!(SECRET_ENVIRONMENT.contains(&"QODER_PERSONAL_ACCESS_TOKEN"));
}

#[tokio::test]
async fn a_version_in_the_address_is_not_added_again() {
    let reply = json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]});
    for (path, expected) in [
        ("", "/v1/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
        ("/openai/deployments/mine?api-version=1", "/openai/deployments/mine/chat/completions?api-version=1"),
    ] {
        let server = Server::start(vec![events(std::slice::from_ref(&reply))]).await;
        let mut options = server.styled("openai", "m");
        options.base_url = Some(format!("{}{path}", server.url));
        ask_once(&options).await.reply();
        assert!(server.requests()[0].head.starts_with(&format!("POST {expected} ")), "{path}");
    }
}
