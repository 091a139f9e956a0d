//! Which profile is in force, and why: the settings, the address, the name of the provider, and what a response shows.

use qoder_models::{ModelOptions, ModelSettings, profile_in_force, provider_profiles, resolve};
use serde_json::{Value, json};

use crate::support::{Server, ask, events, request, status, user};

fn options(providers: &Value, model: &str) -> ModelOptions {
    let settings: ModelSettings = serde_json::from_value(json!({ "providers": providers })).unwrap();
    ModelOptions { model: Some(model.into()), settings, ..ModelOptions::default() }
}

#[test]
fn settings_win_over_the_address_and_the_address_over_the_name() {
    let options = options(
        &json!({
            "a": {"protocol": "openai", "baseUrl": "https://api.mistral.ai/v1", "models": ["m"]},
            "b": {"protocol": "openai", "baseUrl": "https://api.mistral.ai/v1", "compat": "openai"},
            "c": {"protocol": "openai", "baseUrl": "https://api.mistral.ai/v1", "compat": {"userAfterTool": true}},
            "ollama": {"protocol": "openai", "baseUrl": "https://host.example.test/v1"},
            "d": {"protocol": "openai-responses", "baseUrl": "https://host.example.test/v1"},
        }),
        "a/m",
    );
    let all = provider_profiles(&options).unwrap();
    let shown: Vec<(&str, &str, &str)> = all
        .iter()
        .map(|found| (found.provider.as_str(), found.profile.name, found.reason.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("a", "mistral", "host `api.mistral.ai`"),
            ("b", "openai", "`providers.b.compat`"),
            ("c", "mistral", "host `api.mistral.ai`, with changes from `providers.c.compat`"),
            ("d", "unknown-responses", "the address does not say which server is at `host.example.test`"),
            ("ollama", "ollama", "the provider is called `ollama`"),
        ]
    );
    assert!(all[2].profile.user_after_tool && !all[0].profile.user_after_tool);
    assert_eq!(profile_in_force(&options).unwrap().unwrap().profile.name, "mistral");
    let local = ModelOptions { model: Some("offline".into()), ..options };
    assert_eq!(profile_in_force(&local).unwrap(), None);
}

#[test]
fn a_profile_that_does_not_exist_names_the_setting_and_the_nearest() {
    let options = options(&json!({"p": {"baseUrl": "http://h", "compat": "mistrall"}, "q": {}}), "q/m");
    let error = resolve(&options).err().unwrap();
    assert_eq!(error.code(), "model_unknown_profile");
    assert_eq!(error.to_string(), "`providers.p.compat`: no compatibility profile is called `mistrall`");
    assert!(error.hint().contains("`mistral`"), "{}", error.hint());
}

#[tokio::test]
async fn a_header_of_the_first_response_tells_the_server() {
    let refused = status(400, &[("server", "llama.cpp")], r#"{"error":{"message":"no"}}"#);
    let ok = events(&[json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})]);
    let server = Server::start(vec![refused, ok]).await;
    let mut options = server.styled("openai", "gpt-5");
    options.api_key_env = None;
    let model = resolve(&options).unwrap();
    ask(&model, request(vec![user("a")])).await.failure();
    ask(&model, request(vec![user("a")])).await.reply();
    let requests = server.requests();
    assert!(requests[0].json().get("max_completion_tokens").is_some(), "the careful row goes by the model");
    assert!(requests[1].json().get("max_tokens").is_some(), "llama.cpp calls it so for every model");
}

// https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html: models are `owned_by: vllm`; its responses carry the
// name of the web server alone.
#[tokio::test]
async fn a_list_of_models_tells_the_server_after_a_refusal_without_a_reason() {
    let unexplained = || status(400, &[("server", "uvicorn")], r#"{"error":{"message":"Bad Request"}}"#);
    let list = |owner: &str| {
        let list = json!({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]});
        status(200, &[("content-type", "application/json")], &list.to_string())
    };
    let completed = json!({"type": "response.completed",
        "response": {"id": "r", "status": "completed", "output": []}});
    let server = Server::start(vec![unexplained(), list("vllm"), events(&[completed]), unexplained()]).await;
    let model = resolve(&server.styled("openai-responses", "m")).unwrap();
    let told = ask(&model, request(vec![user("a")])).await;
    told.reply();
    assert!(told.notices[0].contains("`owned_by: vllm`"), "{:?}", told.notices);
    assert!(told.notices[0].contains(r#""compat":{"profile":"vllm"}"#), "{:?}", told.notices);
    ask(&model, request(vec![user("a")])).await.failure();
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "the list is asked for once");
    assert!(requests[1].head.starts_with("GET /v1/models "), "{}", requests[1].head);
    assert!(requests[0].json().get("store").is_some() && requests[2].json().get("store").is_none());

    let server = Server::start(vec![unexplained(), list("stranger"), unexplained()]).await;
    let model = resolve(&server.styled("openai", "m")).unwrap();
    for _ in 0..2 {
        ask(&model, request(vec![user("a")])).await.failure();
    }
    assert_eq!(server.requests().len(), 3, "the list is asked for once");
}
