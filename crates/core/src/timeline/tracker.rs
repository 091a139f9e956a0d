//! Follows the records of one session and says what each of them completes. Holds what is open and the totals, never
//! what is over, so a log of any length is followed in bounded memory. Total: any record may come in any order.

mod tasks;

use std::collections::BTreeSet;

use qoder_types::content::join_text;
use qoder_types::record::{
    AssistantEntry, RecordBody, SideCalled, SystemEntry, TurnEnded, UserEntry, UserOrigin,
};
use qoder_types::{CallOutcome, ContentBlock, Hooked, MessageContent, ModelFailure, Record, Usage};
use serde_json::Value;
use tasks::OpenTask;

use super::open::Open;
use super::{
    Compaction, Happening, HooksRan, KeptFile, Mark, MarkKind, ModelCall, Question, SideCall, Span, ToolCall,
    Totals, TurnEnd, TurnStart, What, in_words,
};

/// A model call that is under way.
#[derive(Debug)]
struct Request {
    began_ms: i64,
    model: String,
    provider: Option<String>,
}

/// Follows the records of one session.
#[derive(Debug, Default)]
pub struct Tracker {
    /// What it came to so far.
    pub totals: Totals,
    /// The working directory.
    pub cwd: String,
    /// Number of the prompt's fixed part.
    pub epoch: u32,
    /// Number of the last record.
    pub records: u64,
    /// Size of the context by the model's last word about it.
    pub context_tokens: u64,
    now: i64,
    turn: Option<TurnEnd>,
    inputs: BTreeSet<String>,
    request: Option<Request>,
    calls: Open<ToolCall>,
    questions: Open<Question>,
    tasks: Open<OpenTask>,
}

