//! A session that another process drives, as the front sees any: what happens is read from its log, and what the person does
//! is left in its inbox, as `qodercli sessions watch`, `send`, `interrupt` and `permissions answer` do.

mod events;

use std::time::Duration;

use qoder_protocol::control::HostRequest;
use qoder_protocol::messages::StreamMessage;
use qoder_protocol::{
    ActionId, Answer, AnswerError, BoxFuture, ElicitationAnswer, EventStream, InterruptReceipt, Leave,
    Question, RequestError, SessionClient, SessionEvent, SessionState, SessionView, Wants,
};
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::session::agent_logs;
use qoder_runtime::sessions::LogEvents;
use qoder_runtime::sessions::new_id;
use qoder_runtime::store::SessionLocation;
use qoder_runtime::store::jsonl::Durability;
use qoder_types::record::InputAdmitted;
use qoder_types::{Actor, InboxBody, InboxOutcome, InboxReply, PermissionMode};
use serde_json::Value;

use crate::exit::Fault;
use crate::sessions::inbox::Letter;
use events::AttachedEvents;

/// How long the process that drives the session may take to take a message or an answer.
const DELIVERY: Duration = Duration::from_secs(30);
/// How long it may take to serve a request: servers that start again take a while.
const REQUEST: Duration = Duration::from_secs(300);
/// How long it may take to say which model answers.
const GREETING: Duration = Duration::from_secs(3);

/// A session that another process drives.
pub struct AttachedSession {
    id: String,
    paths: SessionPaths,
    person: Actor,
}

/// What the process that drives a session says about it.
#[derive(Debug, Default)]
pub struct DriverFacts {
    /// The model that answers; empty when it did not say.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
}

impl AttachedSession {
    /// The session of these files, for this person.
    pub fn new(id: String, paths: SessionPaths, person: Actor) -> Self {
        Self { id, paths, person }
    }

    /// Its events, from its start.
    pub fn events(&self) -> Box<dyn EventStream> {
        match AttachedEvents::open(&self.paths, &self.id) {
            Ok(events) => Box::new(events),
            Err(error) => Box::new(Unreadable(Some(error.to_string()))),
        }
    }

    /// Asks the process that drives it.
    pub async fn facts(&self) -> DriverFacts {
        let (usage, rules) = futures::join!(
            self.ask(HostRequest::GetContextUsage {}, GREETING),
            self.ask(HostRequest::ListPermissionRules {}, GREETING),
        );
        let word = |answer: Result<Value, RequestError>, field: &str| {
            answer.ok().and_then(|answer| answer[field].as_str().map(str::to_owned)).unwrap_or_default()
        };
        DriverFacts {
            model: word(usage, "model"),
            mode: PermissionMode::parse(&word(rules, "mode")).unwrap_or(PermissionMode::Default),
        }
    }

    /// Leaves an entry and waits for what becomes of it, beside the front.
    fn deliver(
        &self,
        id: String,
        body: InboxBody,
        patience: Duration,
    ) -> BoxFuture<'static, Result<InboxReply, RequestError>> {
        let (paths, by) = (self.paths.clone(), self.person.to_string());
        let refused = |fault: Fault| RequestError::Refused(fault.message);
        let work = tokio::task::spawn_blocking(move || {
            let mut letter = Letter::leave_as(id, &paths, by, body).map_err(refused)?;
            letter.wait_for(patience).map_err(refused)?.ok_or(RequestError::Ended)
        });
        Box::pin(async move { work.await.unwrap_or(Err(RequestError::Ended)) })
    }

    async fn ask(&self, request: HostRequest, patience: Duration) -> Result<Value, RequestError> {
        let request = serde_json::to_value(&request).map_err(RequestError::refused)?;
        let reply = self.deliver(new_id(), InboxBody::Request { request }, patience).await?;
        match reply.outcome {
            InboxOutcome::Accepted => Ok(reply.details),
            InboxOutcome::Lost | InboxOutcome::Refused => Err(RequestError::Refused(reply.message)),
        }
    }
}

impl SessionClient for AttachedSession {
    fn session_id(&self) -> &str {
        &self.id
    }

