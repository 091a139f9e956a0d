//! The host that the engine speaks to: its messages become values on the stream, its questions go to whoever decides.
//! A stream that nobody reads any more stops nothing by itself; closing does, and puts it on record.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::events::{Answer, Event, Host, PermissionQuestion};
use qoder_runtime::session::new_id;
use qoder_types::wire::{StreamMessage, SystemMessage};
use serde_json::{Map, Value, json};

use crate::callbacks::{decide, decider};
use crate::mcp::{McpServerStatus, OnMcpStatusChange};
use crate::options::OnStderr;
use crate::permission::{CanUseTool, PermissionResult, ToolPermissionContext};
use crate::session::MessageSender;
use crate::{CancellationToken, Message, QoderAgentOptions, Result, StreamEvent};

/// Who answered, as the log has it.
const DECIDER: &str = "can_use_tool";

pub(super) struct SdkHost {
    messages: MessageSender,
    partial: bool,
    hook_events: bool,
    session_id: OnceLock<String>,
    decider: Option<CanUseTool>,
    stderr: Option<OnStderr>,
    status: Option<OnMcpStatusChange>,
}

impl SdkHost {
    pub(super) fn new(options: &QoderAgentOptions, messages: MessageSender) -> Result<Self> {
        Ok(Self {
            messages,
            partial: options.include_partial_messages,
            hook_events: options.include_hook_events,
            session_id: OnceLock::new(),
            decider: decider(options)?,
            stderr: options.stderr.clone(),
            status: options.on_mcp_status_change.clone(),
        })
    }

    /// The session is open.
    pub(super) fn belongs_to(&self, session_id: &str) {
        // Set once, right after opening.
        let _ = self.session_id.set(session_id.to_owned());
    }

    fn tell_status(&self, rows: &[Value]) {
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

impl Host for SdkHost {
    fn wants_partial(&self) -> bool {
        self.partial
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let messages = self.messages.clone();
        async move { messages.room().await }.boxed()
    }

    fn is_ready(&self) -> bool {
        self.messages.has_room()
    }

    fn wants_hook_events(&self) -> bool {
        self.hook_events
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => {
                if let StreamMessage::System(SystemMessage::McpStatusChange { servers, .. }) = message {
                    self.tell_status(servers);
                }
                let value = serde_json::to_value(message).map_err(std::io::Error::other)?;
                self.send(Message::from_value(value));
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

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        let Some(decider) = self.decider.clone() else { return std::future::ready(None).boxed() };
        async move {
            let (name, input) = (question.tool_name.clone(), question.input.clone());
            let result = decide(&decider, name, input, |signal| context(question, signal)).await;
            Some(answer(result))
        }
        .boxed()
    }
}

fn context(question: PermissionQuestion, signal: CancellationToken) -> ToolPermissionContext {
    let layer = serde_json::to_value(question.decision.layer).ok();
    ToolPermissionContext {
        signal,
        suggestions: question.suggestions,
        blocked_path: None,
        decision_reason: Some(question.decision.reason),
        decision_reason_type: layer.and_then(|layer| layer.as_str().map(str::to_owned)),
        classifier_approvable: None,
        title: Some(format!("Allow {}?", question.tool_name)),
        display_name: Some(question.tool_name.clone()),
        description: None,
        tool_use_id: Some(question.tool_use_id),
        agent_id: question.agent_id,
        exit_plan_mode: (question.tool_name == "ExitPlanMode").then(|| plan(&question.input)),
    }
}

fn plan(input: &Value) -> Value {
    json!({ "plan": input.get("plan") })
}

fn answer(result: PermissionResult) -> Answer {
    match result {
        PermissionResult::Allow { updated_input, updated_permissions, .. } => Answer {
            allow: true,
            updated_input,
            updated_permissions: updated_permissions.unwrap_or_default(),
            by: DECIDER.to_owned(),
            ..Answer::default()
        },
        PermissionResult::Deny { message, interrupt, .. } => Answer {
            message: Some(message).filter(|message| !message.trim().is_empty()),
            interrupt,
            by: DECIDER.to_owned(),
            ..Answer::default()
        },
    }
}
