//! A reader that falls behind: the session waits for it, obeys meanwhile, and loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use qoder_agent_sdk::{
    Message, NoArguments, PermissionMode, QoderAgentOptions, QoderSdkClient, create_sdk_mcp_server, query,
    tool,
};
use serde_json::json;

use crate::support::{Place, all, result, within};

/// A model that calls a tool four hundred times, and how often the tool has run.
fn busy(place: &Place) -> (QoderAgentOptions, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let count = tool("count", "Counts.", move |_: NoArguments| {
        let counted = Arc::clone(&counted);
        async move { counted.fetch_add(1, Ordering::SeqCst).to_string() }
    });
    let replies = json!([
        { "when": { "lastToolResultContains": "399" }, "text": "done" },
        { "toolCalls": [{ "name": "mcp__kb__count", "input": {} }], "repeat": true },
    ]);
    let server = create_sdk_mcp_server("kb", "1", [count]).unwrap();
    (place.playing(&replies).mcp_server("kb", server).allowed_tools(["mcp__kb__count"]), calls)
}

/// Waits until the session has stopped, and answers with how far it came.
async fn standing(calls: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    loop {
        let now = calls.load(Ordering::SeqCst);
        if now == before && now > 0 {
            return now;
        }
        before = now;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
}

#[tokio::test]
async fn the_session_waits_and_nothing_is_lost() {
    let place = Place::new();
    let (options, calls) = busy(&place);
    let messages = query("Go.", options).unwrap();
    let ahead = within(standing(&calls)).await;
    assert!(ahead < 300, "{ahead} calls were made for a reader that has read nothing");
    let messages = all(messages).await;
    assert_eq!(result(&messages).text(), "done");
    let results = messages.iter().filter(|message| matches!(message, Message::User(_))).count();
    assert_eq!((calls.load(Ordering::SeqCst), results), (400, 400));
}

#[tokio::test]
async fn a_session_that_waits_obeys() {
    let place = Place::new();
    let (options, calls) = busy(&place);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    client.query("Go.").await.unwrap();
    let ahead = within(standing(&calls)).await;
    assert!(ahead < 300, "{ahead}");
    within(client.set_permission_mode(PermissionMode::Plan)).await.unwrap();
    within(client.interrupt()).await.unwrap();
    let messages = all(client.receive_response()).await;
    let reason = result(&messages).terminal_reason.clone().unwrap();
    assert!(reason.starts_with("aborted"), "{reason}");
    within(client.disconnect()).await.unwrap();
}

#[tokio::test]
async fn a_session_that_waits_can_be_closed() {
    let place = Place::new();
    let (options, calls) = busy(&place);
    let mut messages = query("Go.", options).unwrap();
    within(messages.next()).await.unwrap().unwrap();
    within(standing(&calls)).await;
    within(messages.close()).await;
    let (options, calls) = busy(&place);
    let messages = query("Go.", options).unwrap();
    within(standing(&calls)).await;
    drop(messages);
}
