//! A session that runs as an agent of the program: its prompt, tools and limits, and the prompt that it begins with.

use qoder_agent_sdk::{AgentDefinition, Message, QoderSdkClient, query};
use serde_json::json;

use crate::support::{Place, all, result, within};
use futures::StreamExt;

fn reviewer() -> AgentDefinition {
    AgentDefinition {
        tools: Some(vec!["Read".to_owned(), "Grep".to_owned()]),
        initial_prompt: Some("Look around first.".to_owned()),
        ..AgentDefinition::new("Reviews.", "You review.")
    }
}

#[tokio::test]
async fn it_begins_with_its_own_prompt_and_has_its_own_tools() {
    let place = Place::new();
    let replies = json!([{ "text": "looked" }, { "text": "answered" }, { "text": "resumed" }]);
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let new = || place.playing(&replies).agent_definition("reviewer", reviewer()).agent("reviewer");
    let mut client = QoderSdkClient::new(new().session_id(id));
    within(client.connect(None)).await.unwrap();
    let first = all(client.receive_response()).await;
    assert_eq!(result(&first).text(), "looked");
    let tools = first.iter().find_map(|message| match message {
        Message::System(system) => system.init().map(|init| init.tools.clone()),
        _ => None,
    });
    assert_eq!(tools.unwrap(), ["Read", "Grep"]);
    client.query("And?").await.unwrap();
    assert_eq!(result(&all(client.receive_response()).await).text(), "answered");
    within(client.disconnect()).await.unwrap();
    let log = place.0.transcript_lines();
    assert!(log.iter().any(|line| line["message"]["content"] == "Look around first."));
    assert!(log.iter().any(|line| line["system"][0] == "You review."));
    // A session that has begun does not begin again.
    let resumed = all(query("Continue.", new().resume(id)).unwrap()).await;
    assert_eq!(result(&resumed).text(), "resumed");
    let prompts = place.0.transcript_lines();
    let begun = prompts.iter().filter(|line| line["type"] == "user" && line["origin"] == "prompt").count();
    assert_eq!(begun, 3);
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_told_with_those_that_are() {
    let place = Place::new();
    let options = place.playing(&json!([])).agent_definition("reviewer", reviewer()).agent("writer");
    let error = within(query("Go.", options).unwrap().next()).await.unwrap().unwrap_err();
    let known = "general-purpose, Explore, Plan, reviewer";
    assert_eq!(error.to_string(), format!("agent: there is no agent named `writer`; known are: {known}"));
}

#[tokio::test]
async fn a_definition_that_cannot_work_is_told_with_its_field() {
    let place = Place::new();
    let heroic = AgentDefinition { effort: Some("heroic".to_owned()), ..reviewer() };
    let options = place.playing(&json!([])).agent_definition("reviewer", heroic);
    let error = within(query("Go.", options).unwrap().next()).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("agents.reviewer.effort: is \"heroic\"; accepted are low, medium"), "{error}");
}
