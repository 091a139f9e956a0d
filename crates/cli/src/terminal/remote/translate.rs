//! Events of the server's API as the front reads any session: messages, pieces of replies, questions. Pure: what becomes of an
//! event depends on the events before it alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_protocol::messages::{
    AssistantContent, AssistantMessage, ContentBlock, ResultMessage, StreamMessage, SystemMessage,
    ToolResultContent, Usage, UserMessage,
};
use qoder_protocol::{ActionId, Answer, Question, Resolution, SessionEvent, SessionState};
use qoder_types::record::{TerminalReason, TurnSubtype};
use qoder_types::{AGENT_TASK, Actor, AskKind, Behavior, Decision, DecisionLayer, PermissionMode};
use serde_json::{Value, json};

/// Built-in tools by the names that the API has for them.
const TOOLS: [(&str, &str); 8] = [
    ("bash", "Bash"),
    ("read", "Read"),
    ("write", "Write"),
    ("edit", "Edit"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("web_fetch", "WebFetch"),
    ("web_search", "WebSearch"),
];

/// Who answered, when it was not this front: the API does not say.
const ANOTHER_CLIENT: &str = "another client of the server";

/// Whose an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// This front, under the ID that it gave the message.
    Here(String),
    /// This front, answering as this person.
    Person(Actor),
    /// Someone else.
    Another,
}

/// A call that may have to wait.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    input: Value,
    kind: AskKind,
    thread: Option<String>,
    is_open: bool,
}

/// What the events so far came to.
#[derive(Debug, Default)]
pub struct Translator {
    session_id: String,
    model: String,
    calls: BTreeMap<String, Call>,
    /// Messages that wait for their turn.
    queued: Vec<StreamMessage>,
    is_running: bool,
    is_interrupted: bool,
    errors: Vec<String>,
    last_text: String,
    cost: f64,
    /// True when the model was asked in this turn, and called no tool since.
    may_be_done: bool,
    /// The blocks of the reply that is shown in pieces.
    preview: Option<Vec<u64>>,
}

impl Translator {
    /// For the events of this session, which this model answers.
    pub fn new(session_id: impl Into<String>, model: impl Into<String>) -> Self {
        Self { session_id: session_id.into(), model: model.into(), ..Self::default() }
    }

    /// What the session is doing, and the questions that are open.
    pub fn state(&self) -> SessionState {
        if self.calls.values().any(|call| call.is_open) {
            SessionState::RequiresAction
        } else if self.is_running {
            SessionState::Running
        } else {
            SessionState::Idle
        }
    }

    /// The questions that are open.
    pub fn questions(&self) -> Vec<Arc<Question>> {
        let open = self.calls.iter().filter(|(_, call)| call.is_open && call.kind == AskKind::Permission);
        open.map(|(id, call)| Arc::new(question(id, call))).collect()
    }

    /// What the front reads of an event.
    pub fn translate(&mut self, event: &Value, sender: Sender) -> Vec<SessionEvent> {
        let id = event["id"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "user.message" => self.prompt(id, event, sender),
            "user.interrupt" => {
                self.is_interrupted = true;
                Vec::new()
            }
            "user.tool_confirmation" => self.confirmed(event, sender),
            "user.custom_tool_result" => self.result(event, "custom_tool_use_id"),
            "user.tool_result" | "agent.tool_result" => self.result(event, "tool_use_id"),
            "agent.mcp_tool_result" => self.result(event, "mcp_tool_use_id"),
            "agent.message" => self.reply(id, event),
            "agent.thinking" => {
                let thinking = event["thinking"].as_str().unwrap_or_default().to_owned();
                self.assistant(id, vec![ContentBlock::Thinking { thinking, signature: String::new() }], None)
            }
            "agent.tool_use" | "agent.mcp_tool_use" => self.call(id, event, AskKind::Permission),
            "agent.custom_tool_use" => self.call(id, event, AskKind::External),
            "agent.thread_context_compacted" => vec![self.notice("the conversation was summarised")],
            "session.status_running" => self.running(),
            "session.status_idle" => self.idle(&event["stop_reason"]),
            "session.status_rescheduled" => {
                vec![self.notice("The server continues the session after a failure.")]
            }
            "session.status_terminated" => vec![ended("the session was terminated on its server")],
            "session.deleted" => vec![ended("the session was deleted")],
            "session.error" => self.failed(&event["error"]),
            "session.usage" => {
                self.cost = amount(&event["usage"]).unwrap_or(self.cost);
                Vec::new()
            }
            "session.thread_created" | "session.thread_status_running" => self.thread_started(event),
            "session.thread_status_idle" | "session.thread_status_terminated" => self.thread_ended(event),
            "span.model_request_start" => self.model_asked(),
            "span.model_request_end" => {
                let usage = serde_json::from_value(event["model_usage"].clone()).ok();
                self.assistant(id, Vec::new(), usage)
            }
            "event_start" => self.preview_started(&event["event"]),
            "event_delta" => self.preview_grew(&event["delta"]),
            _ => Vec::new(),
        }
    }

