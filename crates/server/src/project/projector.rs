//! The projector: the fold of a session's records, and the events that each record comes to.

use std::collections::{BTreeMap, BTreeSet};

use qoder_types::record::{
    Asked, AssistantEntry, Decided, Interrupted, ModelFailed, ModelRequested, RecordBody, TerminalReason,
    TurnEnded, UserEntry, UserOrigin,
};
use qoder_types::{
    Behavior, ContentBlock, MessageContent, Record, StopReason as ModelStop, TaskStarted, Usage,
};
use serde_json::{Value, json};

use super::bodies;
use super::calls::{self, Call};
use super::previews::Previews;
use super::threads::{self, ThreadPlace};
use crate::model::event::NewEvent;
use crate::model::ids::{EventId, SessionId, ThreadId};
use crate::model::status::StopReason;
use crate::model::time::Time;
use crate::model::toolset::{Called, Toolset};
use crate::model::usage::SessionUsage;
use crate::store::NewAction;

/// What a record came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Projected {
    /// Events, in order.
    pub events: Vec<NewEvent>,
    /// Actions that open with them.
    pub actions: Vec<NewAction>,
    /// Queued inputs that are processed now.
    pub processed: Vec<EventId>,
    /// True when a turn begins.
    pub begins: bool,
    /// True when the session got on.
    pub is_progress: bool,
    /// True when what the session has used changed.
    pub is_used: bool,
    /// Agents that wait for answers from now on.
    pub parked: Vec<String>,
    /// Agents that have come to their end, with their names.
    pub ended: Vec<(String, String)>,
}

/// An agent that a session started and that has not come to its end.
#[derive(Debug, Clone)]
struct Started {
    name: String,
    /// Its calls that wait.
    parked: Vec<String>,
}

/// What a session rests with.
#[derive(Debug, Clone, PartialEq)]
pub struct Resting {
    /// Why it stopped.
    pub stop: StopReason,
    /// False while background commands run.
    pub may_release: bool,
}

/// The fold of a session's records.
#[derive(Debug, Clone)]
pub struct Projector {
    session: SessionId,
    toolset: Toolset,
    credit_usd: f64,
    span: Option<EventId>,
    calls: Vec<Call>,
    has_turn: bool,
    is_interrupted: bool,
    queued: Vec<String>,
    tasks: BTreeSet<String>,
    stop: StopReason,
    usage: SessionUsage,
    /// True once the failure of a model call was reported in this turn.
    failure_is_shown: bool,
    agents: BTreeMap<String, Started>,
    /// The thread, when the log is that of an agent.
    thread: Option<ThreadPlace>,
    /// The session's own thread, when it can start others.
    primary: Option<ThreadPlace>,
    /// The text of the last reply.
    last_texts: Vec<Value>,
}

impl Projector {
    /// A projector of a session that has no records yet. A credit costs `credit_usd`.
    #[must_use]
    pub fn new(session: SessionId, toolset: Toolset, credit_usd: f64) -> Self {
        Self {
            session,
            toolset,
            credit_usd,
            span: None,
            calls: Vec::new(),
            has_turn: false,
            is_interrupted: false,
            queued: Vec::new(),
            tasks: BTreeSet::new(),
            stop: StopReason::EndTurn,
            usage: SessionUsage::default(),
            failure_is_shown: false,
            agents: BTreeMap::new(),
            thread: None,
            primary: None,
            last_texts: Vec::new(),
        }
    }

    /// The same for the log of an agent.
    #[must_use]
    pub fn of_thread(self, thread: ThreadPlace) -> Self {
        Self { thread: Some(thread), ..self }
    }

    /// The same for a session that can start others: its own thread is reported, too.
    #[must_use]
    pub fn of_coordinator(self, primary: ThreadPlace) -> Self {
        Self { primary: Some(primary), ..self }
    }

    /// Reports that the session's own thread runs, where threads are reported.
    #[must_use]
    pub fn primary_running(&self) -> Option<NewEvent> {
        self.primary.as_ref().map(|place| NewEvent { thread: None, is_posted: false, ..place.running() })
    }

    /// Reports that the session's own thread rests, where threads are reported.
    #[must_use]
    pub fn primary_idle(&self, stop: &StopReason) -> Option<NewEvent> {
        self.primary.as_ref().map(|place| NewEvent { thread: None, is_posted: false, ..place.idle(stop) })
    }

    /// The text of the last reply, as blocks.
    #[must_use]
    pub fn last_texts(&self) -> &[Value] {
        &self.last_texts
    }

