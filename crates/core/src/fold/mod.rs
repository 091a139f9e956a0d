//! Applies records to the state, one at a time. Total: any record may come in any order, from this or another version,
//! without a panic; a record that makes no sense in its place changes nothing.

mod cut;
mod inputs;
mod prompts;
mod tasks;

use std::sync::Arc;

use qoder_types::content::join_text;
use qoder_types::record::{
    Answered, AssistantEntry, Decided, Epoch, PermissionDenial, RecordBody, SystemEntry, ToolStarted,
    UserEntry, UserOrigin,
};
use qoder_types::{
    Behavior, ContentBlock, HookVerdict, Hooked, Message, MessageContent, Record, Role, ToolResultContent,
    Usage, WorktreeChange,
};

use crate::next::MAX_CONTINUATIONS;
use crate::ports::PromptMessage;
use crate::state::structured::STRUCTURED_OUTPUT;
use crate::state::{Call, ContextMeter, EpochState, ReplySummary, State, Turn};

/// Folds all records into a fresh state.
pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> State {
    let mut state = State::default();
    for record in records {
        state.apply(record);
    }
    state
}

impl State {
    /// Applies one record.
    pub fn apply(&mut self, record: &Record) {
        self.last_seq = record.seq;
        match &record.body {
            RecordBody::SessionStarted(started) => self.cwd.clone_from(&started.cwd),
            RecordBody::Epoch(epoch) => self.apply_epoch(epoch),
            RecordBody::InputAdmitted(input) => self.apply_input(input),
            RecordBody::InputWithdrawn(withdrawn) => {
                self.inputs.retain(|input| input.input_id != withdrawn.input_id);
                self.system_inputs.retain(|input| input.input_id != withdrawn.input_id);
            }
            RecordBody::User(entry) => self.apply_user(entry),
            RecordBody::Assistant(entry) => self.apply_assistant(entry),
            RecordBody::System(entry) => self.apply_system(entry),
            RecordBody::ModelRequested(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.failure = None;
                    turn.requested = true;
                }
            }
            RecordBody::ModelFailed(failed) => {
                if let Some(turn) = &mut self.turn {
                    turn.requested = false;
                    turn.failure = Some(failed.failure.clone());
                    turn.compaction_failed = failed.compaction;
                }
            }
            RecordBody::Decided(decided) => self.apply_decision(decided),
            RecordBody::Asked(asked) => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == asked.tool_use_id) {
                    call.asked = Some((**asked).clone());
                }
            }
            RecordBody::Answered(answer) => self.apply_answer(answer),
            RecordBody::Elicited(question) => {
                self.elicitations.insert(question.elicitation_id.clone());
            }
            RecordBody::ElicitationAnswered(answer) => {
                self.elicitations.remove(&answer.elicitation_id);
            }
            RecordBody::SideCalled(call) => {
                self.add_usage(&call.model, &call.usage, call.cost_usd);
                self.duration_api_ms += call.duration_api_ms;
                if let Some(turn) = &mut self.turn {
                    turn.usage.add(&call.usage);
                    turn.duration_api_ms += call.duration_api_ms;
                }
            }
            RecordBody::PermissionsChanged(changed) => self.permissions.apply(&changed.updates),
            RecordBody::ToolStarted(started) => self.apply_start(started),
            RecordBody::TaskStarted(start) => self.apply_task_start(start),
            RecordBody::TaskParked(parked) => self.apply_task_parked(parked),
            RecordBody::TaskEnded(end) => self.apply_task_end(end),
            RecordBody::Hooked(hooked) => self.apply_hooked(hooked),
            RecordBody::Interrupted(interrupted) => {
                if let Some(turn) = self.turn.as_mut().filter(|_| !interrupted.leaves_turn_open()) {
                    turn.interrupted = Some(interrupted.by.clone());
                }
            }
            RecordBody::TurnEnded(ended) => {
                self.turn = None;
                self.tasks.values_mut().for_each(|task| task.listed |= task.end.is_some());
                self.permissions.end_turn();
                self.last_turn = Some((**ended).clone());
                self.last_turn_seq = record.seq;
            }
            RecordBody::ModelNoticed(noticed) => {
                if let Some(compat) = &noticed.compat {
                    self.learned.insert(noticed.place.clone(), compat.clone());
                }
            }
            RecordBody::Cut(cut) => self.apply_cut(cut),
            RecordBody::FileKept(_) | RecordBody::FilesRewound(_) | RecordBody::Unknown(_) => {}
        }
    }

    fn apply_start(&mut self, started: &ToolStarted) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == started.tool_use_id) {
            call.started = Some(started.replay);
            if let Some(turn) = &mut self.turn {
                turn.calls_run += 1;
            }
        } else if let Some(input) = self.inputs.front()
            && started.tool_use_id.starts_with(&input.input_id)
        {
            self.begun_input = Some(input.input_id.clone());
        }
    }

    fn apply_decision(&mut self, decided: &Decided) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == decided.tool_use_id) else { return };
        call.decision = Some(decided.decision.clone());
        call.decided_in.clone_from(&self.cwd);
        if decided.decision.behavior != Behavior::Allow
            && let Some(turn) = &mut self.turn
        {
            turn.denials.push(PermissionDenial {
                tool_name: call.name.clone(),
                tool_use_id: call.id.clone(),
                tool_input: bounded(&call.input),
            });
        }
    }

    /// What hooks said about a call counts once, and only before there is a decision: a late word changes no input that
    /// was judged.
    fn apply_hooked(&mut self, hooked: &Hooked) {
        let id = hooked.tool_use_id.as_deref();
        let call = self.calls.iter_mut().find(|call| Some(call.id.as_str()) == id && call.decision.is_none());
        match (hooked.event.as_str(), call) {
            ("PreToolUse", Some(call)) if call.hooked.is_none() => {
                // An answer counts only for the input that the question was about.
                if let Some(input) = hooked.updated_input.as_ref().filter(|_| call.asked.is_none()) {
                    call.input = input.clone();
                }
                call.hooked = Some(hooked.clone());
            }
            ("PermissionRequest", Some(call)) if call.question_hooked.is_none() => {
                call.question_hooked = Some(hooked.clone());
            }
            _ => {}
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(reason) = &hooked.stop {
            turn.stopped.get_or_insert_with(|| reason.clone());
        }
        turn.compaction_blocked |= hooked.event == "PreCompact" && hooked.verdict == Some(HookVerdict::Deny);
        let ends = matches!(hooked.event.as_str(), "Stop" | "SubagentStop");
        turn.stop_blocks += u32::from(ends && hooked.verdict == Some(HookVerdict::Deny));
    }

    /// Exactly one answer counts: the first to a question that was put, of the kind that the question wants.
    fn apply_answer(&mut self, answer: &Answered) {
        let waiting = |call: &&mut Call| {
            call.id == answer.tool_use_id
                && call.waiting_ask().is_some_and(|asked| answer.answers(asked.kind))
        };
        let Some(call) = self.calls.iter_mut().find(waiting) else { return };
        if let Some(input) = &answer.updated_input {
            call.input = input.clone();
        }
        call.answer = Some(answer.clone());
        self.permissions.apply(&answer.updated_permissions);
    }

    fn apply_epoch(&mut self, epoch: &Epoch) {
        self.context.system_bytes = ContextMeter::with_system(&epoch.system).system_bytes;
        self.epoch = Some(EpochState {
            number: self.epoch.as_ref().map_or(0, |old| old.number) + 1,
            model: epoch.model.clone(),
            system: epoch.system.clone().into(),
            tools: epoch.tools.clone().into(),
            source: epoch.source.clone(),
        });
    }

    fn apply_user(&mut self, entry: &UserEntry) {
        self.leaf = Some(entry.uuid.clone());
        if let Some(cwd) = &entry.new_cwd {
            self.cwd.clone_from(cwd);
        }
        if !entry.observations.is_empty() {
            let observations = Arc::make_mut(&mut self.observations);
            for observation in &entry.observations {
                observations.insert(observation.path.clone(), observation.clone());
            }
        }
        match &entry.worktree {
            Some(WorktreeChange::Entered(worktree)) => self.worktree = Some(worktree.clone()),
            Some(WorktreeChange::Left) => self.worktree = None,
            None => {}
        }
        // A notice of ended tasks opens a turn of its own when no turn runs.
        if entry.origin == UserOrigin::Notice && !entry.tasks.is_empty() && self.turn.is_none() {
            self.calls.clear();
            self.turn = Some(Turn::default());
        }
        for id in &entry.tasks {
            if let Some(task) = self.tasks.get_mut(id) {
                task.told = true;
            }
            self.count_in_turn(id);
        }
        if entry.origin == UserOrigin::Prompt {
            self.permissions.end_turn();
        }
        self.permissions.allow_for_turn(&entry.turn_rules);
        match entry.origin {
            UserOrigin::Prompt => self.apply_prompt(entry),
            UserOrigin::ToolResult => self.apply_result(entry),
            UserOrigin::Summary => {
                if let Some(turn) = &mut self.turn {
                    let quick = self.context.replies <= 1;
                    turn.quick_compactions = if quick { turn.quick_compactions + 1 } else { 0 };
                }
                self.prompt.clear();
                self.calls.clear();
                // What was read before is no longer in front of the model; an edit has to look again.
                self.observations = Arc::default();
                self.memory.clear();
                self.context = ContextMeter::default();
                if let Some(epoch) = &mut self.epoch {
                    epoch.number += 1;
                    self.context = ContextMeter::with_system(&epoch.system);
                }
                self.push_message(entry.message.clone());
                self.follow_up();
            }
            UserOrigin::Notice => {
                if let Some(id) = &entry.input_id {
                    self.system_inputs.retain(|input| input.input_id != *id);
                }
                self.memory.extend(entry.memory.iter().cloned());
                self.push_message(prompts::readable(&entry.message));
                if let Some(turn) = &mut self.turn {
                    turn.interrupt_noted |= turn.interrupted.is_some();
                    turn.structured.is_fresh = false;
                }
                self.follow_up();
            }
        }
    }

    fn apply_prompt(&mut self, entry: &UserEntry) {
        if let Some(id) = &entry.input_id {
            self.inputs.retain(|input| input.input_id != *id);
        }
        self.input_ids.insert(entry.uuid.clone());
        let text = entry.message.content.to_text();
        self.prompts += 1;
        if self.first_prompt.is_none() {
            self.first_prompt = Some(entry.typed.clone().unwrap_or_else(|| text.clone()));
        }
        self.last_prompt = text;
        self.last_prompt_id = Some(entry.uuid.clone());
        if !entry.cwd.is_empty() && self.cwd.is_empty() {
            self.cwd.clone_from(&entry.cwd);
        }
        self.calls.clear();
        self.push_message(prompts::readable(&entry.message));
        self.turn = Some(Turn { model: entry.turn_model.clone(), ..Turn::default() });
    }

    /// Something was said to the model after its last reply; it has to be asked again.
    fn follow_up(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.reply = None;
            turn.failure = None;
            // A notice inside an interrupted turn must not hide that the model was speaking.
            turn.requested = turn.requested && turn.interrupted.is_some();
        }
    }

    fn apply_result(&mut self, entry: &UserEntry) {
        let MessageContent::Blocks(blocks) = &entry.message.content else { return };
        for block in blocks {
            let ContentBlock::ToolResult { tool_use_id, .. } = block else { continue };
            // Exactly one result counts.
            if let Some(call) =
                self.calls.iter_mut().find(|call| call.id == *tool_use_id && call.result.is_none())
            {
                call.result = Some(block.clone());
                self.tool_results += 1;
                if let Some(turn) = self.turn.as_mut().filter(|_| call.name == STRUCTURED_OUTPUT) {
                    turn.structured.take_result(entry);
                }
            }
        }
        if !self.calls.is_empty() && self.calls.iter().all(|call| call.result.is_some()) {
            let results: Vec<ContentBlock> =
                self.calls.iter_mut().filter_map(|call| call.result.take()).collect();
            let results = results.into_iter().map(|result| self.call_ids.take_result(result)).collect();
            self.calls.clear();
            self.push_message(Message { role: Role::User, content: MessageContent::Blocks(results) });
            self.follow_up();
            if let Some(turn) = &mut self.turn {
                turn.used_tools = true;
            }
        }
    }

    fn apply_assistant(&mut self, entry: &AssistantEntry) {
        self.leaf = Some(entry.uuid.clone());
        let message = &entry.message;
        self.add_usage(&message.model, &message.usage, entry.cost_usd);
        if let Some(totals) = self.totals.get_mut(&message.model) {
            totals.context_window = entry.context_window;
            totals.max_output_tokens = entry.max_output_tokens;
        }
        let mut content: Vec<ContentBlock> =
            message.content.iter().filter(|block| says(block)).cloned().collect();
        self.calls = distinct_calls(&content);
        self.call_ids.take_reply(&mut content);
        let text = join_text(&content);
        // Reasoning alone is no answer.
        let silent = |block: &ContentBlock| {
            matches!(block, ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. })
        };
        let empty = content.iter().all(silent);
        if !content.is_empty() {
            self.push_message(Message { role: Role::Assistant, content: MessageContent::Blocks(content) });
        }
        let total = message.usage.total_input() + message.usage.output_tokens;
        if message.usage.total_input() > 0 {
            self.context.reported = total;
            self.context.added_bytes = 0;
        }
        self.context.replies += 1;
        self.model_calls += 1;
        self.duration_api_ms += entry.duration_api_ms;
        let shaped = self.wants_structured_output();
        // A transcript written by another program may hold a reply with no open turn.
        let turn = self.turn.get_or_insert_default();
        let continues = turn.continuations > 0;
        turn.requested = false;
        turn.model_calls += 1;
        turn.usage.add(&message.usage);
        turn.duration_api_ms += entry.duration_api_ms;
        turn.failure = None;
        turn.stop_reason.clone_from(&message.stop_reason);
        turn.empty_replies = if empty { turn.empty_replies + 1 } else { 0 };
        let cut = message.stop_reason == Some(qoder_types::StopReason::MaxTokens) && self.calls.is_empty();
        turn.continuations = if cut { turn.continuations + 1 } else { 0 };
        let goes_on = empty
            || (cut && turn.continuations <= MAX_CONTINUATIONS)
            || message.stop_reason == Some(qoder_types::StopReason::PauseTurn);
        turn.structured.fruitless += u32::from(shaped && self.calls.is_empty() && !goes_on);
        if continues {
            turn.last_text.push_str(&text);
        } else if !text.is_empty() {
            turn.last_text.clone_from(&text);
        }
        turn.reply = Some(ReplySummary { stop_reason: message.stop_reason.clone(), text, empty });
    }

    fn apply_system(&mut self, entry: &SystemEntry) {
        if entry.subtype != "compact_boundary" {
            return;
        }
        self.add_usage(&entry.model, &entry.usage, entry.cost_usd);
        self.duration_api_ms += entry.duration_api_ms;
        if let Some(turn) = &mut self.turn {
            turn.usage.add(&entry.usage);
            turn.duration_api_ms += entry.duration_api_ms;
        }
    }

    pub(crate) fn add_usage(&mut self, model: &str, usage: &Usage, cost_usd: f64) {
        if model.is_empty() {
            return;
        }
        let totals = self.totals.entry(model.to_owned()).or_default();
        totals.input_tokens += usage.input_tokens;
        totals.output_tokens += usage.output_tokens;
        totals.cache_read_input_tokens += usage.cache_read_input_tokens;
        totals.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        totals.cost_usd += cost_usd;
        self.total_cost_usd += cost_usd;
    }

    fn push_message(&mut self, message: Message) {
        self.context.add(message_bytes(&message));
        self.prompt.push(Arc::new(PromptMessage::new(message)));
    }
}

