//! A session on a server, as the front sees any: what happens is read from the server's stream of events, and what the person
//! does is sent as events, over the API that every other client uses.

mod address;
mod deliveries;
mod http;
mod reader;
mod translate;
#[cfg(test)]
mod translate_tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_protocol::control::HostRequest;
use qoder_protocol::{
    ActionId, Answer, AnswerError, BoxFuture, ElicitationAnswer, EventStream, InterruptReceipt, Leave,
    RequestError, SessionClient, SessionView, Wants,
};
use qoder_types::record::{InputAdmitted, InputOrigin};
use qoder_types::{Actor, MessageContent};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::exit::{Exit, Fault};
use deliveries::Deliveries;
use http::{ServerClient, ServerError};
use reader::{RemoteEvents, Source};
use translate::{Sender, Translator};

pub use address::{Address, is_address};

/// A session on a server.
pub struct RemoteSession {
    server: Arc<ServerClient>,
    deliveries: Arc<Deliveries>,
    model: String,
    runtime: Handle,
}

impl RemoteSession {
    /// Looks the session up. Its requests are made on this runtime, as this person.
    pub async fn open(
        address: Address,
        environment: BTreeMap<String, String>,
        person: Actor,
        runtime: Handle,
    ) -> Result<Self, Fault> {
        let server = ServerClient::new(address, &environment).map_err(|error| fault(&error))?;
        let found = server.get(server.address.session.clone()).await.map_err(|error| fault(&error))?;
        let model = &found["agent"]["model"];
        let model = model.as_str().or_else(|| model["id"].as_str()).unwrap_or_default().to_owned();
        let deliveries = Arc::new(Deliveries::new(person));
        Ok(Self { server: Arc::new(server), deliveries, model, runtime })
    }

    /// The model that answers.
    pub fn model(&self) -> &str {
        &self.model
    }

    fn translator(&self) -> Translator {
        Translator::new(self.session_id(), self.model.as_str())
    }

    /// The events of the session, or of one of its threads, from their start.
    pub fn events(&self, thread: Option<String>) -> Box<dyn EventStream> {
        let (server, deliveries) = (Arc::clone(&self.server), Arc::clone(&self.deliveries));
        let source = Source { server, deliveries, thread };
        Box::new(RemoteEvents::start(source, self.translator(), &self.runtime))
    }

    /// Does something on the runtime of the session, beside the front.
    fn there<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<ServerClient>, Arc<Deliveries>) -> F,
        lost: T,
    ) -> BoxFuture<'static, T> {
        let task = self.runtime.spawn(work(Arc::clone(&self.server), Arc::clone(&self.deliveries)));
        Box::pin(async move { task.await.unwrap_or(lost) })
    }
}

/// Sends events.
async fn send(server: &ServerClient, events: Value) -> Result<Value, ServerError> {
    server.post(server.address.below(&["events"]), &json!({ "events": events })).await
}

fn refused(error: ServerError) -> RequestError {
    RequestError::refused(error)
}

fn fault(error: &ServerError) -> Fault {
    let hint = match error {
        ServerError::Refused { status: 401 | 403, .. } => "check the token in QODER_ACCESS_TOKEN",
        ServerError::Refused { status: 404, .. } => {
            "`GET /v1/sessions` lists the sessions of the token's user"
        }
        ServerError::Unreachable(_) => "check the address, and that the server runs",
        ServerError::Refused { .. } | ServerError::Unreadable(_) => "",
    };
    Fault { exit: Exit::Session, message: error.to_string(), hint: hint.to_owned() }
}

/// The content of a message, as the API takes it.
fn content(content: &MessageContent) -> Value {
    match content {
        MessageContent::Text(text) => json!([{ "type": "text", "text": text }]),
        MessageContent::Blocks(blocks) => json!(blocks),
    }
}

/// What an answer is as events. The API allows or denies a call as it is.
fn confirmation(action: &ActionId, answer: &Answer) -> Result<Value, AnswerError> {
    let problem = |text: &str| Err(AnswerError::Undelivered(text.to_owned()));
    if answer.result.is_some() {
        return problem("results of tools are sent by the client that runs them");
    }
    if answer.updated_input.is_some() {
        return problem("the server's API cannot change the input of a call; allow or deny it as it is");
    }
    let result = answer.word();
    let mut event =
        json!({ "type": "user.tool_confirmation", "tool_use_id": action.tool_use_id, "result": result });
    if let Some(message) = answer.message.as_ref().filter(|_| !answer.allow) {
        event["deny_message"] = json!(message);
    }
    Ok(event)
}

