//! The events of a session as a worker follows them: which calls are its to run, which have a result, and since when nothing is left
//! to do. A connection that is cut is opened again behind the last event.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use eventsource_stream::Eventsource;
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::{WorkClient, WorkError};
use super::tools::TOOLS;

/// Events that wait to be looked at.
const BACKLOG: usize = 256;
/// The pauses before a connection is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A stream that says nothing for so long is taken for dead: the server writes a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// A call that the worker runs.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkCall {
    /// Its event.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The input.
    pub input: Value,
    needs_verdict: bool,
}

/// What a session's events come to.
#[derive(Debug, Default)]
pub struct Followed {
    calls: Vec<WorkCall>,
    allowed: BTreeMap<String, bool>,
    answered: HashSet<String>,
    seen: HashSet<String>,
    /// Since when it rests: its turn is over, or waits for someone.
    pub idle_since: Option<Instant>,
    /// True once the session takes no more results.
    pub is_over: bool,
}

impl Followed {
    /// Takes an event.
    pub fn take(&mut self, event: &Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        if !self.seen.insert(text("id")) {
            return;
        }
        let kind = text("type");
        if !matches!(kind.as_str(), "user.tool_confirmation" | "session.usage") {
            self.idle_since = (kind == "session.status_idle").then(Instant::now);
        }
        match kind.as_str() {
            "agent.tool_use" if TOOLS.contains(&text("name").as_str()) => {
                let needs_verdict = match event["evaluated_permission"].as_str() {
                    Some("allow") => false,
                    Some("ask") => true,
                    // What the server denied never runs, nor what this program does not know.
                    Some(_) | None => return,
                };
                let input = event["input"].clone();
                self.calls.push(WorkCall { id: text("id"), name: text("name"), input, needs_verdict });
            }
            "user.tool_confirmation" => {
                self.allowed.insert(text("tool_use_id"), event["result"] == "allow");
            }
            "user.tool_result" | "agent.tool_result" => self.answered(&text("tool_use_id")),
            "session.status_terminated" | "session.deleted" => self.is_over = true,
            _ => {}
        }
    }

    /// A call has a result, or takes none.
    pub fn answered(&mut self, call: &str) {
        self.answered.insert(call.to_owned());
        self.calls.retain(|known| known.id != call);
        self.allowed.remove(call);
    }

    /// True for a call that has a result.
    pub fn has_answer(&self, call: &str) -> bool {
        self.answered.contains(call)
    }

    /// The next call to run, in the order of their events.
    pub fn next(&self) -> Option<&WorkCall> {
        self.calls.iter().find(|call| {
            !self.answered.contains(&call.id)
                && (!call.needs_verdict || self.allowed.get(&call.id) == Some(&true))
        })
    }
}

/// Follows a session until the receiver is gone or the server refuses for good.
pub fn follow(client: WorkClient, session: String) -> mpsc::Receiver<Result<Value, WorkError>> {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    tokio::spawn(async move {
        let mut last = None;
        let mut pause = FIRST_PAUSE;
        while !sender.is_closed() {
            match read(&client, &session, &mut last, &sender).await {
                Ok(true) => pause = FIRST_PAUSE,
                Err(error) if !error.is_passing() => {
                    let _ = sender.send(Err(error)).await;
                    return;
                }
                Ok(false) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
    receiver
}

/// Reads one connection to its end; true when it brought something.
async fn read(
    client: &WorkClient,
    session: &str,
    last: &mut Option<String>,
    sender: &mpsc::Sender<Result<Value, WorkError>>,
) -> Result<bool, WorkError> {
    let path = ["sessions", session, "events"];
    // Opened first and listed then, so that nothing is missed in between.
    let response = client.stream(&[&path[..], &["stream"]].concat(), last.as_deref()).await?;
    let mut has_news = false;
    if last.is_none() {
        let mut page: Option<String> = None;
        loop {
            let cursor = page.as_deref().map(|page| ("page", page));
            let query: Vec<(&str, &str)> = [("limit", "1000")].into_iter().chain(cursor).collect();
            let listed = client.get(&path, &query).await?;
            for event in listed["data"].as_array().into_iter().flatten() {
                *last = event["id"].as_str().map(str::to_owned);
                if sender.send(Ok(event.clone())).await.is_err() {
                    return Ok(true);
                }
            }
            page = listed["next_page"].as_str().map(str::to_owned);
            if page.is_none() {
                break;
            }
        }
        has_news = true;
    }
    let mut frames = response.bytes_stream().eventsource();
    loop {
        let frame = tokio::time::timeout(SILENCE, frames.next()).await;
        let Ok(Some(Ok(frame))) = frame else { return Ok(has_news) };
        let Ok(event) = serde_json::from_str::<Value>(&frame.data) else { continue };
        if frame.event == "error" || event["id"].as_str().is_none() {
            continue;
        }
        has_news = true;
        *last = event["id"].as_str().map(str::to_owned);
        if sender.send(Ok(event)).await.is_err() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, permission: &str) -> Value {
        json!({ "id": id, "type": "agent.tool_use", "name": name, "input": {}, "evaluated_permission": permission })
    }

    #[tokio::test]
    async fn calls_run_in_order_once_they_are_allowed() {
        let mut followed = Followed::default();
        for event in [
            call("1", "bash", "deny"),
            call("2", "bash", "ask"),
            call("3", "web_fetch", "allow"),
            call("4", "read", "allow"),
            call("4", "read", "allow"),
        ] {
            followed.take(&event);
        }
        let next = |followed: &Followed| followed.next().map(|call| call.id.clone());
        assert_eq!(next(&followed).as_deref(), Some("4"), "2 waits for a person");
        followed.take(
            &json!({ "id": "5", "type": "user.tool_confirmation", "tool_use_id": "2", "result": "allow" }),
        );
        assert_eq!(next(&followed).as_deref(), Some("2"));
        followed.take(&json!({ "id": "6", "type": "user.tool_result", "tool_use_id": "2" }));
        followed.answered("4");
        assert_eq!(next(&followed), None);
        assert!(followed.has_answer("2") && followed.idle_since.is_none());
        followed.take(&json!({ "id": "7", "type": "session.status_idle" }));
        assert!(followed.idle_since.is_some());
        followed.take(&json!({ "id": "8", "type": "session.status_running" }));
        assert!(followed.idle_since.is_none());
    }
}