    fn prompt(&mut self, id: &str, event: &Value, sender: Sender) -> Vec<SessionEvent> {
        let content = blocks(&event["content"]);
        let uuid = match sender {
            Sender::Here(uuid) => uuid,
            Sender::Person(_) | Sender::Another => id.to_owned(),
        };
        let mut message = UserMessage::blocks(content).with_uuid(uuid);
        message.is_replay = true;
        let message = StreamMessage::User(Box::new(message));
        if event["processed_at"].is_null() && self.state() != SessionState::Idle {
            self.queued.push(message);
            return Vec::new();
        }
        vec![shown(message)]
    }

    fn confirmed(&mut self, event: &Value, sender: Sender) -> Vec<SessionEvent> {
        let id = event["tool_use_id"].as_str().unwrap_or_default();
        let Some(call) = self.calls.get_mut(id).filter(|call| call.is_open) else { return Vec::new() };
        call.is_open = false;
        let by = match sender {
            Sender::Person(person) => person,
            Sender::Here(_) | Sender::Another => Actor::Named(ANOTHER_CLIENT.to_owned()),
        };
        let answer = Answer {
            allow: event["result"] == "allow",
            message: event["deny_message"].as_str().map(str::to_owned),
            by,
            ..Answer::default()
        };
        let resolution = Resolution::Answered(answer);
        vec![SessionEvent::Resolved { action: action(id, call), resolution }]
    }

