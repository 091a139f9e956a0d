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