impl Tracker {
    /// True when a turn is open or an input waits.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.turn.is_some() || !self.inputs.is_empty()
    }

    /// The turn that is open.
    #[must_use]
    pub fn turn_number(&self) -> Option<u64> {
        self.turn.as_ref().map(|turn| turn.number)
    }

    /// The turn that is open began in records that are no longer seen.
    pub fn go_on(&mut self, turns: u64, prompt: &str, timestamp: &str) -> Vec<Happening> {
        self.totals.turns = turns.saturating_sub(1);
        self.now = timestamp.parse::<jiff::Timestamp>().map_or(self.now, jiff::Timestamp::as_millisecond);
        let mut out = Vec::new();
        self.begin_turn(prompt.to_owned(), &mut out);
        out
    }

    /// A record was written.
    pub fn see(&mut self, record: &Record) -> Vec<Happening> {
        self.records = self.records.max(record.seq);
        // A line of another program may have no time; it happened after the line before it.
        let time = record.timestamp.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond);
        self.now = time.unwrap_or(self.now).max(self.now);
        let mut out = Vec::new();
        self.take(&record.body, &mut out);
        if let Some(turn) = &mut self.turn {
            turn.ended_ms = self.now;
        }
        out
    }

    fn take(&mut self, body: &RecordBody, out: &mut Vec<Happening>) {
        match body {
            RecordBody::SessionStarted(started) => self.cwd.clone_from(&started.cwd),
            RecordBody::Epoch(_) => self.epoch += 1,
            RecordBody::InputAdmitted(input) => drop(self.inputs.insert(input.input_id.clone())),
            RecordBody::InputWithdrawn(withdrawn) => {
                self.withdrawn(&withdrawn.input_id, &withdrawn.by.to_string(), out)
            }
            RecordBody::User(entry) => self.user(entry, out),
            RecordBody::Assistant(entry) => self.reply(entry, out),
            RecordBody::System(entry) => self.compacted(entry, out),
            RecordBody::ModelRequested(request) => {
                let (model, provider) = (request.model.clone(), request.provider.clone());
                self.request = Some(Request { began_ms: self.now, model, provider });
            }
            RecordBody::ModelFailed(failed) => {
                self.model_failed(&failed.model, Some(failed.failure.clone()), out)
            }
            RecordBody::Decided(decided) => {
                if let Some((_, call)) = self.calls.find(&decided.tool_use_id) {
                    call.decision = Some(decided.decision.clone());
                }
            }
            RecordBody::Asked(asked) => {
                let question = question(&asked.tool_name, &asked.decision.reason);
                self.asked(&asked.tool_use_id, question, out);
            }
            RecordBody::Answered(answer) => {
                self.changed(&answer.tool_use_id, answer.updated_input.as_ref(), &answer.by.to_string());
                self.answered(&answer.tool_use_id, answer.word(), &answer.by.to_string(), out);
            }
            RecordBody::Elicited(asked) => {
                let question = question(&asked.server_name, &asked.message);
                self.asked(&asked.elicitation_id, question, out);
            }
            RecordBody::ElicitationAnswered(answer) => {
                self.answered(&answer.elicitation_id, &answer.action, &answer.by.to_string(), out);
            }
            RecordBody::PermissionsChanged(changed) => {
                self.mark(MarkKind::Permissions, format!("permissions changed by {}", changed.by), out);
            }
            RecordBody::SideCalled(call) => self.side_call(call, out),
            RecordBody::ToolStarted(started) => {
                if let Some((began, _)) = self.calls.find(&started.tool_use_id) {
                    *began = self.now;
                }
            }
            RecordBody::TaskStarted(task) => self.task_started(task),
            // The question is in the log of the agent.
            RecordBody::TaskParked(_) => {}
            RecordBody::TaskEnded(end) => self.task_ended(end, out),
            RecordBody::Hooked(hooked) => self.hooked(hooked, out),
            RecordBody::Interrupted(interrupted) => {
                if self.request.is_some() {
                    self.model_failed("", None, out);
                }
                self.mark(MarkKind::Interrupted, format!("interrupted by {}", interrupted.by), out);
            }
            RecordBody::TurnEnded(ended) => self.turn_ended(ended, out),
            RecordBody::Cut(cut) => {
                let text = match &cut.at {
                    Some(at) => format!("the conversation continues from {at}"),
                    None => "the conversation begins anew".to_owned(),
                };
                self.mark(MarkKind::Cut, text, out);
            }
            RecordBody::FileKept(kept) => {
                if let Some((_, call)) = self.calls.find(&kept.tool_use_id) {
                    call.kept.push(KeptFile { path: kept.path.clone(), sha256: kept.sha256.clone() });
                }
            }
            RecordBody::FilesRewound(rewound) => self.mark(MarkKind::Rewound, in_words(rewound), out),
            RecordBody::ModelNoticed(_) | RecordBody::Unknown(_) => {}
        }
    }

    fn withdrawn(&mut self, input_id: &str, by: &str, out: &mut Vec<Happening>) {
        self.inputs.remove(input_id);
        // What the program answers by itself is a turn like any other.
        match by.strip_prefix("command ").filter(|_| self.turn.is_none()) {
            Some(command) => self.begin_turn(command.to_owned(), out),
            None => self.mark(MarkKind::Withdrawn, format!("an input was taken back by {by}"), out),
        }
    }

    /// What is still open when there are no more records.
    pub fn finish(&mut self) -> Vec<Happening> {
        let mut out = Vec::new();
        if self.request.is_some() {
            self.model_failed("", None, &mut out);
        }
        let mut beside = self.tasks.end_all();
        beside.retain(|(_, _, task)| !self.is_awaited(task));
        for (id, began, call) in self.calls.end_all() {
            self.push_since(began, Some(id), What::Tool(Box::new(call)), &mut out);
        }
        for (id, began, question) in self.questions.end_all() {
            self.push_since(began, Some(id), What::Question(question), &mut out);
        }
        for (_, began, open) in beside {
            self.push_since(began, some(&open.call), What::Task(open.task), &mut out);
        }
        if let Some(turn) = &self.turn {
            out.push(Happening::TurnEnded(Box::new(turn.clone())));
        }
        out
    }

    fn push(&mut self, lasted_ms: u64, call: Option<String>, what: What, out: &mut Vec<Happening>) {
        let lasted = i64::try_from(lasted_ms).unwrap_or(i64::MAX);
        self.push_since(self.now.saturating_sub(lasted), call, what, out);
    }

    fn push_since(
        &mut self,
        began_ms: i64,
        tool_use_id: Option<String>,
        what: What,
        out: &mut Vec<Happening>,
    ) {
        let span = Span { began_ms, ended_ms: self.now, tool_use_id, what };
        let (time, lasted) = (&mut self.totals.time_ms, span.duration_ms());
        match &span.what {
            What::Model(_) | What::Compaction(_) => time.model += lasted,
            What::Tool(call) => time.tools += call.ran_ms.unwrap_or(0),
            What::Hooks(_) => time.hooks += lasted,
            What::Question(_) => time.questions += lasted,
            What::Task(_) | What::SideCall(_) | What::Mark(_) => {}
        }
        out.push(Happening::Span(Box::new(span)));
    }

    fn mark(&mut self, mark: MarkKind, text: String, out: &mut Vec<Happening>) {
        self.push(0, None, What::Mark(Mark { mark, text }), out);
    }

    fn spend(&mut self, model: &str, usage: &Usage, cost_usd: f64) {
        self.totals.usage.add(usage);
        self.totals.cost_usd += cost_usd;
        let totals = self.totals.by_model.entry(model.to_owned()).or_default();
        totals.input_tokens += usage.input_tokens;
        totals.output_tokens += usage.output_tokens;
        totals.cache_read_input_tokens += usage.cache_read_input_tokens;
        totals.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        totals.cost_usd += cost_usd;
        if let Some(turn) = &mut self.turn {
            turn.usage.add(usage);
            turn.cost_usd += cost_usd;
        }
    }

    fn user(&mut self, entry: &UserEntry, out: &mut Vec<Happening>) {
        if let Some(cwd) = &entry.new_cwd {
            self.cwd.clone_from(cwd);
        }
        match entry.origin {
            UserOrigin::Prompt => self.prompted(entry, out),
            UserOrigin::ToolResult => self.results(entry, out),
            UserOrigin::Summary => {
                self.epoch += u32::from(self.epoch > 0);
                self.context_tokens = 0;
            }
            UserOrigin::Notice => self.mark(MarkKind::Notice, entry.message.content.to_text(), out),
        }
    }

    fn prompted(&mut self, entry: &UserEntry, out: &mut Vec<Happening>) {
        if self.cwd.is_empty() {
            self.cwd.clone_from(&entry.cwd);
        }
        if let Some(id) = &entry.input_id {
            self.inputs.remove(id);
        }
        // Other programs do not say when a turn ends.
        if let Some(turn) = self.turn.take() {
            self.close(turn, out);
        }
        self.begin_turn(entry.message.content.to_text(), out);
    }

    fn begin_turn(&mut self, prompt: String, out: &mut Vec<Happening>) {
        self.totals.turns += 1;
        let number = self.totals.turns;
        self.turn = Some(TurnEnd {
            number,
            began_ms: self.now,
            ended_ms: self.now,
            subtype: None,
            terminal_reason: None,
            is_error: false,
            errors: Vec::new(),
            result: None,
            model_calls: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
        });
        out.push(Happening::TurnBegan(TurnStart { number, began_ms: self.now, prompt }));
    }

    fn close(&mut self, turn: TurnEnd, out: &mut Vec<Happening>) {
        self.totals.turns_ms += u64::try_from(turn.ended_ms - turn.began_ms).unwrap_or(0);
        for (id, began, call) in self.calls.end_all() {
            self.push_since(began, Some(id), What::Tool(Box::new(call)), out);
        }
        self.request = None;
        out.push(Happening::TurnEnded(Box::new(turn)));
    }

    fn turn_ended(&mut self, ended: &TurnEnded, out: &mut Vec<Happening>) {
        if self.turn.is_none() {
            // A prompt that was refused has an end and no beginning.
            self.begin_turn(String::new(), out);
        }
        let Some(mut turn) = self.turn.take() else { return };
        turn.ended_ms = self.now;
        turn.subtype = Some(ended.subtype);
        turn.terminal_reason = Some(ended.terminal_reason);
        turn.is_error = ended.is_error;
        turn.errors.clone_from(&ended.errors);
        turn.result.clone_from(&ended.result);
        turn.model_calls = ended.num_turns;
        self.close(turn, out);
    }

    fn reply(&mut self, entry: &AssistantEntry, out: &mut Vec<Happening>) {
        let message = &entry.message;
        self.spend(&message.model, &message.usage, entry.cost_usd);
        if let Some(totals) = self.totals.by_model.get_mut(&message.model) {
            totals.context_window = entry.context_window;
            totals.max_output_tokens = entry.max_output_tokens;
        }
        if message.usage.total_input() > 0 {
            self.context_tokens = message.usage.total_input() + message.usage.output_tokens;
        }
        self.totals.model_calls += 1;
        if let Some(turn) = &mut self.turn {
            turn.model_calls += 1;
        }
        let lasted = i64::try_from(entry.duration_api_ms).unwrap_or(i64::MAX);
        let request = self.request.take().unwrap_or_else(|| Request {
            began_ms: self.now.saturating_sub(lasted),
            model: message.model.clone(),
            provider: None,
        });
        let calls = message.content.iter().filter(|block| matches!(block, ContentBlock::ToolUse { .. }));
        let call = ModelCall {
            requested_model: request.model,
            model: message.model.clone(),
            provider: entry.provider.clone().or(request.provider),
            usage: message.usage,
            cost_usd: entry.cost_usd,
            stop_reason: message.stop_reason.clone(),
            text: join_text(&message.content),
            calls: calls.count() as u64,
            response_id: message.id.clone(),
            failure: None,
        };
        self.push_since(request.began_ms, None, What::Model(call), out);
        for block in &message.content {
            if let ContentBlock::ToolUse { id, name, input } = block {
                self.totals.tool_calls += 1;
                let call = ToolCall {
                    name: name.clone(),
                    input: input.clone(),
                    ran_input: None,
                    input_changed_by: None,
                    decision: None,
                    outcome: None,
                    ran_ms: None,
                    result: String::new(),
                    agent_id: None,
                    kept: Vec::new(),
                };
                if let Some((began, lost)) = self.calls.begin(id, self.now, call) {
                    self.push_since(began, Some(id.clone()), What::Tool(Box::new(lost)), out);
                }
            }
        }
    }

    fn model_failed(&mut self, model: &str, failure: Option<ModelFailure>, out: &mut Vec<Happening>) {
        let request = self.request.take().unwrap_or_else(|| Request {
            began_ms: self.now,
            model: model.to_owned(),
            provider: None,
        });
        let call = ModelCall {
            requested_model: request.model,
            model: String::new(),
            provider: request.provider,
            usage: Usage::default(),
            cost_usd: 0.0,
            stop_reason: None,
            text: String::new(),
            calls: 0,
            response_id: String::new(),
            failure,
        };
        self.push_since(request.began_ms, None, What::Model(call), out);
    }

    fn compacted(&mut self, entry: &SystemEntry, out: &mut Vec<Happening>) {
        if entry.subtype != "compact_boundary" {
            return;
        }
        self.spend(&entry.model, &entry.usage, entry.cost_usd);
        let metadata = entry.compact_metadata.as_ref();
        let compaction = Compaction {
            model: entry.model.clone(),
            provider: entry.provider.clone(),
            usage: entry.usage,
            cost_usd: entry.cost_usd,
            trigger: metadata.map(|metadata| metadata.trigger.clone()).unwrap_or_default(),
            pre_tokens: metadata.map_or(0, |metadata| metadata.pre_tokens),
        };
        match self.request.take() {
            Some(request) => self.push_since(request.began_ms, None, What::Compaction(compaction), out),
            None => self.push(entry.duration_api_ms, None, What::Compaction(compaction), out),
        }
    }

    fn results(&mut self, entry: &UserEntry, out: &mut Vec<Happening>) {
        let MessageContent::Blocks(blocks) = &entry.message.content else { return };
        for block in blocks {
            let ContentBlock::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let Some((began, mut call)) = self.calls.end(tool_use_id) else { continue };
            let plain = if *is_error { CallOutcome::Failed } else { CallOutcome::Completed };
            call.outcome = Some(entry.outcome.unwrap_or(plain));
            call.ran_ms = entry.duration_ms;
            call.result = content.to_text();
            call.agent_id = entry.tool_use_result.as_ref().and_then(|raw| agent_id(raw.get()));
            self.totals.denied += u64::from(call.outcome == Some(CallOutcome::Denied));
            self.push_since(began, Some(tool_use_id.clone()), What::Tool(Box::new(call)), out);
        }
    }

    fn asked(&mut self, id: &str, question: Question, out: &mut Vec<Happening>) {
        if let Some((began, lost)) = self.questions.begin(id, self.now, question) {
            self.push_since(began, some(id), What::Question(lost), out);
        }
    }

    fn answered(&mut self, id: &str, answer: &str, by: &str, out: &mut Vec<Happening>) {
        let Some((began, mut question)) = self.questions.end(id) else { return };
        question.answer = Some(answer.to_owned());
        question.by = Some(by.to_owned());
        self.push_since(began, some(id), What::Question(question), out);
    }

    fn side_call(&mut self, call: &SideCalled, out: &mut Vec<Happening>) {
        self.spend(&call.model, &call.usage, call.cost_usd);
        let side = SideCall {
            purpose: call.purpose,
            model: call.model.clone(),
            provider: call.provider.clone(),
            usage: call.usage,
            cost_usd: call.cost_usd,
        };
        self.push(call.duration_api_ms, some(&call.tool_use_id), What::SideCall(side), out);
    }

    /// The input of a call was changed before it ran.
    fn changed(&mut self, id: &str, input: Option<&Value>, by: &str) {
        if let (Some(input), Some((_, call))) = (input, self.calls.find(id)) {
            call.change_input(input, by);
        }
    }

    fn hooked(&mut self, hooked: &Hooked, out: &mut Vec<Happening>) {
        if let Some(id) = &hooked.tool_use_id {
            self.changed(id, hooked.updated_input.as_ref(), &hooked.changer());
        }
        // Hooks of one event run together.
        let longest = hooked.runs.iter().map(|run| run.duration_ms).max().unwrap_or(0);
        let hooks = HooksRan {
            event: hooked.event.clone(),
            runs: hooked.runs.clone(),
            verdict: hooked.verdict,
            reason: hooked.stop.clone().or_else(|| hooked.reason.clone()),
            by: hooked.by.clone(),
            stops: hooked.stop.is_some(),
        };
        self.push(longest, hooked.tool_use_id.clone(), What::Hooks(hooks), out);
    }
}

fn question(of: &str, text: &str) -> Question {
    Question { of: of.to_owned(), text: text.to_owned(), answer: None, by: None }
}

fn some(id: &str) -> Option<String> {
    (!id.is_empty()).then(|| id.to_owned())
}

/// The agent that a result names. Other tools' results are not read as a whole for it.
fn agent_id(raw: &str) -> Option<String> {
    if !raw.contains("\"agentId\"") {
        return None;
    }
    let value: Value = serde_json::from_str(raw).ok()?;
    value.get("agentId").and_then(Value::as_str).map(str::to_owned)
}