impl SessionClient for RemoteSession {
    fn session_id(&self) -> &str {
        &self.server.address.id
    }

    fn submit(&self, input: InputAdmitted) -> BoxFuture<'_, Result<(), RequestError>> {
        if input.origin != InputOrigin::User {
            let problem = "commands for the shell cannot be sent to a server";
            return Box::pin(std::future::ready(Err(RequestError::refused(problem))));
        }
        let event = json!({ "type": "user.message", "content": content(&input.message.content) });
        let work = |server: Arc<ServerClient>, deliveries: Arc<Deliveries>| async move {
            let mut sent = deliveries.begin().await;
            let stored = send(&server, json!([event])).await.map_err(refused)?;
            sent.message(&stored, input.input_id);
            Ok(())
        };
        self.there(work, Err(RequestError::Ended))
    }

    fn answer(&self, action: ActionId, answer: Answer) -> BoxFuture<'_, Result<(), AnswerError>> {
        let event = match confirmation(&action, &answer) {
            Ok(event) => event,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let work = move |server: Arc<ServerClient>, deliveries: Arc<Deliveries>| async move {
            let mut sent = deliveries.begin().await;
            let mut events = vec![event];
            if answer.interrupt {
                events.push(json!({ "type": "user.interrupt" }));
            }
            match send(&server, Value::Array(events)).await {
                Ok(stored) => {
                    sent.answer(&stored);
                    Ok(())
                }
                Err(ServerError::Refused { status: 400 | 404 | 409, .. }) => Err(AnswerError::NotPending),
                Err(error) => Err(AnswerError::Undelivered(error.to_string())),
            }
        };
        self.there(work, Err(AnswerError::Undelivered("the program is ending".to_owned())))
    }

    fn answer_elicitation(
        &self,
        _elicitation_id: String,
        _answer: ElicitationAnswer,
    ) -> BoxFuture<'_, Result<(), RequestError>> {
        let problem = "a session on a server has no questions of MCP servers";
        Box::pin(std::future::ready(Err(RequestError::refused(problem))))
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'_, Result<Value, RequestError>> {
        match request {
            HostRequest::SetSessionTitle { title } => {
                let work = |server: Arc<ServerClient>, _| async move {
                    let url = server.address.session.clone();
                    server.post(url, &json!({ "title": title })).await.map_err(refused)
                };
                self.there(work, Err(RequestError::Ended))
            }
            // The server reads no commands; those of the front itself are not asked for here.
            HostRequest::SupportedCommands {} => Box::pin(std::future::ready(Ok(json!({ "commands": [] })))),
            _ => {
                let problem = "this is not possible for a session on a server: its API has no such request";
                Box::pin(std::future::ready(Err(RequestError::refused(problem))))
            }
        }
    }

    fn subscribe(&self, _after: Option<u64>, _wants: Wants) -> Box<dyn EventStream> {
        self.events(None)
    }

    fn subscribe_agent(&self, agent_id: &str) -> Option<Box<dyn EventStream>> {
        Some(self.events(Some(agent_id.to_owned())))
    }

    fn view(&self) -> BoxFuture<'_, Result<SessionView, RequestError>> {
        let mut translator = self.translator();
        let work = |server: Arc<ServerClient>, _| async move {
            let mut url = server.address.below(&["events"]);
            url.query_pairs_mut().append_pair("limit", "1000").append_pair("order", "asc");
            let mut next = Some(url.clone());
            while let Some(page) = next.take() {
                let answer = server.get(page).await.map_err(refused)?;
                for event in answer["data"].as_array().into_iter().flatten() {
                    translator.translate(event, Sender::Another);
                }
                next = answer["next_page"].as_str().map(|page| {
                    let mut url = url.clone();
                    url.query_pairs_mut().append_pair("page", page);
                    url
                });
            }
            Ok(SessionView { state: translator.state(), questions: translator.questions() })
        };
        self.there(work, Err(RequestError::Ended))
    }

    fn interrupt(&self, _by: Actor) -> BoxFuture<'_, Result<InterruptReceipt, RequestError>> {
        let work = |server: Arc<ServerClient>, _| async move {
            send(&server, json!([{ "type": "user.interrupt" }])).await.map_err(refused)?;
            Ok(InterruptReceipt::default())
        };
        self.there(work, Err(RequestError::Ended))
    }

    fn close(&self, _leave: Leave) -> BoxFuture<'_, ()> {
        // The session is left as it is: the server drives it.
        Box::pin(std::future::ready(()))
    }
}
