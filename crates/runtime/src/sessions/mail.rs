//! The inbox of a session that is driven: what other processes leave for it goes the way of what arrives in this process,
//! and each entry gets its reply once what it led to is on record. Nothing that lies in an inbox can end a session.

use std::sync::{Arc, OnceLock, Weak};

use qoder_protocol::{ActionId, Answer, RequestError};
use qoder_store::inbox::{Item, SessionInbox};
use qoder_types::record::InputAdmitted;
use qoder_types::{Actor, InboxBody, InboxEntry, InboxOutcome, InboxReply};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::requests::RequestContext;
use crate::driver::DriverLink;
use crate::driver::LateAnswer;
use crate::events::{AnswerError, Event, Hub, Outlet, Receipt};
use crate::session::timestamp;

/// Where requests are served, once a front is there.
pub(super) type ServedAt = Arc<OnceLock<Weak<RequestContext>>>;

/// Serves an inbox until it is dropped.
pub(super) struct Mail(JoinHandle<()>);

impl Drop for Mail {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Mail {
    /// Serves the inbox of a session whose events pass `hub`.
    pub(super) fn serve(
        inbox: Box<dyn SessionInbox>,
        session: DriverLink,
        served_at: ServedAt,
        hub: Arc<Hub>,
    ) -> Self {
        let begun = timestamp();
        Self(tokio::spawn(async move {
            let clerk = Clerk { session, served_at, hub, begun };
            let looks = clerk.hub.serve_inbox();
            // A session that has ended leaves what arrives to the next process.
            let _ = clerk.serve(inbox, looks).await;
        }))
    }
}

/// Takes entries to where they belong.
struct Clerk {
    session: DriverLink,
    served_at: ServedAt,
    hub: Arc<Hub>,
    /// When this process took the session, as entries write times.
    begun: String,
}

impl Clerk {
    async fn serve(
        &self,
        mut inbox: Box<dyn SessionInbox>,
        mut looks: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    ) -> Result<(), RequestError> {
        // Answers to questions of agents that are not asked again yet.
        let mut early: Vec<InboxEntry> = Vec::new();
        let mut wanted: Vec<oneshot::Sender<()>> = Vec::new();
        // Requests may take long; nothing waits for them.
        let mut requests: JoinSet<InboxReply> = JoinSet::new();
        let receipt = if inbox.settles_with_log() { Receipt::Taken } else { Receipt::Durable };
        loop {
            for item in inbox.take() {
                match item {
                    Item::Entry(entry) => early.push(entry),
                    Item::Refused { name, reason } => {
                        self.warn(&format!("the inbox entry {name} is refused: {reason}"));
                    }
                }
            }
            let mut left = Vec::new();
            for entry in early {
                if let InboxBody::Request { request } = &entry.body {
                    requests.spawn(self.request(&entry, request.clone()));
                    continue;
                }
                match self.take(&entry, receipt).await? {
                    Some(reply) => {
                        let refusal = refusal(&entry, &reply);
                        self.settle(&mut *inbox, reply);
                        refusal.iter().for_each(|text| self.warn(text));
                    }
                    None => left.push(entry),
                }
            }
            early = left;
            // The driver that asked for this look may have stopped waiting.
            for looked in wanted.drain(..) {
                let _ = looked.send(());
            }
            tokio::select! {
                () = inbox.arrived() => {}
                () = self.hub.question_opened(), if !early.is_empty() => {}
                Some(looked) = looks.recv() => wanted.push(looked),
                Some(Ok(reply)) = requests.join_next(), if !requests.is_empty() => {
                    self.settle(&mut *inbox, reply);
                }
            }
        }
    }

    /// Has a request served. One that was left for an earlier process is not wanted any longer.
    fn request(&self, entry: &InboxEntry, request: Value) -> impl Future<Output = InboxReply> + use<> {
        let (id, is_late) = (entry.id.clone(), entry.at < self.begun);
        let context = self.served_at.get().and_then(Weak::upgrade);
        async move {
            let answer = match (serde_json::from_value(request), context) {
                _ if is_late => {
                    Err(RequestError::refused("it was left before this process drove the session"))
                }
                (Err(error), _) => Err(RequestError::refused(format!("it is not a request: {error}"))),
                (Ok(_), None) => Err(RequestError::Ended),
                (Ok(request), Some(context)) => context.serve(request).await,
            };
            match answer {
                Ok(details) => {
                    let message = "the request was served".to_owned();
                    InboxReply { id, outcome: InboxOutcome::Accepted, message, details }
                }
                Err(error) => {
                    let details = json!({ "code": error.code() });
                    InboxReply { id, outcome: InboxOutcome::Refused, message: error.to_string(), details }
                }
            }
        }
    }

