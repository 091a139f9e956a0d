//! The sink of the engine: its messages become values on the stream, its questions go to the callback that decides.
//! A stream that is no longer read stops nothing by itself; closing does, and puts it on record.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_protocol::{Actor, Answer, AskKind, Question};
use qoder_runtime::events::{Answering, Event, Sink, Wants};
use qoder_runtime::sessions::new_id;
use serde_json::{Map, Value};

use crate::callback::CancellationToken;
use crate::error::Result;
use crate::mcp::{McpServerStatus, OnMcpStatusChange};
use crate::messages::{Message, StreamEvent};
use crate::options::permission::{CanUseTool, PermissionResult, ToolPermissionContext};
use crate::options::{OnStderr, QoderAgentOptions};
use crate::session::MessageSender;
use crate::transport::callbacks::{decide, decider};

pub(super) struct SdkSink {
    messages: MessageSender,
    partial: bool,
    hook_events: bool,
    session_id: OnceLock<String>,
    decider: Option<CanUseTool>,
    answering: Answering,
    stderr: Option<OnStderr>,
    status: Option<OnMcpStatusChange>,
}

impl SdkSink {
    pub(super) fn new(options: &QoderAgentOptions, messages: MessageSender) -> Result<Self> {
        Ok(Self {
            messages,
            partial: options.include_partial_messages,
            hook_events: options.include_hook_events,
            session_id: OnceLock::new(),
            decider: decider(options)?,
            answering: Answering::default(),
            stderr: options.stderr.clone(),
            status: options.on_mcp_status_change.clone(),
        })
    }

    /// The session is open.
    pub(super) fn belongs_to(&self, session_id: &str) {
        // Set once, right after opening.
        let _ = self.session_id.set(session_id.to_owned());
    }

    fn report_status(&self, rows: &[Value]) {
        let Some(hear) = &self.status else { return };
        let read = |row: &Value| serde_json::from_value(row.clone()).ok();
        let rows: Vec<McpServerStatus> = rows.iter().filter_map(read).collect();
        // A listener that panics must not end the session.
        let _ = catch_unwind(AssertUnwindSafe(|| hear(rows)));
    }

    fn send(&self, message: Message) {
        self.messages.send(Ok(message));
    }
}

impl Sink for SdkSink {
    fn wants(&self) -> Wants {
        Wants { partial: self.partial, hook_events: self.hook_events, ..Wants::default() }
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let messages = self.messages.clone();
        async move { messages.room().await }.boxed()
    }

    fn is_ready(&self) -> bool {
        self.messages.has_room()
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => {
                if let StreamMessage::System(SystemMessage::McpStatusChange { servers, .. }) = message {
                    self.report_status(servers);
                }
                self.send(Message::from_stream(message).map_err(std::io::Error::other)?);
            }
            Event::Partial { event, parent_tool_use_id } => {
                let event = serde_json::from_str(event).map_err(std::io::Error::other)?;
                self.send(Message::StreamEvent(Box::new(StreamEvent {
                    uuid: new_id(),
                    session_id: self.session_id.get().cloned().unwrap_or_default(),
                    event,
                    parent_tool_use_id: parent_tool_use_id.map(str::to_owned),
                    extra: Map::new(),
                })));
            }
            Event::ToolOutput { .. } => {}
            Event::Asked(asking) => {
                // The result of a call that runs outside comes from the program that declared its tool.
                let decider = self.decider.clone();
                if let Some(decider) = decider.filter(|_| asking.question.kind == AskKind::Permission) {
                    self.answering.begin(asking, ask(decider, Arc::clone(&asking.question)));
                }
            }
            Event::Resolved { action, .. } => self.answering.resolved(action),
            Event::Warning(text) => {
                if let Some(hear) = &self.stderr {
                    hear(&format!("warning: {text}"));
                }
            }
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        self.decider.is_some()
    }
}

fn ask(decider: CanUseTool, question: Arc<Question>) -> BoxFuture<'static, Option<Answer>> {
    async move {
        let (name, input) = (question.tool_name.clone(), question.input.clone());
        let result = decide(&decider, name, input, |signal| context(&question, signal)).await;
        Some(answer(result).keep_original(&question.input))
    }
    .boxed()
}

fn context(question: &Question, signal: CancellationToken) -> ToolPermissionContext {
    ToolPermissionContext {
        signal,
        suggestions: question.suggestions.clone(),
        blocked_path: question.blocked_path().map(str::to_owned),
        decision_reason: Some(question.decision.reason.clone()),
        decision_reason_type: Some(question.reason_type().to_owned()),
        classifier_approvable: Some(false),
        title: Some(question.title()),
        display_name: Some(question.tool_name.clone()),
        description: Some(question.description().to_owned()),
        tool_use_id: Some(question.tool_use_id.clone()),
        agent_id: question.agent_id.clone(),
        exit_plan_mode: question.plan(),
    }
}

fn answer(result: PermissionResult) -> Answer {
    match result {
        PermissionResult::Allow { updated_input, updated_permissions, decision_classification } => Answer {
            allow: true,
            // As over a pipe: what is not an object replaces nothing.
            updated_input: updated_input.filter(Value::is_object),
            updated_permissions: updated_permissions.unwrap_or_default(),
            by: host(decision_classification),
            ..Answer::default()
        },
        PermissionResult::Deny { message, interrupt, decision_classification } => Answer {
            message: Some(message).filter(|message| !message.trim().is_empty()),
            interrupt,
            by: host(decision_classification),
            ..Answer::default()
        },
    }
}

/// The program, with the word by which it classified its answer.
fn host(classification: Option<String>) -> Actor {
    classification.map_or(Actor::Host, Actor::HostClassified)
}
