//! What clients send into a session: messages, answers, interrupts. Reading one says what is stored of it and what it does;
//! whether it may be done now is for `admission`.

use qoder_types::{ExternalResult, Message};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::model::content::{self, Accepts};
use crate::model::fields::{Fields, each};
use crate::model::files::GivenFiles;
use crate::model::ids::{EventId, ThreadId};
use crate::model::outcome::Outcome;
use crate::model::problem::Problem;

/// The most events of one request.
const MOST_EVENTS: usize = 100;
const LONGEST_DENIAL: usize = 16 * 1024;

/// What an input does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A user's message.
    Message(Message),
    /// What the session works towards from now on.
    Outcome(Box<Outcome>),
    /// The operator's words.
    System(Message),
    /// The turn shall stop, or the agent of one thread.
    Interrupt {
        /// The thread.
        thread: Option<ThreadId>,
    },
    /// The answer to an ask.
    Confirm {
        /// The event that asks.
        action: EventId,
        /// True to let the call run.
        allow: bool,
        /// For a denial: what the model reads.
        message: Option<String>,
    },
    /// The result of a call that the client or a worker ran.
    Result {
        /// True for one that a worker ran.
        by_worker: bool,
        /// The event of the call.
        action: EventId,
        /// The result.
        result: ExternalResult,
        /// Identifies its content.
        digest: Vec<u8>,
    },
}

impl Effect {
    /// The event that it answers.
    #[must_use]
    pub fn action(&self) -> Option<EventId> {
        match self {
            Self::Confirm { action, .. } | Self::Result { action, .. } => Some(*action),
            Self::Message(_) | Self::Outcome(_) | Self::System(_) | Self::Interrupt { .. } => None,
        }
    }
}

/// Something that a client sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The id of its event.
    pub id: EventId,
    /// The type of its event.
    pub kind: &'static str,
    /// What is stored of it, as JSON.
    pub body: String,
    /// The blob that holds it, when it is too long for a row.
    pub blob: Option<String>,
    /// What it does.
    pub effect: Effect,
}

impl Input {
    /// The same with the thread that it is for in its body. Content that is in a blob stays as it is.
    #[must_use]
    pub fn for_thread(mut self, thread: Option<ThreadId>) -> Self {
        let body = serde_json::from_str::<Value>(&self.body).ok().filter(Value::is_object);
        if let (Some(thread), Some(mut body), None) = (thread, body, &self.blob) {
            body["session_thread_id"] = json!(thread);
            self.body = body.to_string();
        }
        self
    }
}

/// Reads `events` of a request. `files` has the files that they may name.
///
/// # Errors
/// When one of them cannot be used; the field names it.
pub fn read(body: &Value, files: &GivenFiles) -> Result<Vec<Input>, Problem> {
    let fields = Fields::of_body(body)?;
    if fields.get("events").is_none() {
        return Err(Problem::field("events", "is required"));
    }
    let items = fields.items("events", MOST_EVENTS)?;
    if items.is_empty() {
        return Err(Problem::field("events", "is empty"));
    }
    each("events", items, |item| read_input(item, files))
}

/// Reads `initial_events` of a session.
///
/// # Errors
/// When one of them cannot be used, or is not one that begins a session.
pub fn read_initial(fields: Fields<'_>, files: &GivenFiles) -> Result<Vec<Input>, Problem> {
    let inputs = each("initial_events", fields.items("initial_events", 50)?, |item| read_input(item, files))?;
    for (index, input) in inputs.iter().enumerate() {
        if !matches!(input.effect, Effect::Message(_) | Effect::Outcome(_) | Effect::System(_)) {
            let field = format!("initial_events[{index}].type");
            return Err(Problem::field(
                field,
                format!("is `{}`; a session begins with `user.message`", input.kind),
            ));
        }
    }
    Ok(inputs)
}

const KINDS: [&str; 7] = [
    "user.message",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "user.define_outcome",
    "system.message",
];

fn read_input(item: &Value, files: &GivenFiles) -> Result<Input, Problem> {
    let fields = Fields::of_item(item)?;
    let kind = fields.word("type", &KINDS)?.ok_or_else(|| Problem::field("type", "is required"))?;
    let (kind, body, effect) = match kind {
        "user.message" => {
            let content = content::read(fields, Accepts::Message, files)?;
            (KINDS[0], json!({ "content": content.stored }), Effect::Message(content.message()))
        }
        "user.interrupt" => {
            let text = fields.optional_text("session_thread_id", 1..=256)?;
            let parse = |text: &str| {
                let problem = format!("is `{text}`, and there is no such thread");
                ThreadId::parse(text).ok_or_else(|| Problem::field("session_thread_id", problem))
            };
            let thread = text.map(parse).transpose()?;
            let body = thread.map_or_else(|| json!({}), |thread| json!({ "session_thread_id": thread }));
            (KINDS[1], body, Effect::Interrupt { thread })
        }
        "user.tool_confirmation" => confirmation(fields)?,
        "user.custom_tool_result" => {
            result(fields, files, (KINDS[3], &["custom_tool_use_id", "tool_use_id"]))?
        }
        "user.tool_result" => result(fields, files, (KINDS[4], &["tool_use_id"]))?,
        "user.define_outcome" => {
            let (outcome, body) = Outcome::read(fields, files)?;
            (KINDS[5], body, Effect::Outcome(Box::new(outcome)))
        }
        _ => {
            let content = content::read(fields, Accepts::Text, files)?;
            (KINDS[6], json!({ "content": content.stored }), Effect::System(content.message()))
        }
    };
    Ok(Input { id: EventId::now(), kind, body: body.to_string(), blob: None, effect })
}

