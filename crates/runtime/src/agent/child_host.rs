//! What the parent's host hears of a child: its messages, marked with the call that started it, and its questions, marked
//! with the agent. Everything else of the child stays its own.

use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_types::wire::{StreamMessage, SystemMessage};

use crate::events::{Answer, Event, Host, PermissionQuestion};

/// Stands between a child and the parent's host.
pub(super) struct ChildHost {
    host: Arc<dyn Host>,
    agent_id: String,
    tool_use_id: String,
    session_id: String,
}

impl ChildHost {
    pub(super) fn new(host: Arc<dyn Host>, agent_id: &str, tool_use_id: &str, session_id: &str) -> Self {
        Self {
            host,
            agent_id: agent_id.to_owned(),
            tool_use_id: tool_use_id.to_owned(),
            session_id: session_id.to_owned(),
        }
    }

    fn message(&self, message: &StreamMessage<'_>) -> std::io::Result<()> {
        let marked = match message {
            StreamMessage::User {
                message,
                uuid,
                tool_use_result,
                is_replay,
                is_synthetic,
                custom_context,
                ..
            } => StreamMessage::User {
                custom_context: *custom_context,
                message,
                parent_tool_use_id: Some(&self.tool_use_id),
                session_id: &self.session_id,
                uuid,
                tool_use_result: *tool_use_result,
                is_replay: *is_replay,
                is_synthetic: *is_synthetic,
            },
            StreamMessage::Assistant { message, uuid, request_id, .. } => StreamMessage::Assistant {
                message,
                parent_tool_use_id: Some(&self.tool_use_id),
                session_id: &self.session_id,
                uuid,
                request_id: *request_id,
            },
            StreamMessage::System(SystemMessage::PermissionDenied {
                tool_name,
                tool_use_id,
                decision_reason_type,
                decision_reason,
                message,
                uuid,
                ..
            }) => StreamMessage::System(SystemMessage::PermissionDenied {
                tool_name,
                tool_use_id,
                agent_id: Some(&self.agent_id),
                decision_reason_type,
                decision_reason,
                message,
                uuid,
                session_id: &self.session_id,
            }),
            StreamMessage::System(_) | StreamMessage::Result(_) | StreamMessage::PromptSuggestion { .. } => {
                return Ok(());
            }
        };
        self.host.emit(Event::Message(&marked))
    }
}

impl Host for ChildHost {
    fn wants_partial(&self) -> bool {
        false
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.host.ready()
    }

    fn is_ready(&self) -> bool {
        self.host.is_ready()
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => self.message(message),
            Event::Warning(text) => self.host.emit(Event::Warning(text)),
            Event::Partial(_) | Event::ToolOutput { .. } => Ok(()),
        }
    }

    fn answers(&self) -> bool {
        self.host.answers()
    }

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        self.host.ask(PermissionQuestion { agent_id: Some(self.agent_id.clone()), ..question })
    }
}
