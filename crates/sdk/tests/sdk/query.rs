//! A query: one question or several, messages in order, and an end that leaves nothing behind.

use futures::StreamExt;
use qoder_agent_sdk::{Message, Prompt, UserMessage, list_sessions, query};
use serde_json::json;

use crate::support::{Place, all, result, within};

#[tokio::test]
async fn a_question_is_answered_with_messages_in_order() {
    let place = Place::new();
    let options = place.playing(&json!([{ "text": "Hello." }]));
    let messages = all(query("Say hello.", options).unwrap()).await;
    let Message::System(init) = &messages[0] else { panic!("{messages:#?}") };
    let init = init.init().unwrap();
    assert_eq!(init.cwd, place.0.project().display().to_string());
    assert!(init.tools.contains(&"Read".to_owned()));
    assert_eq!(messages[1].as_assistant().unwrap().text(), "Hello.");
    let result = result(&messages);
    assert_eq!((result.subtype.as_str(), result.text(), result.num_turns), ("success", "Hello.", 1));
    assert_eq!(Some(result.session_id.as_str()), messages[1].session_id());
    assert_eq!(messages.len(), 3);
}

#[tokio::test]
async fn messages_of_a_stream_are_turns_of_one_session() {
    let place = Place::new();
    let options = place.playing(&json!([{ "text": "first" }, { "text": "second" }]));
    let prompt = Prompt::stream(futures::stream::iter(["One.".into(), UserMessage::new("Two.")]));
    let messages = all(query(prompt, options).unwrap()).await;
    let results: Vec<&str> =
        messages.iter().filter_map(Message::as_result).map(qoder_agent_sdk::ResultMessage::text).collect();
    assert_eq!(results, ["first", "second"]);
    let ids: std::collections::BTreeSet<_> = messages.iter().filter_map(Message::session_id).collect();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn an_empty_stream_ends_at_once() {
    let place = Place::new();
    let prompt = Prompt::stream(futures::stream::empty());
    let messages = all(query(prompt, place.playing(&json!([]))).unwrap()).await;
    assert_eq!(messages, []);
}

#[tokio::test]
async fn an_empty_prompt_is_refused_before_anything_starts() {
    let place = Place::new();
    let error = query("  ", place.options()).unwrap_err();
    assert_eq!(error.to_string(), "prompt: a user message is empty");
    assert!(list_sessions(&place.sessions()).unwrap().is_empty());
}

#[tokio::test]
async fn what_only_the_start_can_show_is_the_first_item() {
    let place = Place::new();
    let mut messages = query("Hi.", place.options().model("scripted:nowhere.json")).unwrap();
    let error = within(messages.next()).await.unwrap().unwrap_err();
    assert_eq!(error.code(), "setup");
    assert!(
        error.to_string().starts_with("model: ") && error.to_string().contains("nowhere.json"),
        "{error}"
    );
    assert!(within(messages.next()).await.is_none());
}

#[tokio::test]
async fn a_turn_limit_ends_the_turn_with_an_error_result() {
    let place = Place::new();
    let replies = json!([{ "toolCalls": [{ "name": "Glob", "input": { "pattern": "*" } }], "repeat": true }]);
    let messages = all(query("Go.", place.playing(&replies).max_turns(2)).unwrap()).await;
    let result = result(&messages);
    assert_eq!((result.subtype.as_str(), result.is_error, result.num_turns), ("error_max_turns", true, 2));
    assert!(result.errors[0].contains("Raise `max_turns` or"), "{:?}", result.errors);
}

#[tokio::test]
async fn dropping_a_query_ends_its_session_and_frees_it() {
    let place = Place::new();
    let replies = json!([{ "text": "slow", "delayMs": 600_000 }]);
    let mut messages = query("Go.", place.playing(&replies)).unwrap();
    let first = within(messages.next()).await.unwrap().unwrap();
    let id = first.session_id().unwrap().to_owned();
    within(messages.close()).await;
    // The lock is free and the turn is on record as interrupted.
    let options =
        place.playing(&json!([{ "text": "slow" }, { "text": "again", "repeat": true }])).resume(&id);
    let messages = all(query("Again.", options).unwrap()).await;
    assert_eq!(result(&messages).session_id, id);
}

#[tokio::test]
async fn pieces_of_a_reply_add_up_to_it() {
    let place = Place::new();
    let replies = json!([{ "text": "The whole of the reply.", "chunks": 7 }]);
    let messages = all(query("Go.", place.playing(&replies).include_partial_messages(true)).unwrap()).await;
    let pieces: Vec<&str> = messages
        .iter()
        .filter_map(|message| match message {
            Message::StreamEvent(event) => event.text(),
            _ => None,
        })
        .collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces.concat(), "The whole of the reply.");
    let kinds: Vec<&str> = messages
        .iter()
        .filter_map(|message| match message {
            Message::StreamEvent(event) => event.event["type"].as_str(),
            _ => None,
        })
        .collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"message_start"), Some(&"message_stop")));
    assert_eq!(result(&messages).text(), "The whole of the reply.");
}

#[tokio::test]
async fn two_queries_of_one_program_do_not_meet() {
    let (one, two) = (Place::new(), Place::new());
    let first = query("Go.", one.playing(&json!([{ "text": "one" }]))).unwrap();
    let second = query("Go.", two.playing(&json!([{ "text": "two" }]))).unwrap();
    let (first, second) = tokio::join!(all(first), all(second));
    assert_eq!((result(&first).text(), result(&second).text()), ("one", "two"));
}

#[tokio::test]
async fn a_query_that_is_only_dropped_ends_as_well() {
    let place = Place::new();
    let mut messages = query("Go.", place.playing(&json!([{ "text": "slow", "delayMs": 600_000 }]))).unwrap();
    let id = within(messages.next()).await.unwrap().unwrap().session_id().unwrap().to_owned();
    drop(messages);
    let again = place.playing(&json!([{ "text": "again", "repeat": true }])).resume(&id);
    let resumed = within(async {
        loop {
            let items: Vec<_> = query("Again.", again.clone()).unwrap().collect().await;
            match items.into_iter().collect::<Result<Vec<Message>, _>>() {
                Ok(messages) => return messages,
                // Its thread is on its way out.
                Err(error) => assert_eq!(error.code(), "session_locked", "{error}"),
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(result(&resumed).text(), "again");
}

#[tokio::test]
async fn a_listener_that_panics_ends_its_session_with_an_error() {
    let place = Place::new();
    let options =
        place.playing(&json!([{ "text": "x" }])).allowed_tools(["Reed"]).stderr(|_| panic!("a bug"));
    let items: Vec<_> = within(query("Go.", options).unwrap().collect()).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.to_string(), "the session's thread panicked: a bug");
}