fn confirmation(fields: Fields<'_>) -> Result<(&'static str, Value, Effect), Problem> {
    let action = action(fields, &["tool_use_id"])?;
    let allow = match fields.get("result") {
        Some(_) => fields.word("result", &["allow", "deny"])? == Some("allow"),
        None => match fields.word("decision", &["approve", "allow", "deny"])? {
            Some(word) => word != "deny",
            None => return Err(Problem::field("result", "is required")),
        },
    };
    let message = fields.optional_text("deny_message", 0..=LONGEST_DENIAL)?;
    if allow && message.is_some() {
        return Err(Problem::field("deny_message", "can only be used with the result `deny`"));
    }
    let mut body = json!({ "tool_use_id": action, "result": if allow { "allow" } else { "deny" } });
    if let Some(message) = message {
        body["deny_message"] = json!(message);
    }
    let message = message.map(str::to_owned);
    Ok((KINDS[2], body, Effect::Confirm { action, allow, message }))
}

/// The result of a call that ran elsewhere; `keys` are the names of the field that names the call.
fn result(
    fields: Fields<'_>,
    files: &GivenFiles,
    (kind, keys): (&'static str, &[&'static str]),
) -> Result<(&'static str, Value, Effect), Problem> {
    let action = action(fields, keys)?;
    let content = content::read(fields, Accepts::Result, files)?;
    let is_error = fields.flag("is_error")?;
    let mut body = json!({ keys[0]: action, "content": content.stored });
    if let Some(is_error) = is_error {
        body["is_error"] = json!(is_error);
    }
    let result = ExternalResult { content: content.result(), is_error: is_error.unwrap_or(false) };
    let digest = digest(&SHA256, body.to_string().as_bytes()).as_ref().to_vec();
    Ok((kind, body, Effect::Result { by_worker: kind == KINDS[4], action, result, digest }))
}

/// The event that is answered. It is the id of an event and never the provider's id of the call.
fn action(fields: Fields<'_>, keys: &[&str]) -> Result<EventId, Problem> {
    for key in keys {
        if let Some(text) = fields.optional_text(key, 1..=256)? {
            return EventId::parse(text).ok_or_else(|| {
                Problem::field(*key, format!("is `{text}`, which is not the ID of a pending event (`evt_…`)"))
            });
        }
    }
    Err(Problem::field(keys[0], "is required"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(event: &Value) -> Result<Input, Problem> {
        read(&json!({ "events": [event] }), &GivenFiles::new()).map(|mut inputs| inputs.remove(0))
    }

    const ACTION: &str = "evt_0197a0a0a0a07a0a8a0a0a0a0a0a0a0a";

    #[test]
    fn older_spellings_of_answers_are_read() {
        let newest =
            one(&json!({ "type": "user.tool_confirmation", "tool_use_id": ACTION, "result": "allow" }))
                .unwrap();
        let oldest =
            one(&json!({ "type": "user.tool_confirmation", "tool_use_id": ACTION, "decision": "approve" }))
                .unwrap();
        assert_eq!((newest.body, newest.effect), (oldest.body, oldest.effect));
        let custom =
            one(&json!({ "type": "user.custom_tool_result", "tool_use_id": ACTION, "content": "x" }))
                .unwrap();
        let body: Value = serde_json::from_str(&custom.body).unwrap();
        assert_eq!(body["custom_tool_use_id"], ACTION);
        assert_eq!(body["content"], json!([{ "type": "text", "text": "x" }]));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let confirm = |more: Value| {
            let mut event = json!({ "type": "user.tool_confirmation", "tool_use_id": ACTION });
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        for (event, field) in [
            (json!("user.message"), "events[0]"),
            (json!({}), "events[0].type"),
            (json!({ "type": "agent.message" }), "events[0].type"),
            (json!({ "type": "user.message" }), "events[0].content"),
            (json!({ "type": "user.tool_result" }), "events[0].tool_use_id"),
            (
                json!({ "type": "user.interrupt", "session_thread_id": "sthr_1" }),
                "events[0].session_thread_id",
            ),
            (json!({ "type": "user.tool_confirmation", "result": "allow" }), "events[0].tool_use_id"),
            (confirm(json!({ "tool_use_id": "toolu_01", "result": "allow" })), "events[0].tool_use_id"),
            (confirm(json!({})), "events[0].result"),
            (confirm(json!({ "result": "maybe" })), "events[0].result"),
            (confirm(json!({ "result": "allow", "deny_message": "no" })), "events[0].deny_message"),
            (
                json!({ "type": "user.custom_tool_result", "custom_tool_use_id": ACTION, "is_error": "yes" }),
                "events[0].is_error",
            ),
        ] {
            assert_eq!(one(&event).unwrap_err().field.as_deref(), Some(field), "{event}");
        }
        assert_eq!(read(&json!({}), &GivenFiles::new()).unwrap_err().field.as_deref(), Some("events"));
        assert_eq!(
            read(&json!({ "events": [] }), &GivenFiles::new()).unwrap_err().field.as_deref(),
            Some("events")
        );
        let initial = json!({ "initial_events": [{ "type": "user.interrupt" }] });
        assert!(read_initial(Fields::of_body(&initial).unwrap(), &GivenFiles::new()).is_err());
    }
}