    fn result(&mut self, event: &Value, field: &str) -> Vec<SessionEvent> {
        let id = event[field].as_str().unwrap_or_default();
        let resolved = self.calls.remove(id).filter(|call| call.is_open);
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            content: ToolResultContent::Blocks(blocks(&event["content"])),
            is_error: event["is_error"].as_bool().unwrap_or(false),
        };
        let mut message = UserMessage::blocks(vec![block]);
        message.uuid = event["id"].as_str().map(str::to_owned);
        let message = shown(StreamMessage::User(Box::new(message)));
        resolved.map(|call| withdrawn(id, &call)).into_iter().chain([message]).collect()
    }

    fn reply(&mut self, id: &str, event: &Value) -> Vec<SessionEvent> {
        let content = blocks(&event["content"]);
        self.last_text = qoder_types::content::join_text(&content);
        self.assistant(id, content, None)
    }

    fn call(&mut self, id: &str, event: &Value, kind: AskKind) -> Vec<SessionEvent> {
        self.may_be_done = false;
        let name = event["name"].as_str().unwrap_or_default();
        let name = match event["mcp_server_name"].as_str() {
            Some(server) => format!("mcp__{server}__{name}"),
            None => TOOLS.iter().find(|(api, _)| *api == name).map_or(name, |(_, name)| *name).to_owned(),
        };
        let thread = event["session_thread_id"].as_str().map(str::to_owned);
        let input = event["input"].clone();
        if kind == AskKind::External || event["evaluated_permission"] == "ask" {
            let call = Call {
                name: name.clone(),
                input: input.clone(),
                kind,
                thread: thread.clone(),
                is_open: false,
            };
            self.calls.insert(id.to_owned(), call);
        }
        // A call of another thread is only here to be answered.
        if thread.is_some() {
            return Vec::new();
        }
        self.assistant(id, vec![ContentBlock::ToolUse { id: id.to_owned(), name, input }], None)
    }

    /// The server goes from one turn to the next without a pause when a message waits.
    fn model_asked(&mut self) -> Vec<SessionEvent> {
        let is_next = self.may_be_done || self.is_interrupted;
        self.may_be_done = true;
        if self.queued.is_empty() || !is_next {
            return Vec::new();
        }
        let end = self.end_of_turn(&Value::Null);
        std::iter::once(end).chain(self.next_turn()).chain([self.state_message()]).collect()
    }

    fn running(&mut self) -> Vec<SessionEvent> {
        self.is_running = true;
        self.may_be_done = false;
        let state = self.state_message();
        std::iter::once(state).chain(self.next_turn()).collect()
    }

    fn idle(&mut self, reason: &Value) -> Vec<SessionEvent> {
        if reason["type"] == "requires_action" {
            return self.requires_action(&reason["event_ids"]);
        }
        self.is_running = false;
        let calls = std::mem::take(&mut self.calls);
        let open = calls.iter().filter(|(_, call)| call.is_open && call.kind == AskKind::Permission);
        let mut events: Vec<SessionEvent> = open.map(|(id, call)| withdrawn(id, call)).collect();
        events.push(self.end_of_turn(reason));
        events.push(self.state_message());
        events.extend(self.next_turn());
        events
    }

    fn requires_action(&mut self, ids: &Value) -> Vec<SessionEvent> {
        let ids: Vec<&str> = ids.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut events = Vec::new();
        let mut outside = Vec::new();
        for (id, call) in &mut self.calls {
            if !ids.contains(&id.as_str()) || call.is_open {
                continue;
            }
            call.is_open = true;
            match call.kind {
                AskKind::Permission => events.push(SessionEvent::Asked(Arc::new(question(id, call)))),
                AskKind::External => outside.push(call.name.clone()),
            }
        }
        events.extend(outside.into_iter().map(|name| {
            self.notice(&format!("`{name}` runs at a client of the server; the turn waits for its result."))
        }));
        events.push(self.state_message());
        events
    }

    fn end_of_turn(&mut self, reason: &Value) -> SessionEvent {
        let errors = std::mem::take(&mut self.errors);
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        let (subtype, terminal, errors) = match reason["type"].as_str().unwrap_or_default() {
            _ if is_interrupted => (TurnSubtype::ErrorDuringExecution, TerminalReason::AbortedTools, errors),
            "budget_reached" => {
                let spent = vec!["the budget of the session is spent".to_owned()];
                (TurnSubtype::ErrorMaxBudgetUsd, TerminalReason::MaxBudget, spent)
            }
            "retries_exhausted" => {
                let failed = if errors.is_empty() { vec!["the model failed".to_owned()] } else { errors };
                (TurnSubtype::ErrorDuringExecution, TerminalReason::ApiError, failed)
            }
            "refusal" => {
                let refused = vec!["the model refused".to_owned()];
                (TurnSubtype::ErrorDuringExecution, TerminalReason::ApiError, refused)
            }
            _ => (TurnSubtype::Success, TerminalReason::Completed, Vec::new()),
        };
        let text = std::mem::take(&mut self.last_text);
        shown(StreamMessage::Result(Box::new(ResultMessage {
            is_error: subtype != TurnSubtype::Success,
            result: (subtype == TurnSubtype::Success).then_some(text),
            subtype: subtype.as_str().into(),
            terminal_reason: Some(terminal.as_str().into()),
            total_cost_usd: Some(self.cost),
            session_id: self.session_id.clone(),
            errors,
            ..ResultMessage::default()
        })))
    }

    /// The messages whose turn it is.
    fn next_turn(&mut self) -> Vec<SessionEvent> {
        std::mem::take(&mut self.queued).into_iter().map(shown).collect()
    }

    fn failed(&mut self, error: &Value) -> Vec<SessionEvent> {
        let message = error["message"].as_str().unwrap_or("the session failed").to_owned();
        if error["retry_status"]["type"] == "retrying" {
            return vec![self.notice(&message)];
        }
        self.errors.push(message);
        Vec::new()
    }

    fn thread_started(&self, event: &Value) -> Vec<SessionEvent> {
        // The first thread is the session itself, which has no name of its own.
        let Some(agent) = event["agent_name"].as_str() else { return Vec::new() };
        vec![self.system(SystemMessage::TaskStarted {
            task_id: event["session_thread_id"].as_str().unwrap_or_default().to_owned(),
            tool_use_id: String::new(),
            description: agent.to_owned(),
            task_type: AGENT_TASK.to_owned(),
            uuid: event["id"].as_str().unwrap_or_default().to_owned(),
            session_id: self.session_id.clone(),
        })]
    }

    fn thread_ended(&self, event: &Value) -> Vec<SessionEvent> {
        if event["stop_reason"]["type"] == "requires_action" {
            return Vec::new();
        }
        let Some(agent) = event["agent_name"].as_str() else { return Vec::new() };
        vec![self.system(SystemMessage::TaskNotification {
            task_id: event["session_thread_id"].as_str().unwrap_or_default().to_owned(),
            tool_use_id: String::new(),
            status: "completed".to_owned(),
            output_file: String::new(),
            summary: agent.to_owned(),
            uuid: event["id"].as_str().unwrap_or_default().to_owned(),
            session_id: self.session_id.clone(),
        })]
    }

    fn preview_started(&mut self, event: &Value) -> Vec<SessionEvent> {
        let mut events = vec![partial(&json!({ "type": "message_start" }))];
        let mut begun = Vec::new();
        if event["type"] == "agent.thinking" {
            begun.push(0);
            events.push(block_start(0, &json!({ "type": "thinking", "thinking": "" })));
        }
        self.preview = Some(begun);
        events
    }

    fn preview_grew(&mut self, delta: &Value) -> Vec<SessionEvent> {
        let (index, content) = (delta["index"].as_u64().unwrap_or(0), &delta["content"]);
        let begun = self.preview.get_or_insert_with(Vec::new);
        let mut events = Vec::new();
        if !begun.contains(&index) {
            begun.push(index);
            events.push(block_start(index, &json!({ "type": "text", "text": "" })));
        }
        let text = content["text"].as_str().unwrap_or_default();
        let delta = json!({ "type": "text_delta", "text": text });
        events.push(partial(&json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        events
    }

    /// A part of a reply. Without content it only ends what was shown in pieces, and says what was used.
    fn assistant(&mut self, id: &str, content: Vec<ContentBlock>, usage: Option<Usage>) -> Vec<SessionEvent> {
        self.preview = None;
        let message = AssistantContent {
            id: id.to_owned(),
            model: self.model.clone(),
            content,
            usage,
            ..AssistantContent::default()
        };
        let (session_id, uuid) = (Some(self.session_id.clone()), Some(id.to_owned()));
        let reply = AssistantMessage { message, session_id, uuid, ..AssistantMessage::default() };
        vec![shown(StreamMessage::Assistant(Box::new(reply)))]
    }

    fn state_message(&self) -> SessionEvent {
        self.system(SystemMessage::SessionStateChanged {
            state: self.state().as_str().to_owned(),
            uuid: String::new(),
            session_id: self.session_id.clone(),
        })
    }

    /// Something that a person should know.
    pub fn notice(&self, message: &str) -> SessionEvent {
        self.system(SystemMessage::Notice {
            level: "warning".to_owned(),
            kind: "general".to_owned(),
            message: message.to_owned(),
            files: Vec::new(),
            uuid: String::new(),
            session_id: self.session_id.clone(),
        })
    }

    fn system(&self, message: SystemMessage) -> SessionEvent {
        shown(StreamMessage::System(message))
    }
}

fn shown(message: StreamMessage) -> SessionEvent {
    SessionEvent::Message(Box::new(message))
}

fn ended(problem: &str) -> SessionEvent {
    SessionEvent::Ended { problem: Some(problem.to_owned()) }
}

fn partial(event: &Value) -> SessionEvent {
    SessionEvent::Partial { event: event.to_string(), parent_tool_use_id: None }
}

fn block_start(index: u64, block: &Value) -> SessionEvent {
    partial(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn blocks(content: &Value) -> Vec<ContentBlock> {
    match content {
        Value::String(text) => vec![ContentBlock::text(text.clone())],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| serde_json::from_value(block.clone()).ok()).collect()
        }
        _ => Vec::new(),
    }
}

/// Dollars of a usage.
pub fn amount(usage: &Value) -> Option<f64> {
    usage["list_cost"]["amount"].as_str()?.parse().ok()
}

fn action(id: &str, call: &Call) -> ActionId {
    ActionId { agent_id: call.thread.clone(), tool_use_id: id.to_owned() }
}

fn withdrawn(id: &str, call: &Call) -> SessionEvent {
    SessionEvent::Resolved { action: action(id, call), resolution: Resolution::Withdrawn }
}

fn question(id: &str, call: &Call) -> Question {
    Question {
        tool_use_id: id.to_owned(),
        tool_name: call.name.clone(),
        kind: call.kind,
        input: call.input.clone(),
        decision: Decision {
            behavior: Behavior::Ask,
            layer: DecisionLayer::Rule,
            rule: None,
            origin: None,
            mode: PermissionMode::Default,
            reason: "the policy of the agent asks for this tool".to_owned(),
            considered: Vec::new(),
            answered_by: None,
        },
        suggestions: Vec::new(),
        agent_id: call.thread.clone(),
        place: None,
    }
}
