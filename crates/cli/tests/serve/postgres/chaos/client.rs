//! A client that sends a message, follows the stream, answers what waits, and sends the next one when the turn is over. It knows what
//! was accepted and what it saw.

use std::io::BufRead;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use super::caller::{Caller, GIVEN_UP, PATIENCE};
use crate::serve::support::{confirm, id, kind, message, result};

/// A session and what its client knows of it.
pub struct Known {
    pub id: String,
    /// Every event that was seen, in order.
    pub seen: Vec<Value>,
    /// The messages that were accepted, in order.
    pub accepted: Vec<String>,
}

/// A client.
pub struct Client {
    caller: Caller,
    body: Value,
    pub sessions: Vec<Known>,
    pub turns: usize,
    /// Turns that ended because the session stopped its node too often.
    pub given_up: usize,
}

enum Ended {
    Turn,
    Session,
}

impl Client {
    pub fn new(caller: Caller, body: &Value) -> Self {
        let mut client = Self { caller, body: body.clone(), sessions: Vec::new(), turns: 0, given_up: 0 };
        client.begin();
        client
    }

    fn begin(&mut self) {
        let key = format!("{:?}-{}", std::thread::current().id(), self.sessions.len());
        let (status, session) = self.caller.post("/v1/sessions", &key, &self.body);
        assert_eq!(status, 200, "{session}");
        self.sessions.push(Known { id: id(&session), seen: Vec::new(), accepted: Vec::new() });
    }

    fn known(&mut self) -> &mut Known {
        self.sessions.last_mut().unwrap()
    }

    /// Sends a message and works until its turn is over.
    pub fn turn(&mut self) {
        let session = self.known().id.clone();
        let key = format!("{session}-message-{}", self.known().accepted.len());
        let body = json!({ "events": [message("go")] });
        let (status, sent) = self.caller.post(&format!("/v1/sessions/{session}/events"), &key, &body);
        assert_eq!(status, 200, "{session} takes a message: {sent}");
        let sent = sent["data"][0].clone();
        let known = self.known();
        known.accepted.push(id(&sent));
        if known.seen.is_empty() {
            known.seen.push(sent);
        }
        self.turns += 1;
        let until = Instant::now() + PATIENCE;
        loop {
            match self.follow(&session) {
                Some(Ended::Turn) => return,
                Some(Ended::Session) => return self.begin(),
                None => {}
            }
            let last = self.known().seen.last().map(Value::to_string);
            let waits = Instant::now() < until && !GIVEN_UP.load(Ordering::SeqCst);
            assert!(waits, "{session}: nothing follows {last:?}");
        }
    }

    /// Reads one stream until the turn is over; `None` when the stream ended before.
    fn follow(&mut self, session: &str) -> Option<Ended> {
        let after = self.known().seen.last().map(id)?;
        let mut reader = self.caller.stream(session, &after)?;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 || !line.ends_with('\n') {
                return None;
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {line}"));
            self.known().seen.push(event.clone());
            if let Some(ended) = self.see(session, &event) {
                return Some(ended);
            }
        }
    }

    fn see(&mut self, session: &str, event: &Value) -> Option<Ended> {
        match kind(event).as_str() {
            "agent.custom_tool_use" => self.answer(session, event, &result(&id(event), "sunny")),
            "agent.tool_use" if event["evaluated_permission"] == "ask" => {
                self.answer(session, event, &confirm(&id(event), "allow"));
            }
            "session.status_terminated" => return Some(Ended::Session),
            "session.status_idle" => match event["stop_reason"]["type"].as_str() {
                Some("end_turn") => return Some(Ended::Turn),
                Some("retries_exhausted") => {
                    self.given_up += 1;
                    return Some(Ended::Turn);
                }
                _ => {}
            },
            _ => {}
        }
        None
    }

    fn answer(&mut self, session: &str, event: &Value, answer: &Value) {
        let path = format!("/v1/sessions/{session}/events");
        let (status, body) = self.caller.post(&path, &id(event), &json!({ "events": [answer] }));
        // A session that is given up closes its actions.
        assert!(matches!(status, 200 | 409), "{session}: {body}");
    }
}
