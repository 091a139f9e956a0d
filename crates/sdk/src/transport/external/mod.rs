//! An external `qodercli`: starts it, speaks the documented protocol over its pipes, and ends it. This file owns the
//! life of the connection: when input may flow, when stdin closes, and what the end of the program means.

mod arguments;
mod incoming;
mod initialize;
mod lines;
mod process;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::incoming::Incoming;
use self::process::Program;
use self::wire::Wire;
use crate::error::{Error, Result};
use crate::messages::Message;
use crate::options::QoderAgentOptions;
use crate::session::{Control, Order, Start};
use crate::transport::next_prompt;

/// How long a program that says it is idle may take to notice an input that was just sent.
const QUIET: Duration = Duration::from_secs(2);

/// Runs a session to its end.
pub(crate) async fn run(start: &mut Start) -> Result<()> {
    let options = Arc::clone(&start.options);
    let initialize = initialize::Initialize::new(&options)?;
    let mut program = Program::start(&options)?;
    let (wire, writing) = Wire::new(program.stdin()?);
    let mut lines = lines::read(program.stdout()?);
    let incoming = Arc::new(Incoming::new(&options, initialize.hooks.clone(), start.messages.clone(), &wire));
    let mut greeting = request(&wire, &options, initialize.request.clone(), "initialize".to_owned());
    let mut link = Connected { wire, options, incoming, talk: Talk::default(), accepted: None };
    let closed = start.closing.cancelled();
    let mut ending = false;
    loop {
        let ready = link.accepted.is_some();
        let deadline = program.deadline();
        let wants_input = ready && !ending && link.wire.is_open();
        tokio::select! {
            line = lines.recv() => match line {
                Some(Ok(message)) => link.take(message, start),
                Some(Err(problem)) => return Err(program.failure(problem).await),
                None => break,
            },
            answer = &mut greeting, if !ready => {
                // The task answers unless the program has ended, which the lines tell.
                let info = match answer {
                    Ok(info) => info?,
                    Err(_) => return Err(program.ended().await),
                };
                initialize::check(&info)?;
                link.accepted = Some(());
                start.ready.ready(info);
            }
            message = next_prompt(&mut start.prompt), if wants_input && start.prompt.is_some() => {
                if let Some(message) = message {
                    link.send(&message);
                }
            }
            order = start.orders.recv(), if wants_input && !start.one_shot => match order {
                None => link.wire.close(),
                Some(Order::Input(message)) => link.send(&message),
                Some(Order::Control(control, answer)) => link.obey(&control, answer),
            },
            () = closed.clone(), if !ending => {
                ending = true;
                link.wire.close();
                program.begin_end();
            }
            () = link.talk.quiet(), if wants_input && start.one_shot => link.talk.is_quiet = true,
            () = process::until(deadline) => program.advance(),
        }
        if start.one_shot && ready && start.prompt.is_none() && link.talk.is_over() {
            link.wire.close();
        }
    }
    link.wire.close();
    drop(writing);
    let status = program.wait().await;
    link.incoming.stop();
    if link.accepted.is_none() || (!ending && !link.talk.failed && !status.success()) {
        return Err(program.ended().await);
    }
    Ok(())
}

/// Sends a control request from a task of its own and waits for the answer within the limit.
fn request(
    wire: &Wire,
    options: &QoderAgentOptions,
    request: Value,
    name: String,
) -> oneshot::Receiver<Result<Value>> {
    let (sender, receiver) = oneshot::channel();
    answer_request(wire, options, request, name, sender);
    receiver
}

fn answer_request(
    wire: &Wire,
    options: &QoderAgentOptions,
    request: Value,
    name: String,
    answer: oneshot::Sender<Result<Value>>,
) {
    let (wire, limit) = (wire.clone(), options.control_request_timeout_ms);
    tokio::spawn(async move {
        let (id, response) = wire.request(&request);
        let response = async {
            match response.await {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(message)) => Err(Error::ControlRequest { request: name.clone(), message }),
                Err(_) => Err(Error::Closed),
            }
        };
        let outcome = if limit == 0 {
            response.await
        } else {
            match tokio::time::timeout(Duration::from_millis(limit), response).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    wire.cancel(&id);
                    Err(Error::ControlRequestTimeout { request: name.clone(), after_ms: limit })
                }
            }
        };
        // The caller may have given up waiting.
        let _ = answer.send(outcome);
    });
}

