//! Models on a key of one's own, behind a server of the test: both protocols, the parameters, what is accounted, and that
//! a failure stays one. And what belongs to the fixed mode only.

use futures::StreamExt;
use qoder_agent_sdk::{CustomModel, ModelPolicyResult, QoderAgentOptions, QoderSdkClient, query};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use crate::support::{Place, all, result, within};

fn replying() -> Reply {
    Reply::Blocks {
        thinking: None,
        text: Some("hello".to_owned()),
        tools: Vec::new(),
        stop_reason: None,
        usage: Some(json!({ "input_tokens": 1_000, "output_tokens": 20 })),
    }
}

fn custom(server: &ScriptedServer, style: Option<&str>) -> CustomModel {
    CustomModel {
        provider: "openai".to_owned(),
        model: "gpt-4o".to_owned(),
        api_key: "byok-key".to_owned(),
        url: Some(server.base_url()),
        style: style.map(str::to_owned),
    }
}

fn choosing(place: &Place, choice: ModelPolicyResult) -> QoderAgentOptions {
    place.options().model("offline").resolve_model(move |_| {
        let choice = choice.clone();
        async move { choice }
    })
}

#[tokio::test]
async fn style_openai_is_the_default_and_anthropic_the_other() {
    for (style, path, header, key) in [
        (None, "/v1/chat/completions", "authorization", "Bearer byok-key"),
        (Some("openai"), "/v1/chat/completions", "authorization", "Bearer byok-key"),
        (Some("anthropic"), "/v1/messages", "x-api-key", "byok-key"),
    ] {
        let place = Place::new();
        let server = ScriptedServer::start(Script::list(vec![replying()]));
        let choice = ModelPolicyResult::custom(custom(&server, style));
        let messages = all(query("Hi.", choosing(&place, choice)).unwrap()).await;
        assert_eq!(result(&messages).text(), "hello", "{messages:#?}");
        let request = server.requests().into_iter().find(|request| request.path == path).unwrap();
        assert_eq!(request.header(header), Some(key), "{style:?}");
        assert_eq!(request.json()["model"], "gpt-4o");
    }
}

#[tokio::test]
async fn parameters_override_those_of_the_request() {
    for style in ["openai", "anthropic"] {
        let place = Place::new();
        let server = ScriptedServer::start(Script::list(vec![replying()]));
        let mut choice = ModelPolicyResult::custom(custom(&server, Some(style)));
        let parameters = json!({ "temperature": 0.25, "max_tokens": 77, "model": "never", "messages": [] });
        choice.parameters = parameters.as_object().cloned();
        let messages = all(query("Hi.", choosing(&place, choice)).unwrap()).await;
        assert_eq!(result(&messages).text(), "hello");
        let body = server.requests().pop().unwrap().json();
        assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.25), &json!(77)), "{style}");
        assert_eq!(body["model"], "gpt-4o", "what a request has by itself stays");
        assert!(!body["messages"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn byok_calls_report_total_cost_usd_as_0_and_token_usage_as_is() {
    let place = Place::new();
    let server = ScriptedServer::start(Script::list(vec![replying()]));
    let choice = ModelPolicyResult::custom(custom(&server, None));
    let messages = all(query("Hi.", choosing(&place, choice)).unwrap()).await;
    let result = result(&messages);
    assert_eq!(result.total_cost_usd, Some(0.0));
    let usage = result.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (1_000, 20));
}

#[tokio::test]
async fn a_wrong_api_key_fails_the_query_and_nothing_falls_back() {
    let place = Place::new();
    let refusal = Reply::HttpError {
        status: 401,
        headers: Vec::new(),
        body: json!({ "error": { "message": "Incorrect API key provided" } }).to_string(),
    };
    let server = ScriptedServer::start(Script::list(vec![refusal]));
    let fallback = place.playbook(&json!([{ "text": "never", "repeat": true }]));
    let choice = ModelPolicyResult::custom(custom(&server, None));
    let messages = all(query("Hi.", choosing(&place, choice).fallback_model(fallback)).unwrap()).await;
    assert!(result(&messages).is_error, "{messages:#?}");
    assert!(
        !messages.iter().any(|message| message.as_assistant().is_some_and(|reply| reply.text() == "never"))
    );
}

#[tokio::test]
async fn a_provider_that_absent_knows_needs_a_url() {
    let place = Place::new();
    let unknown = CustomModel {
        provider: "absent".to_owned(),
        model: "m".to_owned(),
        api_key: "k".to_owned(),
        ..CustomModel::default()
    };
    let messages = all(query("Hi.", choosing(&place, ModelPolicyResult::custom(unknown))).unwrap()).await;
    assert!(result(&messages).errors[0].contains("`absent`"), "{messages:#?}");
}

#[tokio::test]
async fn set_model_counts_in_the_fixed_mode_only() {
    let place = Place::new();
    let other = place.playbook(&json!([{ "text": "the other one", "repeat": true }]));
    let chosen = place.playbook(&json!([{ "text": "chosen", "repeat": true }]));
    let fixed = place.options().model(chosen.clone());
    let dynamic = choosing(&place, ModelPolicyResult::model(chosen));
    for (options, expected) in [(fixed, "the other one"), (dynamic, "chosen")] {
        let mut client = QoderSdkClient::new(options);
        within(client.connect(None)).await.unwrap();
        within(client.set_model(Some(&other))).await.unwrap();
        client.query("Hi.").await.unwrap();
        let messages = all(client.receive_response()).await;
        assert_eq!(result(&messages).text(), expected);
        within(client.disconnect()).await.unwrap();
    }
}

#[tokio::test]
async fn fallback_model_counts_in_the_fixed_mode_only() {
    let place = Place::new();
    let failing = place.playbook(&json!([{ "error": { "status": 500, "message": "down" } }]));
    let fallback = place.playbook(&json!([{ "text": "from the fallback", "repeat": true }]));
    let fixed = place.options().model(failing.clone()).fallback_model(fallback.clone());
    let messages = all(query("Hi.", fixed).unwrap()).await;
    assert_eq!(result(&messages).text(), "from the fallback", "{messages:#?}");
    let dynamic = choosing(&place, ModelPolicyResult::model(failing)).fallback_model(fallback);
    let items: Vec<_> = within(query("Hi.", dynamic).unwrap().collect()).await;
    let failed = items.iter().flatten().find_map(|message| message.as_result()).unwrap();
    assert!(failed.is_error, "{items:#?}");
}
