//! Threads: the events that report what agents of a session do, in their own threads and in the session.

use qoder_types::MessageContent;
use serde_json::{Value, json};

use super::projector::Projected;
use crate::model::event::NewEvent;
use crate::model::ids::ThreadId;
use crate::model::status::StopReason;

/// Where the events of an agent belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlace {
    /// Its thread.
    pub id: ThreadId,
    /// Its name.
    pub name: String,
    /// The thread that started it.
    pub parent: ThreadId,
    /// The name of the agent there.
    pub parent_name: String,
}

/// The events of the session when it starts an agent.
pub(super) fn started(thread: ThreadId, name: &str, prompt: &Value) -> [NewEvent; 2] {
    let created = json!({ "session_thread_id": thread, "agent_name": name });
    let sent = json!({ "to_session_thread_id": thread, "to_agent_name": name,
        "content": [{ "type": "text", "text": prompt.as_str().unwrap_or_default() }] });
    [NewEvent::new("session.thread_created", &created), NewEvent::new("agent.thread_message_sent", &sent)]
}

impl ThreadPlace {
    /// Puts events into the thread. The session shows errors, and the calls that wait, with the thread that they are of.
    pub(super) fn place(&self, out: &mut Projected) {
        for action in &mut out.actions {
            action.thread = Some(self.id);
        }
        let actions = &out.actions;
        for event in &mut out.events {
            let waits = actions.iter().any(|action| action.event == event.id);
            if waits && let Ok(mut body) = serde_json::from_str::<Value>(&event.body) {
                body["session_thread_id"] = json!(self.id);
                event.body = body.to_string();
            }
            event.thread = Some(self.id);
            event.is_posted |= waits || event.kind == "session.error";
        }
    }

    fn status(&self, kind: &'static str, more: Value) -> NewEvent {
        let mut body = json!({ "session_thread_id": self.id, "agent_name": self.name });
        if let (Some(fields), Value::Object(more)) = (body.as_object_mut(), more) {
            fields.extend(more);
        }
        NewEvent::new(kind, &body).in_thread(self.id, true)
    }

    /// Reports that the agent runs.
    #[must_use]
    pub fn running(&self) -> NewEvent {
        self.status("session.thread_status_running", json!({}))
    }

    /// Reports that the agent does not run, and why.
    #[must_use]
    pub fn idle(&self, stop: &StopReason) -> NewEvent {
        let stop = stop.idle_event();
        self.status("session.thread_status_idle", json!({ "stop_reason": stop["stop_reason"] }))
    }

    /// The events of the agent when it gets its task.
    pub(super) fn begun(&self, prompt: &MessageContent) -> [NewEvent; 2] {
        let content = match prompt {
            MessageContent::Text(text) => json!([{ "type": "text", "text": text }]),
            MessageContent::Blocks(blocks) => json!(blocks),
        };
        let received = json!({ "from_session_thread_id": self.parent, "from_agent_name": self.parent_name,
            "content": content });
        [self.running(), NewEvent::new("agent.thread_message_received", &received)]
    }

    /// The events of the agent when its turn ends.
    pub(super) fn ended(&self, texts: &[Value], stop: &StopReason) -> Vec<NewEvent> {
        let sent = json!({ "to_session_thread_id": self.parent, "to_agent_name": self.parent_name,
            "content": texts });
        let sent = (!texts.is_empty()).then(|| NewEvent::new("agent.thread_message_sent", &sent));
        sent.into_iter().chain([self.idle(stop)]).collect()
    }

    /// The event of the session when it gets what the agent said last.
    #[must_use]
    pub fn received(&self, texts: &[Value]) -> NewEvent {
        let body =
            json!({ "from_session_thread_id": self.id, "from_agent_name": self.name, "content": texts });
        NewEvent::new("agent.thread_message_received", &body)
    }
}