/// Providers refuse text blocks of nothing but blanks, so they are left out of the prompt.
fn says(block: &ContentBlock) -> bool {
    !matches!(block, ContentBlock::Text { text } if text.trim().is_empty())
}

/// The calls of a reply. Of two with one id, as another program may have written them, only the first can be answered.
pub(crate) fn distinct_calls(content: &[ContentBlock]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for call in content.iter().filter_map(as_call) {
        if calls.iter().all(|known| known.id != call.id) {
            calls.push(call);
        }
    }
    calls
}

fn as_call(block: &ContentBlock) -> Option<Call> {
    let ContentBlock::ToolUse { id, name, input } = block else { return None };
    Some(Call {
        id: id.clone(),
        name: name.clone(),
        input: input.clone(),
        decision: None,
        decided_in: String::new(),
        hooked: None,
        question_hooked: None,
        asked: None,
        answer: None,
        started: None,
        result: None,
    })
}

/// Size of what the model reads of a message. An image counts as its tokens would (about 1,500).
pub(crate) fn message_bytes(message: &Message) -> u64 {
    match &message.content {
        MessageContent::Text(text) => text.len() as u64,
        MessageContent::Blocks(blocks) => blocks.iter().map(block_bytes).sum(),
    }
}

fn block_bytes(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text { text } => text.len() as u64,
        ContentBlock::Thinking { thinking, .. } => thinking.len() as u64,
        ContentBlock::ToolUse { name, input, .. } => (name.len() + value_bytes(input)) as u64,
        ContentBlock::ToolResult { content, .. } => match content {
            ToolResultContent::Text(text) => text.len() as u64,
            ToolResultContent::Blocks(blocks) => blocks.iter().map(block_bytes).sum(),
        },
        ContentBlock::Image { .. } | ContentBlock::Document { .. } => 6_000,
        ContentBlock::RedactedThinking { data } => data.len() as u64,
        ContentBlock::Unknown(value) => value_bytes(value) as u64,
    }
}

/// The longest input that a list of denials keeps whole.
const DENIAL_BYTES: usize = 16 * 1024;

/// An input for the list of denials; long texts in a large one are cut, the call itself has them.
fn bounded(input: &serde_json::Value) -> serde_json::Value {
    let mut input = input.clone();
    if value_bytes(&input) > DENIAL_BYTES {
        cut_texts(&mut input);
    }
    input
}

fn cut_texts(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) if text.len() > 1_000 => {
            let end = (0..=1_000).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("[… cut …]");
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(map) => map.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(value_bytes).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len() + 4 + value_bytes(value)).sum::<usize>() + 2
        }
    }
}
