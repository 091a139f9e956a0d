//! Lists of models: asked from the provider, completed
//! from the settings, `offline` alone without any
//! provider.

use qoder_models::{ModelOptions, ProviderSettings, list_models};
use qoder_types::ModelFailureClass;

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
