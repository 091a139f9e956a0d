//! What the parent's host hears of a child: its messages, marked with the call that started it, and its questions, marked
//! with the agent. What it has used so far is told with each of its replies. Everything else of the child stays its own.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::BoxFuture;
use qoder_core::ports::{ProgressSink, ToolProgress};
use qoder_types::record::AssistantMessage;
use qoder_types::wire::{StreamMessage, SystemMessage};
use qoder_types::{ContentBlock, Message, MessageContent};

use crate::events::{Answer, Event, Host, PermissionQuestion};

/// Stands between a child and the parent's host.
pub(super) struct ChildHost {
    pub(super) host: Arc<dyn Host>,
    pub(super) agent_id: String,
    pub(super) tool_use_id: String,
    /// The main session.
    pub(super) session_id: String,
    /// True when the host hears what the child says and thinks; otherwise only its calls and their results.
    pub(super) forwards_text: bool,
    pub(super) used: Used,
}

/// What a child has used so far, on its way to whoever watches.
pub(super) struct Used {
    progress: ProgressSink,
    task_id: String,
    begun: Instant,
    counts: Mutex<(u64, u64)>,
}

impl Used {
    pub(super) fn new(progress: ProgressSink, task_id: &str) -> Self {
        Self { progress, task_id: task_id.to_owned(), begun: Instant::now(), counts: Mutex::default() }
    }

    fn see(&self, message: &AssistantMessage) {
        let calls = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { name, .. } => Some(name),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. }
            | ContentBlock::ToolResult { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Document { .. }
            | ContentBlock::Unknown(_) => None,
        });
        let calls: Vec<&String> = calls.collect();
        let (total_tokens, tool_uses) = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.0 += message.usage.total_input() + message.usage.output_tokens;
            counts.1 += calls.len() as u64;
            *counts
        };
        (self.progress)(ToolProgress::TaskProgress {
            task_id: self.task_id.clone(),
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            last_line: None,
            total_tokens,
            tool_uses,
            last_tool: calls.last().map(|name| (*name).clone()),
        });
    }
}

impl ChildHost {
    /// An agent of the child has marked its messages already.
    fn message(&self, message: &StreamMessage<'_>) -> std::io::Result<()> {
        let calls;
        let marked = match message {
            StreamMessage::User {
                message,
                parent_tool_use_id,
                uuid,
                tool_use_result,
                is_replay,
                is_synthetic,
                custom_context,
                ..
            } if self.hears(message) => StreamMessage::User {
                custom_context: *custom_context,
                message,
                parent_tool_use_id: parent_tool_use_id.or(Some(&self.tool_use_id)),
                session_id: &self.session_id,
                uuid,
                tool_use_result: *tool_use_result,
                is_replay: *is_replay,
                is_synthetic: *is_synthetic,
            },
            StreamMessage::Assistant { message, parent_tool_use_id, uuid, request_id, error, .. } => {
                if parent_tool_use_id.is_none() {
                    self.used.see(message);
                }
                let Some(shown) = self.calls_of(message) else { return Ok(()) };
                calls = shown;
                StreamMessage::Assistant {
                    message: &calls,
                    parent_tool_use_id: parent_tool_use_id.or(Some(&self.tool_use_id)),
                    session_id: &self.session_id,
                    uuid,
                    request_id: *request_id,
                    error: *error,
                }
            }
            // These name the main session already.
            StreamMessage::System(
                SystemMessage::HookStarted { .. }
                | SystemMessage::HookProgress { .. }
                | SystemMessage::HookResponse { .. },
            ) => return self.host.emit(Event::Message(message)),
            StreamMessage::System(SystemMessage::PermissionDenied {
                tool_name,
                tool_use_id,
                agent_id,
                decision_reason_type,
                decision_reason,
                message,
                uuid,
                ..
            }) => StreamMessage::System(SystemMessage::PermissionDenied {
                tool_name,
                tool_use_id,
                agent_id: agent_id.or(Some(&self.agent_id)),
                decision_reason_type,
                decision_reason,
                message,
                uuid,
                session_id: &self.session_id,
            }),
            StreamMessage::User { .. }
            | StreamMessage::System(_)
            | StreamMessage::Result(_)
            | StreamMessage::PromptSuggestion { .. } => {
                return Ok(());
            }
        };
        self.host.emit(Event::Message(&marked))
    }
}

impl ChildHost {
    /// What the host hears of a reply: the calls in it, and the rest when it wants that.
    fn calls_of<'m>(&self, message: &'m AssistantMessage) -> Option<Cow<'m, AssistantMessage>> {
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { .. });
        if self.forwards_text || message.content.iter().all(is_call) {
            return Some(Cow::Borrowed(message));
        }
        let content: Vec<ContentBlock> =
            message.content.iter().filter(|block| is_call(block)).cloned().collect();
        (!content.is_empty()).then(|| Cow::Owned(AssistantMessage { content, ..message.clone() }))
    }

    /// True when the host hears of a message to the child: of results of calls, and of the rest when it wants that.
    fn hears(&self, message: &Message) -> bool {
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { .. });
        let has_results = match &message.content {
            MessageContent::Text(_) => false,
            MessageContent::Blocks(blocks) => blocks.iter().any(is_result),
        };
        self.forwards_text || has_results
    }
}

impl Host for ChildHost {
    fn wants_partial(&self) -> bool {
        self.forwards_text && self.host.wants_partial()
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn wants_hook_events(&self) -> bool {
        self.host.wants_hook_events()
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
            Event::Partial { event, parent_tool_use_id } => {
                let parent_tool_use_id = parent_tool_use_id.or(Some(&self.tool_use_id));
                self.host.emit(Event::Partial { event, parent_tool_use_id })
            }
            Event::ToolOutput { .. } => Ok(()),
        }
    }

    fn answers(&self) -> bool {
        self.host.answers()
    }

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        let agent_id = question.agent_id.clone().or_else(|| Some(self.agent_id.clone()));
        self.host.ask(PermissionQuestion { agent_id, ..question })
    }
}