/// A program that is being spoken to.
struct Connected {
    wire: Wire,
    options: Arc<QoderAgentOptions>,
    incoming: Arc<Incoming>,
    talk: Talk,
    /// Set once the handshake is done.
    accepted: Option<()>,
}

impl Connected {
    fn send(&mut self, message: &crate::UserMessage) {
        self.talk.asked();
        self.wire.send(&serde_json::to_value(Message::User(Box::new(message.clone()))).unwrap_or_default());
    }

    fn obey(&self, control: &Control, answer: oneshot::Sender<Result<Value>>) {
        if let Control::McpSetServers(servers) = control {
            self.incoming.bring(servers);
        }
        answer_request(&self.wire, &self.options, control.wire(), control.name().to_owned(), answer);
    }

    fn take(&mut self, message: Value, start: &Start) {
        match message.get("type").and_then(Value::as_str) {
            Some("control_response") => self.wire.answered(message),
            Some("control_request") => Incoming::take(&self.incoming, message),
            Some("control_cancel_request") => self.incoming.cancel(&message),
            Some("transcript_mirror") => copy(&message, start),
            Some("keep_alive") | None => {}
            Some(_) => {
                self.talk.heard(&message);
                let hidden = message.get("sdk_host_only") == Some(&Value::Bool(true));
                if message["subtype"] == "mcp_status_change" {
                    self.incoming.status_changed(&message);
                }
                if !hidden {
                    start.messages.send(Ok(Message::from_value(message)));
                }
            }
        }
    }
}

/// Takes lines of a log for the store.
fn copy(message: &Value, start: &Start) {
    let log = message.get("filePath").and_then(Value::as_str);
    let entries = message.get("entries").and_then(Value::as_array);
    if let (Some(copier), Some(log), Some(entries)) = (&start.copier, log, entries) {
        copier.take(Path::new(log), entries);
    }
}

/// What is known about the conversation: how much was asked and answered, and whether the program is idle. A query
/// closes its input when every prompt has its result.
#[derive(Default)]
struct Talk {
    asked: u64,
    results: u64,
    /// Delegated tasks that hold a run open where the program reports no states.
    tasks: std::collections::BTreeSet<String>,
    tells_states: bool,
    is_idle: bool,
    /// Idle for so long that an input would have been noticed.
    is_quiet: bool,
    idle_since: Option<Instant>,
    /// The last message was an error result, which explains a failing exit.
    failed: bool,
}

impl Talk {
    fn asked(&mut self) {
        self.asked += 1;
        self.is_idle = false;
        self.is_quiet = false;
    }

    fn heard(&mut self, message: &Value) {
        let subtype = message["subtype"].as_str().unwrap_or_default();
        let task = || message["task_id"].as_str().unwrap_or_default().to_owned();
        match (message["type"].as_str(), subtype) {
            (Some("result"), _) => {
                self.results += 1;
                self.failed = message["is_error"] == true;
            }
            (Some("system"), "session_state_changed") => {
                self.tells_states = true;
                self.is_idle = message["state"] == "idle";
                self.idle_since = self.is_idle.then(Instant::now);
                self.is_quiet = false;
            }
            (Some("system"), "task_started") => {
                if matches!(message["task_type"].as_str(), Some("local_agent" | "local_workflow")) {
                    self.tasks.insert(task());
                }
            }
            (Some("system"), "task_notification") => {
                self.tasks.remove(&task());
            }
            _ => self.failed = false,
        }
    }

    /// True when nothing is owed.
    fn is_over(&self) -> bool {
        if self.asked == 0 {
            return true;
        }
        if self.tells_states {
            return self.is_idle && self.results > 0 && (self.results >= self.asked || self.is_quiet);
        }
        self.results >= self.asked && self.tasks.is_empty()
    }

    /// Completes when the program has been idle for a while although inputs were merged.
    async fn quiet(&self) {
        match self.idle_since {
            Some(since) if self.is_idle && !self.is_quiet => tokio::time::sleep_until(since + QUIET).await,
            Some(_) | None => std::future::pending().await,
        }
    }
}
