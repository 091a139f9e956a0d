//! What the session's sinks get of an agent: its messages, marked with the call that started it, and its questions, marked
//! with the agent. What it has used so far is reported with each of its replies. Everything else of the agent stays its own.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::BoxFuture;
use qoder_core::ports::{ProgressSink, ToolProgress};
use qoder_protocol::messages::{
    AssistantContent, AssistantMessage, StreamMessage, SystemMessage, UserContent,
};
use qoder_protocol::{ActionId, Question, Resolution};
use qoder_types::{ContentBlock, MessageContent};
use tokio::sync::mpsc;

use crate::events::{ArrivedAnswer, Event, Outlet, Wants};

/// The way out of an agent, through the outlet of its parent.
pub(super) struct AgentOutlet {
    pub(super) parent: Arc<dyn Outlet>,
    pub(super) agent_id: String,
    pub(super) tool_use_id: String,
    /// The main session.
    pub(super) session_id: String,
    /// True when what the agent says and thinks is passed on; otherwise only its calls and their results.
    pub(super) forwards_text: bool,
    pub(super) used: Used,
}

/// What an agent has used so far, on its way to those who watch it.
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

    fn see(&self, message: &AssistantContent) {
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
            counts.0 += message.usage.map_or(0, |usage| usage.total_input() + usage.output_tokens);
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

impl AgentOutlet {
    /// The message with the marks of this agent; `None` when it stays the agent's own. An agent of the agent has marked its
    /// messages already.
    fn marked(&self, message: &StreamMessage) -> Option<StreamMessage> {
        let mut marked = match message {
            StreamMessage::User(user) if self.forwards(&user.message) => message.clone(),
            StreamMessage::Assistant(reply) => {
                if reply.parent_tool_use_id.is_none() {
                    self.used.see(&reply.message);
                }
                let shown = self.calls_of(&reply.message)?.into_owned();
                StreamMessage::Assistant(Box::new(AssistantMessage { message: shown, ..(**reply).clone() }))
            }
            StreamMessage::System(SystemMessage::PermissionDenied { .. }) => message.clone(),
            StreamMessage::User(_)
            | StreamMessage::System(_)
            | StreamMessage::Result(_)
            | StreamMessage::PromptSuggestion(_) => return None,
        };
        match &mut marked {
            StreamMessage::User(message) => {
                self.mark(&mut message.parent_tool_use_id, &mut message.session_id)
            }
            StreamMessage::Assistant(message) => {
                self.mark(&mut message.parent_tool_use_id, &mut message.session_id)
            }
            StreamMessage::System(SystemMessage::PermissionDenied { agent_id, session_id, .. }) => {
                agent_id.get_or_insert_with(|| self.agent_id.clone());
                session_id.clone_from(&self.session_id);
            }
            StreamMessage::System(_) | StreamMessage::Result(_) | StreamMessage::PromptSuggestion(_) => {}
        }
        Some(marked)
    }

    /// Marks a message with the call that started the agent and with the main session.
    fn mark(&self, parent_tool_use_id: &mut Option<String>, session_id: &mut Option<String>) {
        parent_tool_use_id.get_or_insert_with(|| self.tool_use_id.clone());
        *session_id = Some(self.session_id.clone());
    }

    /// What is passed on of a reply: the calls in it, and the rest when that is wanted.
    fn calls_of<'m>(&self, message: &'m AssistantContent) -> Option<Cow<'m, AssistantContent>> {
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { .. });
        if self.forwards_text || message.content.iter().all(is_call) {
            return Some(Cow::Borrowed(message));
        }
        let content: Vec<ContentBlock> =
            message.content.iter().filter(|block| is_call(block)).cloned().collect();
        (!content.is_empty()).then(|| Cow::Owned(AssistantContent { content, ..message.clone() }))
    }

    /// A question of this agent, unless it is one of an agent below.
    fn own(&self, mut action: ActionId) -> ActionId {
        action.agent_id.get_or_insert_with(|| self.agent_id.clone());
        action
    }

    /// True when a message to the agent is passed on: results of calls, and the rest when that is wanted.
    fn forwards(&self, message: &UserContent) -> bool {
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { .. });
        let has_results = match &message.content {
            MessageContent::Text(_) => false,
            MessageContent::Blocks(blocks) => blocks.iter().any(is_result),
        };
        self.forwards_text || has_results
    }
}

impl Outlet for AgentOutlet {
    fn wants(&self) -> Wants {
        let wants = self.parent.wants();
        Wants {
            partial: self.forwards_text && wants.partial,
            tool_output: false,
            session_state: false,
            hook_events: wants.hook_events,
            ..wants
        }
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.parent.ready()
    }

    fn is_ready(&self) -> bool {
        self.parent.is_ready()
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            // These name the main session already.
            Event::Message(StreamMessage::System(
                SystemMessage::HookStarted { .. }
                | SystemMessage::HookProgress { .. }
                | SystemMessage::HookResponse { .. },
            ))
            | Event::Warning(_)
            | Event::Asked(_)
            | Event::Resolved { .. } => self.parent.emit(event),
            Event::Message(message) => match self.marked(message) {
                Some(marked) => self.parent.emit(Event::Message(&marked)),
                None => Ok(()),
            },
            Event::Partial { event, parent_tool_use_id } => {
                let parent_tool_use_id = parent_tool_use_id.or(Some(&self.tool_use_id));
                self.parent.emit(Event::Partial { event, parent_tool_use_id })
            }
            Event::ToolOutput { .. } => Ok(()),
        }
    }

    fn has_answerer(&self) -> bool {
        self.parent.has_answerer()
    }

    fn unattended(&self) -> BoxFuture<'static, ()> {
        self.parent.unattended()
    }

    fn open(&self, questions: Vec<Question>, arrivals: &mpsc::UnboundedSender<ArrivedAnswer>) {
        let mark = |question: Question| {
            let agent_id = question.agent_id.or_else(|| Some(self.agent_id.clone()));
            Question { agent_id, ..question }
        };
        self.parent.open(questions.into_iter().map(mark).collect(), arrivals);
    }

    fn take_left_answers(&self) -> BoxFuture<'static, ()> {
        self.parent.take_left_answers()
    }

    fn ask(&self, action: ActionId) -> std::io::Result<()> {
        self.parent.ask(self.own(action))
    }

    fn resolve(&self, action: ActionId, resolution: Resolution) -> std::io::Result<()> {
        self.parent.resolve(self.own(action), resolution)
    }

    fn refuse(&self, action: ActionId, late: ArrivedAnswer) {
        self.parent.refuse(self.own(action), late);
    }
}
