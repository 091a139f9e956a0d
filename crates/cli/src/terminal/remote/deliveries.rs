//! What this front sent to the server. An event that it caused may be read before the server has confirmed it, so the reader
//! of events waits for the request that is on its way.

use std::collections::{BTreeMap, BTreeSet};

use qoder_types::Actor;
use serde_json::Value;
use tokio::sync::Mutex;

use super::translate::Sender;

/// What was sent, by the IDs that the server gave it.
#[derive(Debug)]
pub struct Deliveries {
    person: Actor,
    sent: Mutex<Sent>,
}

/// Messages and answers.
#[derive(Debug, Default)]
pub struct Sent {
    /// The front's IDs of its messages.
    messages: BTreeMap<String, String>,
    /// Events with answers.
    answers: BTreeSet<String>,
}

impl Sent {
    /// Remembers the message of a stored event.
    pub fn message(&mut self, stored: &Value, uuid: String) {
        if let Some(id) = first_id(stored) {
            self.messages.insert(id, uuid);
        }
    }

    /// Remembers that a stored event is an answer of this front.
    pub fn answer(&mut self, stored: &Value) {
        self.answers.extend(first_id(stored));
    }
}

fn first_id(stored: &Value) -> Option<String> {
    stored["data"][0]["id"].as_str().map(str::to_owned)
}

impl Deliveries {
    /// Nothing was sent yet. Answers are this person's.
    pub fn new(person: Actor) -> Self {
        Self { person, sent: Mutex::default() }
    }

    /// Held while a request is on its way.
    pub async fn begin(&self) -> tokio::sync::MutexGuard<'_, Sent> {
        self.sent.lock().await
    }

    /// Whose an event is.
    pub async fn sender_of(&self, event: &Value) -> Sender {
        let id = event["id"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("user.message") => match self.sent.lock().await.messages.remove(id) {
                Some(uuid) => Sender::Here(uuid),
                None => Sender::Another,
            },
            Some("user.tool_confirmation") => match self.sent.lock().await.answers.remove(id) {
                true => Sender::Person(self.person.clone()),
                false => Sender::Another,
            },
            Some(_) | None => Sender::Another,
        }
    }
}
