//! Subscriptions: what is live, what is replayed from any record on, and what a resumed session replays are equal messages,
//! without gap or repeat, in whatever store the session is kept.

use qoder_protocol::SessionEvent;
use qoder_protocol::messages::StreamMessage;
use qoder_runtime::events::Wants;
use qoder_runtime::sessions::{FirstPrompt, OpenedSession, SessionHandle, Subscription};
use qoder_types::Message;
use qoder_types::record::InputAdmitted;
use serde_json::{Value, json};

use crate::hooks::barrier::without_files;
use crate::hooks::support::{Stage, call, text};
use crate::sessions::support::PATIENCE;

fn stage() -> Stage {
    let mut stage = Stage::new(json!([
        call("Bash", json!({ "command": "echo hello" })),
        text("first done"),
        call("Read", json!({ "file_path": "missing.txt" })),
        text("second done"),
    ]))
    .rules(&["Bash", "Read"], &[]);
    stage.options.replay_user_messages = true;
    stage
}

/// The message as it travels, when a record stands behind it. How long a turn took is measured anew nowhere.
fn of_record(message: &StreamMessage) -> Option<Value> {
    let value = serde_json::to_value(message).unwrap();
    matches!(value["type"].as_str(), Some("user" | "assistant" | "result")).then_some(value)
}

/// Reads until the result of the turn that ends with these words.
async fn until(subscription: &mut Subscription, words: &str) -> Vec<Value> {
    let reading = async {
        let mut seen = Vec::new();
        loop {
            let SessionEvent::Message(message) = subscription.next().await else { continue };
            seen.extend(of_record(&message));
            if seen.last().is_some_and(|last| last["type"] == "result" && last["result"] == words) {
                return seen;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap()
}

fn send(handle: &SessionHandle, id: &str, words: &str) {
    handle.submit(InputAdmitted::user(id, Message::user(words))).unwrap();
}

async fn are_equal(stage: Stage) {
    let (OpenedSession { handle, attachment }, _heard) = stage.open(FirstPrompt::FromHost);
    let mut live = handle.subscribe(None, Wants::default());
    send(&handle, "one", "say hello");
    let first = until(&mut live, "first done").await;
    // It joins in the middle and sees what was before and what follows.
    let mut joined = handle.subscribe(Some(0), Wants::default());
    send(&handle, "two", "look");
    let second = until(&mut live, "second done").await;
    let all = [first.clone(), second.clone()].concat();
    assert_eq!(all.iter().filter(|message| message["type"] == "result").count(), 2);
    assert_eq!(until(&mut joined, "second done").await, all);
    // From each number on, the rest.
    let replayed = until(&mut handle.subscribe(Some(0), Wants::default()), "second done").await;
    assert_eq!(replayed, all);
    let mut length = all.len();
    for after in 1.. {
        let rest = handle.subscribe(Some(after), Wants::default()).try_all();
        assert!(all.ends_with(&rest) && rest.len() <= length, "after {after}: {rest:?}");
        length = rest.len();
        if rest.is_empty() {
            break;
        }
    }
    handle.close().await;
    drop(attachment);
    let (OpenedSession { handle, attachment }, _heard) = stage.open(FirstPrompt::FromHost);
    assert_eq!(until(&mut handle.subscribe(Some(0), Wants::default()), "second done").await, all, "resumed");
    handle.close().await;
    drop(attachment);
}

trait TryAll {
    fn try_all(self) -> Vec<Value>;
}

impl TryAll for Subscription {
    /// Everything that is there by now.
    fn try_all(mut self) -> Vec<Value> {
        let mut seen = Vec::new();
        while let Some(event) = self.try_next() {
            if let SessionEvent::Message(message) = event {
                seen.extend(of_record(&message));
            }
        }
        seen
    }
}

#[tokio::test]
async fn live_replayed_and_resumed_messages_are_equal() {
    are_equal(stage()).await;
}

#[tokio::test]
async fn they_are_equal_in_any_store() {
    let mut stage = stage();
    stage.store = Some(without_files(&stage));
    are_equal(stage).await;
}

#[tokio::test]
async fn a_reader_that_falls_far_behind_misses_no_message() {
    let reads: Vec<Value> =
        (0..400).map(|_| json!({ "name": "Read", "input": { "file_path": "missing.txt" } })).collect();
    let calls = json!({ "toolCalls": reads });
    let mut stage = Stage::new(json!([calls, calls, calls, calls, text("all done")])).rules(&["Read"], &[]);
    stage.options.replay_user_messages = true;
    let (OpenedSession { handle, attachment }, _heard) = stage.open(FirstPrompt::FromHost);
    let mut quick = handle.subscribe(None, Wants::default());
    // They read nothing while 1,600 calls get their results.
    let mut slow = [None, Some(0)].map(|after| handle.subscribe(after, Wants::default()));
    send(&handle, "one", "read a lot");
    let all = until(&mut quick, "all done").await;
    assert!(all.len() > 1_600, "{}", all.len());
    for slow in &mut slow {
        assert_eq!(until(slow, "all done").await, all);
        assert_eq!(messages_left(slow), 0, "something is given twice");
    }
    handle.close().await;
    drop(attachment);
}

/// How many messages of records still wait.
fn messages_left(subscription: &mut Subscription) -> usize {
    let mut count = 0;
    while let Some(event) = subscription.try_next() {
        if let SessionEvent::Message(message) = event {
            count += usize::from(of_record(&message).is_some());
        }
    }
    count
}
