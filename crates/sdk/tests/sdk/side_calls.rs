//! What a session asks a model for beside the conversation: a title, and what the person might ask next.

use futures::StreamExt;
use qoder_agent_sdk::{Message, QoderSdkClient, list_sessions, query};
use serde_json::json;

use crate::support::{Place, all, within};

#[tokio::test]
async fn a_title_is_found_and_kept_when_that_is_wanted() {
    let place = Place::new();
    let replies = json!([
        { "when": { "purpose": "title" }, "text": "\"Fixing the login\"\n", "repeat": true },
        { "text": "hello" },
    ]);
    let mut client = QoderSdkClient::new(place.playing(&replies));
    within(client.connect(Some("Hi.".into()))).await.unwrap();
    all(client.receive_response()).await;
    let titles = || list_sessions(&place.sessions()).unwrap()[0].custom_title.clone();
    let title = within(client.generate_session_title("the login is broken", false)).await.unwrap();
    assert_eq!((title.as_deref(), titles()), (Some("Fixing the login"), None));
    within(client.generate_session_title("the login is broken", true)).await.unwrap();
    assert_eq!(titles().as_deref(), Some("Fixing the login"));
    let error = within(client.generate_session_title(" ", true)).await.unwrap_err();
    assert!(error.to_string().contains("`description` is empty"), "{error}");
    within(client.disconnect()).await.unwrap();
}

#[tokio::test]
async fn a_suggestion_follows_a_result_when_that_is_wanted() {
    let place = Place::new();
    let replies = json!([
        { "when": { "purpose": "suggestion" }, "text": "Now run the tests.", "repeat": true },
        { "text": "hello" },
    ]);
    let messages = all(query("Hi.", place.playing(&replies)).unwrap()).await;
    assert!(messages.last().unwrap().as_result().is_some());
    let messages = all(query("Hi.", place.playing(&replies).prompt_suggestions(true)).unwrap()).await;
    let [.., result, Message::PromptSuggestion(suggestion)] = messages.as_slice() else {
        panic!("{messages:#?}")
    };
    assert!(result.as_result().is_some());
    assert_eq!(suggestion.suggestion, "Now run the tests.");
    let none = json!([{ "when": { "purpose": "suggestion" }, "text": "NONE" }, { "text": "hello" }]);
    let messages = all(query("Hi.", place.playing(&none).prompt_suggestions(true)).unwrap()).await;
    assert!(messages.last().unwrap().as_result().is_some());
}

#[tokio::test]
async fn a_prompt_that_comes_meanwhile_is_answered_in_place_of_a_suggestion() {
    let place = Place::new();
    let replies = json!([
        { "when": { "purpose": "suggestion" }, "text": "Now run the tests.", "repeat": true },
        { "text": "one" },
        { "text": "two" },
    ]);
    let mut client = QoderSdkClient::new(place.playing(&replies).prompt_suggestions(true));
    within(client.connect(None)).await.unwrap();
    client.query("One.").await.unwrap();
    client.query("Two.").await.unwrap();
    let mut messages = Box::pin(client.receive_messages());
    let mut results = Vec::new();
    while results.len() < 2 {
        let message = within(messages.next()).await.unwrap().unwrap();
        results.extend(message.as_result().map(|result| result.text().to_owned()));
    }
    assert_eq!(results, ["one", "two"]);
}
