//! Answers in a shape and what a run may spend, with the engine in process.

use qoder_agent_sdk::{QoderAgentOptions, ResultMessage, query};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::support::{Place, all, result, within};
use futures::StreamExt;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] })
}

async fn ended(options: QoderAgentOptions) -> ResultMessage {
    result(&all(query("Go.", options).unwrap()).await).clone()
}

#[tokio::test]
async fn the_answer_has_the_shape_that_was_asked_for() {
    let place = Place::new();
    let replies = json!([
        { "text": "It is 7." },
        { "toolCalls": [{ "name": "StructuredOutput", "input": { "n": "many" } }] },
        { "toolCalls": [{ "name": "StructuredOutput", "input": { "n": 7 } }] },
    ]);
    for format in [schema(), json!({ "type": "json_schema", "schema": schema() })] {
        let result = ended(place.playing(&replies).output_format(format)).await;
        assert!(!result.is_error, "{result:?}");
        assert_eq!((result.structured_output, result.num_turns), (Some(json!({ "n": 7 })), 3));
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error() {
    let place = Place::new();
    let replies = json!([{ "text": "It is 7.", "repeat": true }]);
    let result = ended(place.playing(&replies).output_format(schema())).await;
    assert_eq!(result.subtype, "error_max_structured_output_retries");
    assert_eq!((result.num_turns, result.structured_output), (5, None));
}

#[tokio::test]
async fn a_schema_that_is_none_is_told_by_the_name_of_the_option() {
    let place = Place::new();
    let options = place.playing(&json!([])).output_format(json!({ "type": "object", "required": 1 }));
    let error = within(query("Go.", options).unwrap().next()).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("output_format: this is no JSON Schema"), "{error}");
}

#[tokio::test]
async fn money_and_tokens_end_a_turn() {
    let place = Place::new();
    place.0.write("a.txt", "x");
    let server = ScriptedServer::start(Script::by(|_, number| Reply::Blocks {
        thinking: None,
        text: None,
        tools: vec![(format!("toolu_{number}"), "Read".to_owned(), json!({ "file_path": "a.txt" }))],
        stop_reason: None,
        usage: Some(json!({ "input_tokens": 1000, "output_tokens": 0 })),
    }));
    let prices = json!({ "model": { "prices": { "m": { "input": 1.0, "output": 1.0 } } } });
    let new = || {
        let settings = qoder_agent_sdk::Settings::Inline(prices.as_object().unwrap().clone());
        let keyed = place.options().env("ANTHROPIC_API_KEY", "key-of-the-test");
        keyed.env("ANTHROPIC_BASE_URL", server.base_url()).model("m").settings(settings)
    };
    let result = ended(new().max_budget_usd(0.0015)).await;
    assert_eq!((result.subtype.as_str(), result.num_turns), ("error_max_budget_usd", 2));
    let result = ended(new().task_budget(2500)).await;
    assert_eq!((result.subtype.as_str(), result.num_turns), ("error_max_task_budget", 3));
    assert_eq!(server.requests()[0].header("anthropic-beta"), None);
    ended(new().task_budget(1).betas(["one".to_owned(), "two".to_owned()])).await;
    assert_eq!(server.requests().last().unwrap().header("anthropic-beta"), Some("one,two"));
}