    /// True while a turn is open.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.has_turn
    }

    /// The event of a call that waits.
    #[must_use]
    pub fn waiting(&self, call: &str) -> Option<EventId> {
        self.calls.iter().find(|known| known.id == call && known.waits).map(|known| known.event)
    }

    /// The events of the calls that wait.
    #[must_use]
    pub fn all_waiting(&self) -> Vec<EventId> {
        self.calls.iter().filter(|call| call.waits).map(|call| call.event).collect()
    }

    /// An agent runs, or runs again. Answers with the event that reports it when the session waited for that.
    pub fn resumes(&mut self, agent: &str) -> Option<NewEvent> {
        let started = self.agents.get_mut(agent)?;
        let waited = !std::mem::take(&mut started.parked).is_empty();
        self.tasks.insert(agent.to_owned());
        if waited { self.primary_running() } else { None }
    }

    /// What the session has used.
    #[must_use]
    pub fn usage(&self) -> &SessionUsage {
        &self.usage
    }

    /// True when a turn is open or an input waits.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.has_turn || !self.queued.is_empty()
    }

    /// What the session rests with, when nothing is left to do. `of_agent` finds the event of a call of an agent that waits.
    #[must_use]
    pub fn resting(&self, of_agent: impl Fn(&str, &str) -> Option<EventId>) -> Option<Resting> {
        let parked = self.agents.iter().flat_map(|(agent, started)| {
            started.parked.iter().filter_map(|call| of_agent(agent, call)).collect::<Vec<_>>()
        });
        let parked: Vec<EventId> = parked.collect();
        let stop = if self.has_turn {
            let open = || self.calls.iter().filter(|call| !call.has_result);
            let waiting = open().filter(|call| call.waits).map(|call| call.event);
            let waiting: Vec<EventId> = waiting.chain(parked).collect();
            let is_settled = open().all(|call| call.waits || call.is_decided);
            if waiting.is_empty() || !is_settled || self.is_interrupted {
                return None;
            }
            StopReason::requires(&waiting)
        } else if !parked.is_empty() {
            StopReason::requires(&parked)
        } else if self.queued.is_empty() {
            self.stop.clone()
        } else {
            return None;
        };
        Some(Resting { stop, may_release: self.tasks.is_empty() })
    }

    /// What a record comes to.
    pub fn project(&mut self, record: &Record, previews: &mut Previews) -> Projected {
        let mut out = Projected::default();
        match &record.body {
            RecordBody::InputAdmitted(input) if input.origin == qoder_types::record::InputOrigin::User => {
                self.queued.push(input.input_id.clone());
            }
            RecordBody::InputWithdrawn(withdrawn) => self.queued.retain(|id| *id != withdrawn.input_id),
            RecordBody::User(entry) => self.user(entry, &mut out),
            RecordBody::Assistant(entry) => self.assistant(record, entry, previews, &mut out),
            RecordBody::System(entry) => {
                self.add_usage(&entry.usage, entry.cost_usd, &mut out);
                if entry.subtype == "compact_boundary" {
                    out.events.push(NewEvent::new("agent.thread_context_compacted", &json!({})));
                }
            }
            RecordBody::SideCalled(call) => self.add_usage(&call.usage, call.cost_usd, &mut out),
            RecordBody::ModelRequested(requested) => self.model_request(record, requested, &mut out),
            RecordBody::ModelFailed(failed) => self.model_failure(failed, &mut out),
            RecordBody::Decided(decided) => self.decided(decided, &mut out),
            RecordBody::Asked(asked) => self.asked(asked, &mut out),
            RecordBody::Answered(answered) => {
                if let Some(call) = self.call(&answered.tool_use_id) {
                    call.waits = false;
                    call.is_brought = answered.result.is_some();
                    // Another decision follows the answer.
                    call.is_decided = false;
                }
                if self.calls.iter().all(|call| !call.waits) {
                    out.events.extend(self.primary_running());
                }
            }
            RecordBody::TaskStarted(start) => self.task_started(start, &mut out),
            RecordBody::TaskParked(parked) => {
                self.tasks.remove(&parked.task_id);
                if let Some(started) = self.agents.get_mut(&parked.task_id) {
                    started.parked = parked.calls.iter().map(|call| call.tool_use_id.clone()).collect();
                    out.parked.push(parked.task_id.clone());
                }
            }
            RecordBody::TaskEnded(end) => {
                self.tasks.remove(&end.task_id);
                let started = self.agents.remove(&end.task_id);
                out.ended.extend(started.map(|started| (end.task_id.clone(), started.name)));
            }
            RecordBody::Interrupted(interrupted) => self.interrupted(interrupted, &mut out),
            RecordBody::TurnEnded(ended) => self.turn_ended(ended, &mut out),
            RecordBody::SessionStarted(_)
            | RecordBody::Epoch(_)
            | RecordBody::InputAdmitted(_)
            | RecordBody::ModelNoticed(_)
            | RecordBody::Elicited(_)
            | RecordBody::ElicitationAnswered(_)
            | RecordBody::PermissionsChanged(_)
            | RecordBody::ToolStarted(_)
            | RecordBody::Hooked(_)
            | RecordBody::Cut(_)
            | RecordBody::FileKept(_)
            | RecordBody::FilesRewound(_)
            | RecordBody::Unknown(_) => {}
        }
        if let Some(thread) = &self.thread {
            thread.place(&mut out);
        }
        out
    }

    /// A command or an agent began to work.
    fn task_started(&mut self, start: &TaskStarted, out: &mut Projected) {
        self.tasks.insert(start.task_id.clone());
        let Some(thread) = ThreadId::of_agent(&start.task_id).filter(|_| start.is_agent()) else { return };
        let (call, name) = (start.tool_use_id.clone(), start.command.clone());
        let is_new = !self.agents.contains_key(&start.task_id);
        if let Some(call) = self.call(&call) {
            call.has_started = true;
            if is_new {
                let prompt = call.input["prompt"].clone();
                out.events.extend(threads::started(thread, &name, &prompt));
            }
        }
        self.agents.insert(start.task_id.clone(), Started { name, parked: Vec::new() });
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }

    fn id(&self, record: &Record, place: &str) -> EventId {
        let milliseconds = Time::parse(&record.timestamp).unwrap_or_default().milliseconds();
        match &self.thread {
            None => EventId::of_record(self.session, milliseconds, place),
            Some(thread) => {
                EventId::of_record(self.session, milliseconds, &format!("{}:{place}", thread.id.agent()))
            }
        }
    }

    fn add_usage(&mut self, usage: &Usage, cost_usd: f64, out: &mut Projected) {
        self.usage.tokens.add(usage);
        self.usage.cost_usd += cost_usd;
        out.is_used = true;
    }

    fn begin(&mut self, out: &mut Projected) {
        self.has_turn = true;
        self.is_interrupted = false;
        self.failure_is_shown = false;
        self.calls.clear();
        out.events.extend(self.primary_running());
        out.begins = true;
    }

    fn user(&mut self, entry: &UserEntry, out: &mut Projected) {
        if let Some(input) = &entry.input_id {
            self.queued.retain(|id| id != input);
            out.processed.extend(EventId::parse(input));
        }
        match entry.origin {
            UserOrigin::Prompt => {
                self.begin(out);
                if let Some(thread) = &self.thread {
                    out.events.extend(thread.begun(&entry.message.content));
                }
            }
            UserOrigin::Notice if !entry.tasks.is_empty() && !self.has_turn => self.begin(out),
            UserOrigin::Notice => {}
            UserOrigin::Summary => self.calls.clear(),
            UserOrigin::ToolResult => self.results(entry, out),
        }
    }

    fn results(&mut self, entry: &UserEntry, out: &mut Projected) {
        let MessageContent::Blocks(blocks) = &entry.message.content else { return };
        for block in blocks {
            let ContentBlock::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let Some(call) = self.calls.iter_mut().find(|call| call.id == *tool_use_id && !call.has_result)
            else {
                continue;
            };
            if !call.has_started {
                out.events.extend(call.render_undecided());
                out.events.extend(call.result(content, *is_error));
            }
            call.has_result = true;
            call.waits = false;
            out.is_progress = true;
            match call.name.as_str() {
                "WebFetch" => self.usage.web_fetches += 1,
                "WebSearch" => self.usage.web_searches += 1,
                _ => continue,
            }
            out.is_used = true;
        }
    }

    fn assistant(
        &mut self,
        record: &Record,
        entry: &AssistantEntry,
        previews: &mut Previews,
        out: &mut Projected,
    ) {
        let message = &entry.message;
        let mut texts: Vec<Value> = Vec::new();
        self.calls.clear();
        for block in &message.content {
            match block {
                ContentBlock::Text { text } => texts.push(json!({ "type": "text", "text": text })),
                ContentBlock::Thinking { thinking, .. } => {
                    let body = json!({ "thinking": thinking });
                    out.events.push(previewed("agent.thinking", previews.take_thinking(), &body));
                }
                ContentBlock::ToolUse { id, name, input } => {
                    let event = self.id(record, &format!("call:{}:{}", record.seq, self.calls.len()));
                    let called = self.toolset.called(name);
                    let (id, name, input) = (id.clone(), name.clone(), input.clone());
                    self.calls.push(Call {
                        id,
                        name,
                        input,
                        called,
                        event,
                        is_shown: false,
                        waits: false,
                        is_decided: false,
                        has_result: false,
                        has_started: false,
                        is_asked: false,
                        is_denied: false,
                        is_brought: false,
                    });
                }
                ContentBlock::Image { .. }
                | ContentBlock::Document { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::RedactedThinking { .. }
                | ContentBlock::Unknown(_) => {}
            }
        }
        if !texts.is_empty() {
            self.last_texts.clone_from(&texts);
            let body = json!({ "content": texts });
            out.events.push(previewed("agent.message", previews.take_message(), &body));
        }
        *previews = Previews::default();
        self.add_usage(&message.usage, entry.cost_usd, out);
        self.end_span(false, &message.usage, entry.cost_usd, out);
        out.is_progress = true;
    }

    fn end_span(&mut self, is_error: bool, usage: &Usage, cost_usd: f64, out: &mut Projected) {
        if let Some(start) = self.span.take() {
            let credits = if self.credit_usd > 0.0 { cost_usd / self.credit_usd } else { 0.0 };
            let body = bodies::span_end(start, is_error, usage, credits);
            out.events.push(NewEvent::new("span.model_request_end", &body));
        }
    }

    fn model_request(&mut self, record: &Record, requested: &ModelRequested, out: &mut Projected) {
        // A call that an earlier process made and that never came to an end.
        self.end_span(true, &Usage::default(), 0.0, out);
        let start = self.id(record, &format!("span:{}", record.seq));
        self.span = Some(start);
        let body = json!({ "model": requested.model });
        out.events.push(NewEvent::with_id(start, "span.model_request_start", &body));
    }

    fn model_failure(&mut self, failed: &ModelFailed, out: &mut Projected) {
        self.end_span(true, &Usage::default(), 0.0, out);
        if !failed.compaction {
            self.failure_is_shown = true;
            out.events.push(NewEvent::new("session.error", &bodies::model_error(&failed.failure)));
        }
    }

    fn decided(&mut self, decided: &Decided, out: &mut Projected) {
        let evaluated = calls::evaluated(&decided.decision);
        let Some(call) = self.call(&decided.tool_use_id) else { return };
        call.waits = false;
        call.is_decided = decided.decision.behavior != Behavior::Ask;
        call.is_denied = decided.decision.behavior == Behavior::Deny;
        if call.called == Called::Agent {
            // Its thread stands for it, once it is there.
            return;
        }
        let event = call.render(evaluated, Some(&decided.decision));
        out.events.extend(event);
    }

    fn asked(&mut self, asked: &Asked, out: &mut Projected) {
        let Some(call) = self.call(&asked.tool_use_id) else { return };
        call.waits = true;
        call.is_asked = true;
        call.is_decided = false;
        let evaluated = call.evaluated_ask(&asked.decision);
        let event = call.render(evaluated, Some(&asked.decision));
        if event.is_some() {
            let action = call.action(asked.kind, evaluated);
            out.actions.push(action);
        }
        out.events.extend(event);
    }

    fn interrupted(&mut self, interrupted: &Interrupted, out: &mut Projected) {
        self.end_span(true, &Usage::default(), 0.0, out);
        self.is_interrupted |= self.has_turn && !interrupted.leaves_turn_open();
    }

    fn turn_ended(&mut self, ended: &TurnEnded, out: &mut Projected) {
        self.end_span(true, &Usage::default(), 0.0, out);
        let refused = ended.stop_reason == Some(ModelStop::Refusal);
        if ended.terminal_reason == TerminalReason::ApiError && !self.failure_is_shown && !refused {
            out.events.push(NewEvent::new("session.error", &bodies::turn_error(ended)));
        }
        self.has_turn = false;
        self.is_interrupted = false;
        self.calls.clear();
        self.stop = bodies::stop_reason(ended);
        if let Some(thread) = &self.thread {
            out.events.extend(thread.ended(&self.last_texts, &self.stop));
        }
        out.is_progress = true;
    }
}

/// An event that has the id under which pieces of it were shown, if they were.
fn previewed(kind: &'static str, id: Option<EventId>, body: &Value) -> NewEvent {
    match id {
        Some(id) => NewEvent { is_previewed: true, ..NewEvent::with_id(id, kind, body) },
        None => NewEvent::new(kind, body),
    }
}
