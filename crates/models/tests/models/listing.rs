//! Lists of models: asked from the provider page by page,
//! completed from the settings, `offline` alone without
//! any provider.

use qoder_models::{ModelOptions, ProviderSettings, list_models};
use qoder_types::ModelFailureClass;
use serde_json::json;

use crate::support::{Server, status};

#[tokio::test]
async fn providers_are_asked() {
    let page = r#"{"data":[{"id":"claude-x","display_name":"Claude X","type":"model"},{"id":"claude-y"}],"has_more":false}"#;
    let server = Server::start(vec![status(200, &[("content-type", "application/json")], page)]).await;
    let models = list_models(&server.options()).await.unwrap();
    assert_eq!(models.len(), 2);
    assert_eq!((models[0].id.as_str(), models[0].display_name.as_deref()), ("claude-x", Some("Claude X")));
    let received = &server.requests()[0];
    assert!(received.head.starts_with("GET /v1/models "), "{}", received.head);
    assert_eq!(received.header("x-api-key").as_deref(), Some("sk-ant-secret-1"));
}

#[tokio::test]
async fn settings_stand_in_for_a_provider_that_cannot_say() {
    let server = Server::start(vec![status(404, &[], ""), status(404, &[], "")]).await;
    let mut options = ModelOptions::default();
    let provider = ProviderSettings {
        protocol: Some("openai".into()),
        base_url: Some(server.url.clone()),
        models: vec!["local-7b".into()],
        ..ProviderSettings::default()
    };
    options.settings.providers.insert("local".into(), provider);
    let models = list_models(&options).await.unwrap();
    assert_eq!((models[0].id.as_str(), models[0].provider.as_str()), ("local-7b", "local"));
    let failure = list_models(&server.options()).await.unwrap_err();
    assert_eq!(failure.class, ModelFailureClass::NotFound);
}

#[tokio::test]
async fn without_a_provider_only_offline_is_listed() {
    let models = list_models(&ModelOptions::default()).await.unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["offline"]);
}

fn page(body: &serde_json::Value) -> Vec<crate::support::Step> {
    status(200, &[("content-type", "application/json")], &body.to_string())
}

#[tokio::test]
async fn pages_are_followed_and_entries_without_id_are_skipped() {
    let first = json!({"data": [{"id": "a"}, {"display_name": "nameless"}, {"id": null}, 7, {"id": "b x"}],
        "has_more": true, "last_id": "b x"});
    let second = json!({"data": [{"id": "c", "display_name": null}], "has_more": false, "last_id": "c"});
    let server = Server::start(vec![page(&first), page(&second)]).await;
    let models = list_models(&server.options()).await.unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["a", "b x", "c"]);
    let head = &server.requests()[1].head;
    assert!(head.starts_with("GET /v1/models?after_id=b+x "), "{head}");
}

#[tokio::test]
async fn a_provider_that_always_promises_more_is_left_after_twenty_pages() {
    let endless = |number: usize| {
        let id = format!("model-{number}");
        page(&json!({"data": [{"id": id}], "has_more": true, "last_id": id}))
    };
    let server = Server::start((0..30).map(endless).collect()).await;
    assert_eq!(list_models(&server.options()).await.unwrap().len(), 20);
    assert_eq!(server.requests().len(), 20);

    let same = json!({"data": [{"id": "a"}], "has_more": true, "last_id": "a"});
    let server = Server::start(vec![page(&same); 5]).await;
    assert_eq!(list_models(&server.options()).await.unwrap().len(), 1);
    assert_eq!(server.requests().len(), 2, "a page that brings nothing new is the last");
}

/// Ids and names.
type Listed = &'static [(&'static str, Option<&'static str>)];

/// Lists as servers send them, with their public source.
const FORMS: &[(&str, &str, Listed)] = &[
    (
        "https://platform.openai.com/docs/api-reference/models/list",
        r#"{"object":"list","data":[{"id":"gpt-5","object":"model","created":1,"owned_by":"openai"}]}"#,
        &[("gpt-5", None)],
    ),
    (
        "https://docs.together.ai/reference/models-1",
        r#"[{"id":"meta-llama/Llama-3","object":"model","display_name":"Llama 3"},"plain-name"]"#,
        &[("meta-llama/Llama-3", Some("Llama 3")), ("plain-name", None)],
    ),
    (
        "https://docs.ollama.com/api/tags",
        r#"{"models":[{"name":"gemma3:latest","model":"gemma3:latest","size":1,"details":{"family":"gemma"}}]}"#,
        &[("gemma3:latest", None)],
    ),
    (
        "https://ai.google.dev/api/models#method:-models.list",
        r#"{"models":[{"name":"models/gemini-2.5-flash","displayName":"Gemini 2.5 Flash"}]}"#,
        &[("gemini-2.5-flash", Some("Gemini 2.5 Flash"))],
    ),
    (
        "https://ai.google.dev/gemini-api/docs/openai#list-models",
        r#"{"object":"list","data":[{"id":"models/gemini-2.5-pro","object":"model","display_name":"Gemini 2.5 Pro"}]}"#,
        &[("gemini-2.5-pro", Some("Gemini 2.5 Pro"))],
    ),
    (
        "https://openrouter.ai/docs/api-reference/list-available-models",
        r#"{"data":[{"id":"openai/gpt-5","name":"OpenAI: GPT-5","pricing":{"prompt":"0.1"},"context_length":400000}]}"#,
        &[("openai/gpt-5", Some("OpenAI: GPT-5"))],
    ),
    (
        "https://docs.litellm.ai/docs/proxy/model_management",
        r#"{"data":[{"id":"claude","object":"model","created":1677610602,"owned_by":"openai"}],"object":"list"}"#,
        &[("claude", None)],
    ),
    ("https://github.com/ollama/ollama/issues/8178", r#"{"object":"list","data":null}"#, &[]),
];

#[tokio::test]
async fn every_form_of_list_is_read() {
    for (source, body, expected) in FORMS {
        let server = Server::start(vec![status(200, &[], body)]).await;
        let models = list_models(&server.styled("openai", "m")).await.unwrap();
        let found: Vec<(&str, Option<&str>)> =
            models.iter().map(|model| (model.id.as_str(), model.display_name.as_deref())).collect();
        assert_eq!(found, *expected, "{source}");
    }
}

#[tokio::test]
async fn a_server_without_the_usual_list_is_asked_for_its_own() {
    let tags = r#"{"models":[{"name":"qwen3:8b"}]}"#;
    let server = Server::start(vec![status(404, &[], "404 page not found"), status(200, &[], tags)]).await;
    let mut options = server.styled("openai", "m");
    options.compat = json!("ollama");
    assert_eq!(list_models(&options).await.unwrap()[0].id, "qwen3:8b");
    assert!(server.requests()[1].head.starts_with("GET /api/tags "), "{}", server.requests()[1].head);
}

#[tokio::test]
async fn what_is_not_a_list_is_quoted() {
    for body in ["<html>", r#"{"models": 7}"#, "7"] {
        let server = Server::start(vec![status(200, &[], body)]).await;
        let failure = list_models(&server.styled("openai", "m")).await.unwrap_err();
        assert!(failure.message.contains("not a list of models"), "{}", failure.message);
    }
    let refused = status(200, &[], r#"{"error":{"message":"no key","code":401}}"#);
    let server = Server::start(vec![refused]).await;
    let failure = list_models(&server.styled("openai", "m")).await.unwrap_err();
    assert_eq!(failure.class, ModelFailureClass::Authentication);
}