    /// What became of an entry; `None` when it waits for a question that is not open yet.
    async fn take(&self, entry: &InboxEntry, receipt: Receipt) -> Result<Option<InboxReply>, RequestError> {
        let by = Actor::claimed(&entry.by);
        let reply = |outcome, message: String, details| {
            Some(InboxReply { id: entry.id.clone(), outcome, message, details })
        };
        Ok(match &entry.body {
            InboxBody::Input { message, origin } => {
                let (input_id, message) = (entry.id.clone(), message.clone());
                let input = InputAdmitted { input_id, message, origin: *origin };
                if let Err(problem) = input.check() {
                    let details = json!({ "code": problem.code() });
                    return Ok(reply(InboxOutcome::Refused, problem.to_string(), details));
                }
                self.session.run_with_receipt(receipt, move |driver| driver.admit_once(input)).await?;
                reply(InboxOutcome::Accepted, "the message is on record".to_owned(), Value::Null)
            }
            InboxBody::Interrupt {} if entry.at < self.begun => {
                let message = "it was left before this process drove the session".to_owned();
                reply(InboxOutcome::Refused, message, Value::Null)
            }
            InboxBody::Interrupt {} => {
                if self.session.run(move |driver| driver.interrupt_by(by)).await? {
                    reply(InboxOutcome::Accepted, "the turn is being stopped".to_owned(), Value::Null)
                } else {
                    reply(InboxOutcome::Refused, "no turn runs".to_owned(), Value::Null)
                }
            }
            // Served beside the others.
            InboxBody::Request { .. } => None,
            InboxBody::Answer { tool_use_id, agent_id, .. }
            | InboxBody::Result { tool_use_id, agent_id, .. } => {
                let Some(answer) = self.answer(&entry.body, by) else { return Ok(None) };
                let action = ActionId { agent_id: agent_id.clone(), tool_use_id: tool_use_id.clone() };
                let mut outcome = self.hub.answer(&action, answer.clone(), receipt).await;
                if matches!(outcome, Err(AnswerError::NotPending | AnswerError::Withdrawn)) {
                    let late = self
                        .session
                        .run_with_receipt(receipt, move |driver| driver.answer_late(&action, answer))
                        .await?;
                    if let (LateAnswer::Unknown, Some(agent)) = (&late, agent_id.clone()) {
                        // An agent that runs has not asked yet, or asks again.
                        if self.session.run(move |driver| driver.may_still_ask(&agent)).await? {
                            return Ok(None);
                        }
                    }
                    outcome = match late {
                        LateAnswer::Unknown => outcome,
                        known => known.counts(),
                    };
                }
                match outcome {
                    Ok(()) => {
                        reply(InboxOutcome::Accepted, "the answer is on record".to_owned(), Value::Null)
                    }
                    Err(AnswerError::Lost(first)) => {
                        let message = AnswerError::Lost(first.clone()).to_string();
                        reply(InboxOutcome::Lost, message, details(&first))
                    }
                    Err(error) => {
                        let details = json!({ "code": error.code() });
                        reply(InboxOutcome::Refused, error.to_string(), details)
                    }
                }
            }
        })
    }

    /// The answer of an entry. With `always` it keeps what the open question suggests.
    fn answer(&self, body: &InboxBody, by: Actor) -> Option<Answer> {
        match body {
            InboxBody::Result { result, .. } => Some(Answer::of_result(result.clone(), by)),
            InboxBody::Answer {
                tool_use_id,
                allow,
                message,
                updated_input,
                updated_permissions,
                always,
                interrupt,
                ..
            } => {
                let mut updates = updated_permissions.clone();
                if *always && *allow {
                    let open = self.hub.open_questions();
                    let asked = open.iter().find(|question| question.tool_use_id == *tool_use_id);
                    updates.extend(asked.map(|question| question.suggestions.clone()).unwrap_or_default());
                }
                Some(Answer {
                    allow: *allow,
                    message: message.clone(),
                    updated_input: updated_input.clone(),
                    updated_permissions: updates,
                    interrupt: *interrupt,
                    result: None,
                    by,
                })
            }
            InboxBody::Input { .. } | InboxBody::Interrupt {} | InboxBody::Request { .. } => None,
        }
    }

    fn settle(&self, inbox: &mut dyn SessionInbox, reply: InboxReply) {
        let id = reply.id.clone();
        if let Err(error) = inbox.settle(reply) {
            self.warn(&format!("the inbox entry {id} cannot be settled: {error}"));
        }
    }

    fn warn(&self, text: &str) {
        // A sink that is gone is met again by the next event of the turn.
        let _ = self.hub.emit(Event::Warning(text));
    }
}

/// The warning about an entry that names what does not exist, or holds what no session takes: the one who left it may not
/// wait for the reply. Stopping what does not run is not an error.
fn refusal(entry: &InboxEntry, reply: &InboxReply) -> Option<String> {
    let is_fault = reply.outcome == InboxOutcome::Refused && !matches!(entry.body, InboxBody::Interrupt {});
    is_fault.then(|| format!("the inbox entry {} is refused: {}", entry.id, reply.message))
}

fn details(first: &Answer) -> Value {
    json!({
        "allow": first.allow, "by": first.by, "message": first.message, "updatedInput": first.updated_input,
        "updatedPermissions": first.updated_permissions, "result": first.result,
    })
}
