//! Events as rows keep them and as clients read them. What differs between the dialects is made when an event is read; the
//! stored body never changes.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::agent::AgentBody;
use crate::model::agent_view;
use crate::model::dialect::Dialect;
use crate::model::ids::{AgentId, EventId, ThreadId};
use crate::model::time::Time;
use crate::model::tools;

/// An event that is about to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub kind: &'static str,
    /// Its own fields, as JSON.
    pub body: String,
    /// False for an input that is queued.
    pub is_processed: bool,
    /// True when a subscriber was shown pieces of it.
    pub is_previewed: bool,
    /// The blob that holds its fields, when they are too long for a row.
    pub blob: Option<String>,
    /// The thread that it belongs to; none for the session's own.
    pub thread: Option<ThreadId>,
    /// True when the session shows it although it belongs to a thread.
    pub is_posted: bool,
}

impl NewEvent {
    /// An event of now.
    #[must_use]
    pub fn new(kind: &'static str, body: &Value) -> Self {
        Self::with_id(EventId::now(), kind, body)
    }

    /// The same, in a thread; the session shows it, too, when it `is_posted`.
    #[must_use]
    pub fn in_thread(self, thread: ThreadId, is_posted: bool) -> Self {
        Self { thread: Some(thread), is_posted, ..self }
    }

    /// An event with an id of its own.
    #[must_use]
    pub fn with_id(id: EventId, kind: &'static str, body: &Value) -> Self {
        Self {
            id,
            kind,
            body: body.to_string(),
            is_processed: true,
            is_previewed: false,
            blob: None,
            thread: None,
            is_posted: false,
        }
    }
}

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its place in the session, from 1, without gaps.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub kind: String,
    /// When it was stored.
    pub at: Time,
    /// When it was processed; queued inputs were not.
    pub processed_at: Option<Time>,
    /// True when a subscriber was shown pieces of it.
    pub is_previewed: bool,
    /// Its own fields, as JSON.
    pub body: String,
    /// The blob that holds them; the body is empty until it was read.
    pub blob: Option<String>,
    /// The thread that it belongs to; none for the session's own.
    pub thread: Option<ThreadId>,
    /// True when the session shows it although it belongs to a thread.
    pub is_posted: bool,
}

impl Event {
    /// True when it is shown in this thread, or in the session itself.
    #[must_use]
    pub fn is_in(&self, thread: Option<ThreadId>) -> bool {
        self.thread == thread || (thread.is_none() && self.is_posted)
    }
}

/// An event as clients of a dialect read it, as JSON.
#[must_use]
pub fn render(event: &Event, dialect: Dialect) -> String {
    let body = of_dialect(event, dialect);
    let body = body.as_deref().unwrap_or(&event.body);
    let processed = event.processed_at.map_or_else(|| "null".to_owned(), |time| format!("\"{time}\""));
    let head = format!("{{\"id\":\"{}\",\"type\":\"{}\",\"processed_at\":{processed}", event.id, event.kind);
    match body.strip_prefix('{') {
        Some("}") | None => format!("{head}}}"),
        Some(fields) => format!("{head},{fields}"),
    }
}

/// The body for a dialect, where it is not the stored one.
fn of_dialect(event: &Event, dialect: Dialect) -> Option<String> {
    if !matches!(event.kind.as_str(), "agent.tool_use" | "session.updated") {
        return None;
    }
    let mut body: Value = serde_json::from_str(&event.body).ok()?;
    let fields = body.as_object_mut()?;
    if let Some(spelling) = fields.shift_remove("spelling") {
        fields.insert("name".to_owned(), spelling);
    } else if dialect == Dialect::Claude
        && let Some(name) = fields.get("name").and_then(Value::as_str)
    {
        let lower = json!(tools::lower_case(name));
        fields.insert("name".to_owned(), lower);
    }
    if let Some(agent) = fields.get("agent") {
        let id = agent.get("id").and_then(Value::as_str).and_then(AgentId::parse)?;
        let version = agent.get("version").and_then(Value::as_u64)?;
        let body: AgentBody = serde_json::from_value(agent.get("body")?.clone()).ok()?;
        fields.insert("agent".to_owned(), agent_view::of_session(id, version, &body, dialect));
    }
    Some(body.to_string())
}

/// Events as one JSON array.
#[must_use]
pub fn render_all<'a>(events: impl IntoIterator<Item = &'a Event>, dialect: Dialect) -> Vec<Box<RawValue>> {
    let rendered = events.into_iter().map(|event| render(event, dialect));
    rendered.filter_map(|text| RawValue::from_string(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, body: &Value) -> Event {
        let (id, body) = (EventId([7; 16]), body.to_string());
        let processed_at = Some(Time(0));
        Event {
            seq: 1,
            id,
            kind: kind.to_owned(),
            at: Time(0),
            processed_at,
            is_previewed: false,
            body,
            blob: None,
            thread: None,
            is_posted: false,
        }
    }

    fn shown(event: &Event, dialect: Dialect) -> Value {
        serde_json::from_str(&render(event, dialect)).unwrap()
    }

    #[test]
    fn an_event_is_flat() {
        let value = shown(&event("agent.message", &json!({ "content": [] })), Dialect::Qoder);
        let id = EventId([7; 16]).to_string();
        let expected = json!({ "id": id, "type": "agent.message", "processed_at": "1970-01-01T00:00:00.000000Z", "content": [] });
        assert_eq!(value, expected);
        let queued = Event { processed_at: None, ..event("user.interrupt", &json!({})) };
        assert_eq!(shown(&queued, Dialect::Claude)["processed_at"], Value::Null);
    }

    #[test]
    fn tools_are_named_as_configured_or_else_as_the_dialect_does() {
        let plain = event("agent.tool_use", &json!({ "name": "WebFetch", "input": {} }));
        assert_eq!(shown(&plain, Dialect::Qoder)["name"], "WebFetch");
        assert_eq!(shown(&plain, Dialect::Claude)["name"], "web_fetch");
        let spelt =
            event("agent.tool_use", &json!({ "name": "WebFetch", "spelling": "webfetch", "input": {} }));
        for dialect in [Dialect::Qoder, Dialect::Claude] {
            let value = shown(&spelt, dialect);
            assert_eq!((&value["name"], value.get("spelling")), (&json!("webfetch"), None));
        }
    }
}
