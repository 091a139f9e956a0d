//! What the callback gets: every field of the context, and a purpose for each kind of call, all with the same
//! session id.

use std::sync::{Arc, Mutex};

use qoder_agent_sdk::{
    ModelPolicyContext, ModelPolicyResult, QoderAgentOptions, QoderSdkClient, Settings, query,
};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::support::{Place, all, result, within};

type Asked = Arc<Mutex<Vec<ModelPolicyContext>>>;

/// Options whose callback keeps what it gets and always chooses the playbook.
fn keeping(place: &Place, replies: &Value) -> (QoderAgentOptions, Asked) {
    let (chosen, asked) = (place.playbook(replies), Asked::default());
    let seen = Arc::clone(&asked);
    let options = place.options().model("offline").resolve_model(move |context| {
        seen.lock().unwrap().push(context);
        let chosen = chosen.clone();
        async move { ModelPolicyResult::model(chosen) }
    });
    (options, asked)
}

fn purposes(asked: &Asked) -> Vec<String> {
    asked.lock().unwrap().iter().map(|context| context.purpose.clone()).collect()
}

#[tokio::test]
async fn session_id_agent_id_and_turn_index_say_who_calls() {
    let place = Place::new();
    let call = json!({ "name": "Agent", "input": { "description": "look", "prompt": "Look around." } });
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": [call] },
        { "when": { "purpose": "subagent", "turn": 1 }, "toolCalls": [{ "name": "Glob", "input": { "pattern": "*" } }] },
        { "when": { "purpose": "subagent" }, "text": "I looked." },
        { "text": "done", "repeat": true },
    ]);
    let (options, asked) = keeping(&place, &replies);
    let messages = all(query("Go.", options.allowed_tools(["Agent"])).unwrap()).await;
    assert_eq!(result(&messages).text(), "done");
    let asked = asked.lock().unwrap();
    let told: Vec<(&str, u64)> = asked.iter().map(|each| (each.purpose.as_str(), each.turn_index)).collect();
    assert_eq!(told, [("main", 0), ("subagent", 0), ("subagent", 1), ("main", 1)]);
    let session = &result(&messages).session_id;
    assert!(asked.iter().all(|context| context.session_id == *session), "the same value for all: {asked:?}");
    let agents: Vec<&str> = asked.iter().map(|context| context.agent_id.as_str()).collect();
    assert_eq!((agents[0], agents[3]), ("main", "main"));
    assert!(!["", "main"].contains(&agents[1]) && agents[1] == agents[2], "{agents:?}");
}

#[tokio::test]
async fn a_fetched_page_is_read_for_the_purpose_web_fetch() {
    let place = Place::new();
    let page = ScriptedServer::start(Script::list(Vec::new()));
    let input = json!({ "url": format!("{}/v1/models", page.base_url()), "prompt": "Which models?" });
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": [{ "name": "WebFetch", "input": input }] },
        { "when": { "purpose": "web_fetch" }, "text": "Two." },
        { "text": "There are two.", "repeat": true },
    ]);
    let (options, asked) = keeping(&place, &replies);
    let messages = all(query("Go.", options.allowed_tools(["WebFetch(domain:127.0.0.1)"])).unwrap()).await;
    assert_eq!(result(&messages).text(), "There are two.", "{messages:#?}");
    assert_eq!(purposes(&asked), ["main", "web_fetch", "main"]);
}

#[tokio::test]
async fn a_summary_is_written_for_the_purpose_compact() {
    let place = Place::new();
    let usage = json!({ "input_tokens": 95_000, "output_tokens": 5 });
    let replies = json!([
        { "when": { "purpose": "compact" }, "text": "All is well so far." },
        { "when": { "contains": "All is well so far." }, "text": "done" },
        { "toolCalls": [{ "name": "Glob", "input": { "pattern": "*" } }], "usage": usage },
    ]);
    let settings = json!({ "model": { "contextWindow": 100_000 } });
    let (options, asked) = keeping(&place, &replies);
    let options = options.settings(Settings::Inline(settings.as_object().unwrap().clone()));
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "done");
    assert_eq!(purposes(&asked), ["main", "compact", "main"]);
}

#[tokio::test]
async fn a_title_is_found_for_the_purpose_title() {
    let place = Place::new();
    let replies = json!([
        { "when": { "purpose": "title" }, "text": "Fixing the login", "repeat": true },
        { "text": "hello", "repeat": true },
    ]);
    let (options, asked) = keeping(&place, &replies);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(Some("Hi.".into()))).await.unwrap();
    all(client.receive_response()).await;
    let title = within(client.generate_session_title("the login", false)).await.unwrap();
    within(client.disconnect()).await.unwrap();
    assert_eq!(title.as_deref(), Some("Fixing the login"));
    assert_eq!(purposes(&asked), ["main", "title"]);
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].session_id, asked[1].session_id);
}

#[tokio::test]
async fn available_models_are_those_of_get_available_models() {
    let place = Place::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let (chosen, asked) = (place.playbook(&json!([{ "text": "hello", "repeat": true }])), Asked::default());
    let seen = Arc::clone(&asked);
    let options = place
        .options()
        .env("OPENAI_API_KEY", "key")
        .env("OPENAI_BASE_URL", server.base_url())
        .model("scripted-large")
        .resolve_model_timeout_ms(10_000)
        .resolve_model(move |context| {
            seen.lock().unwrap().push(context);
            let chosen = chosen.clone();
            async move { ModelPolicyResult::model(chosen) }
        });
    let mut client = QoderSdkClient::new(options);
    within(client.connect(Some("Hi.".into()))).await.unwrap();
    all(client.receive_response()).await;
    let listed = within(client.get_available_models()).await;
    within(client.disconnect()).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|model| model.value.as_str()).collect();
    assert_eq!(names, ["scripted-large", "scripted-small"]);
    assert_eq!(asked.lock().unwrap()[0].available_models, listed);
}