    fn submit(&self, input: InputAdmitted) -> BoxFuture<'_, Result<(), RequestError>> {
        let body = InboxBody::Input { message: input.message, origin: input.origin };
        let delivered = self.deliver(input.input_id, body, DELIVERY);
        Box::pin(async move {
            let reply = delivered.await?;
            match reply.outcome {
                InboxOutcome::Accepted => Ok(()),
                InboxOutcome::Lost | InboxOutcome::Refused => Err(RequestError::Refused(reply.message)),
            }
        })
    }

    fn answer(&self, action: ActionId, answer: Answer) -> BoxFuture<'_, Result<(), AnswerError>> {
        let ActionId { agent_id, tool_use_id } = action;
        let body = match answer.result {
            Some(result) => InboxBody::Result { tool_use_id, agent_id, result },
            None => InboxBody::Answer {
                tool_use_id,
                agent_id,
                allow: answer.allow,
                message: answer.message,
                updated_input: answer.updated_input,
                updated_permissions: answer.updated_permissions,
                always: false,
                interrupt: answer.interrupt,
            },
        };
        let delivered = self.deliver(new_id(), body, DELIVERY);
        Box::pin(async move {
            let reply = delivered.await.map_err(|error| AnswerError::Undelivered(error.to_string()))?;
            match reply.outcome {
                InboxOutcome::Accepted => Ok(()),
                InboxOutcome::Lost => Err(lost(&reply)),
                InboxOutcome::Refused => Err(refused(&reply)),
            }
        })
    }

    fn answer_elicitation(
        &self,
        _elicitation_id: String,
        _answer: ElicitationAnswer,
    ) -> BoxFuture<'_, Result<(), RequestError>> {
        let problem = "questions of MCP servers are answered where the session is driven";
        Box::pin(std::future::ready(Err(RequestError::refused(problem))))
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'_, Result<Value, RequestError>> {
        Box::pin(self.ask(request, REQUEST))
    }

    fn subscribe(&self, _after: Option<u64>, _wants: Wants) -> Box<dyn EventStream> {
        self.events()
    }

    fn subscribe_agent(&self, agent_id: &str) -> Option<Box<dyn EventStream>> {
        let logs = agent_logs(&SessionLocation::in_files(&self.paths, Durability::Process)).ok()?;
        let log = logs.into_iter().find(|log| log.agent_id == agent_id)?;
        Some(Box::new(LogEvents::open(&log.location.files()?, agent_id).ok()?))
    }

    fn view(&self) -> BoxFuture<'_, Result<SessionView, RequestError>> {
        Box::pin(std::future::ready(self.read_view()))
    }

    fn interrupt(&self, _by: Actor) -> BoxFuture<'_, Result<InterruptReceipt, RequestError>> {
        let delivered = self.deliver(new_id(), InboxBody::Interrupt {}, DELIVERY);
        Box::pin(async move {
            let reply = delivered.await?;
            match reply.outcome {
                InboxOutcome::Accepted => Ok(InterruptReceipt::default()),
                InboxOutcome::Lost | InboxOutcome::Refused => Err(RequestError::Refused(reply.message)),
            }
        })
    }

    fn close(&self, _leave: Leave) -> BoxFuture<'_, ()> {
        // The session is left as it is: another process drives it.
        Box::pin(std::future::ready(()))
    }
}

impl AttachedSession {
    /// What its log says at this moment.
    fn read_view(&self) -> Result<SessionView, RequestError> {
        let mut log = LogEvents::open(&self.paths, &self.id).map_err(RequestError::refused)?;
        let mut questions: Vec<std::sync::Arc<Question>> = Vec::new();
        let mut runs = false;
        while let Some(event) = log.try_next() {
            match event {
                SessionEvent::Asked(question) => questions.push(question),
                SessionEvent::Resolved { action, .. } => questions.retain(|open| open.action() != action),
                SessionEvent::Message(message) => match *message {
                    StreamMessage::User(message) if message.is_replay => runs = true,
                    StreamMessage::Result(_) => runs = false,
                    StreamMessage::User(_)
                    | StreamMessage::Assistant(_)
                    | StreamMessage::System(_)
                    | StreamMessage::PromptSuggestion(_) => {}
                },
                SessionEvent::CaughtUp => break,
                SessionEvent::Ended { problem } => {
                    return Err(problem.map_or(RequestError::Ended, RequestError::Refused));
                }
                SessionEvent::Partial { .. }
                | SessionEvent::ToolOutput { .. }
                | SessionEvent::Warning(_)
                | SessionEvent::Elicited(_)
                | SessionEvent::ElicitationClosed { .. }
                | SessionEvent::Lagged(_) => {}
            }
        }
        let state = match (questions.is_empty(), runs) {
            (false, _) => SessionState::RequiresAction,
            (true, true) => SessionState::Running,
            (true, false) => SessionState::Idle,
        };
        Ok(SessionView { state, questions })
    }
}

/// The answer that was first, from the details of a reply.
fn lost(reply: &InboxReply) -> AnswerError {
    let first = serde_json::from_value::<FirstAnswer>(reply.details.clone());
    match first {
        Ok(first) => AnswerError::Lost(Box::new(first.into())),
        Err(_) => AnswerError::Undelivered(reply.message.clone()),
    }
}

/// Why an answer was refused, from the details of a reply.
fn refused(reply: &InboxReply) -> AnswerError {
    let plain = [AnswerError::Withdrawn, AnswerError::NotPending, AnswerError::Ambiguous];
    let code = reply.details["code"].as_str().unwrap_or_default();
    let known = plain.into_iter().find(|error| error.code() == code);
    known.unwrap_or_else(|| AnswerError::Undelivered(reply.message.clone()))
}

/// An answer as a reply describes it.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstAnswer {
    allow: bool,
    by: Actor,
    #[serde(default)]
    message: Option<String>,
}

impl From<FirstAnswer> for Answer {
    fn from(first: FirstAnswer) -> Self {
        Self {
            allow: first.allow,
            message: first.message,
            updated_input: None,
            updated_permissions: Vec::new(),
            interrupt: false,
            result: None,
            by: first.by,
        }
    }
}

/// The events of a log that cannot be read.
struct Unreadable(Option<String>);

impl EventStream for Unreadable {
    fn next(&mut self) -> BoxFuture<'_, SessionEvent> {
        match self.try_next() {
            Some(event) => Box::pin(std::future::ready(event)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn try_next(&mut self) -> Option<SessionEvent> {
        self.0.take().map(|problem| SessionEvent::Ended { problem: Some(problem) })
    }
}
