//! A driver without IO: performs each step by appending the records that the real driver would append. Replies depend
//! only on how many there were before, as a scripted model's do, so a continued session sees the same conversation.

use proptest::prelude::*;
use qoder_core::next::turn_end;
use qoder_core::recover::close;
use qoder_core::{Limits, OptionNames, State, Step, next};
use qoder_types::record::{
    Answered, AskKind, Asked, AssistantEntry, AssistantMessage, Decided, Epoch, ModelRequested, RecordBody,
    SessionStarted, SystemEntry, ToolStarted, UserEntry, UserOrigin,
};
use qoder_types::{
    Behavior, CallOutcome, ContentBlock, Decision, DecisionLayer, Message, MessageContent, PermissionMode,
    Record, ReplayClass, Role, StopReason, TaskEnded, TaskStarted, TaskStatus, ToolResultContent, Usage,
};

/// What a simulated call is like.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Has no effects.
    Pure,
    /// Has effects.
    Effect,
    /// Has effects and starts a background task, which ends before the model is asked again.
    EffectTask,
    /// As before, but the task ends only with the turn.
    EffectLongTask,
    /// Is denied by the gate.
    Denied,
    /// Is asked about and allowed.
    AskedEffect,
    /// Is asked about and denied.
    AskedDenied,
    /// Names no tool.
    NoSuchTool,
}

/// A simulated reply.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Calls tools.
    Calls(Vec<Kind>),
    /// Says something and is cut by the output limit.
    Cut,
    /// Says nothing.
    Empty,
    /// Says something; the conversation is nearly full then.
    Full(Vec<Kind>),
}

/// A simulated session: prompts, and for each what the model does before it finishes.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// One list of replies a prompt; a final text follows each.
    pub prompts: Vec<Vec<Reply>>,
    /// Model calls per turn.
    pub max_turns: Option<u64>,
}

/// Generates scenarios.
pub fn scenarios() -> impl Strategy<Value = Scenario> {
    let kind = prop_oneof![
        Just(Kind::Pure),
        Just(Kind::Effect),
        Just(Kind::EffectTask),
        Just(Kind::EffectLongTask),
        Just(Kind::Denied),
        Just(Kind::AskedEffect),
        Just(Kind::AskedDenied),
        Just(Kind::NoSuchTool)
    ];
    let calls = prop::collection::vec(kind, 1..4);
    let reply = prop_oneof![
        6 => calls.clone().prop_map(Reply::Calls),
        1 => Just(Reply::Cut),
        1 => Just(Reply::Empty),
        1 => calls.prop_map(Reply::Full),
    ];
    let prompts = prop::collection::vec(prop::collection::vec(reply, 0..5), 1..4);
    prompts.prop_map(|prompts| Scenario { prompts, max_turns: None })
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    records: Vec<Record>,
    state: State,
    limits: Limits,
}

/// Continues `records` to the end of the scenario.
pub fn run(records: Vec<Record>, scenario: &Scenario) -> Vec<Record> {
    let mut state = State::default();
    for record in &records {
        state.apply(record);
    }
    let limits = Limits {
        max_turns: scenario.max_turns,
        context_window: 100_000,
        max_output_tokens: 1_000,
        permission_mode: PermissionMode::Default,
        exhausted: None,
        option_names: OptionNames::Flags,
    };
    let mut simulation = Simulation { scenario, records, state, limits };
    simulation.drive();
    simulation.records
}

/// The prompt with the two things taken out that a crash may change: how far an effectful call came, and when and how a
/// background task ended.
pub fn normalised_prompt(state: &State) -> Vec<String> {
    state
        .prompt
        .iter()
        .filter(|message| message.message.content.to_text() != TASK_NOTICE)
        .map(|message| {
            let mut message = message.message.clone();
            if let MessageContent::Blocks(blocks) = &mut message.content {
                for block in blocks {
                    if let ContentBlock::ToolResult { tool_use_id, content, is_error } = block
                        && tool_use_id.contains("effect")
                    {
                        *content = ToolResultContent::Text("an outcome".to_owned());
                        *is_error = false;
                    }
                }
            }
            serde_json::to_string(&message).unwrap()
        })
        .collect()
}

/// What the model reads when tasks have ended.
pub const TASK_NOTICE: &str = "[tasks ended]";

impl Simulation<'_> {
    fn append(&mut self, body: RecordBody) {
        let record = Record { seq: self.state.last_seq + 1, timestamp: String::new(), body };
        self.state.apply(&record);
        self.records.push(record);
    }

    fn drive(&mut self) {
        if self.state.last_seq == 0 {
            let start = SessionStarted { cwd: "/w".into(), version: "0".into(), forked_from: None };
            self.append(RecordBody::SessionStarted(start));
        }
        // As a process does that opens a log with tasks of another one.
        self.end_tasks(TaskStatus::Unknown);
        for step in 0.. {
            assert!(step < 10_000, "the session does not come to an end");
            match next(&self.state, &self.limits) {
                Step::Idle => {
                    let given = usize::try_from(self.state.prompts).unwrap();
                    if given >= self.scenario.prompts.len() {
                        return;
                    }
                    self.user(UserOrigin::Prompt, MessageContent::Text(format!("prompt {given}")), None);
                }
                step => self.perform(step),
            }
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Close(ids, reason) => {
                for id in ids {
                    let closing = close(self.state.call(&id).unwrap(), reason);
                    self.result(&id, closing.text, closing.outcome);
                }
            }
            Step::Decide(ids) => ids.iter().for_each(|id| self.decide(id)),
            Step::Ask(ids) => ids.iter().for_each(|id| self.answer(id)),
            Step::Refuse(ids) => {
                ids.iter().for_each(|id| self.result(id, "denied".into(), CallOutcome::Denied))
            }
            Step::Deliver(ids) => {
                ids.iter().for_each(|id| self.result(id, "delivered".into(), CallOutcome::Completed))
            }
            Step::Run(ids) => ids.iter().for_each(|id| self.run_call(id)),
            Step::Notice(text) => self.user(UserOrigin::Notice, MessageContent::Text(text.into()), None),
            Step::AppendTaskNotices(ids) => self.tell(ids),
            Step::Compact => self.compact(),
            Step::CallModel => self.call_model(),
            Step::End(reason) => {
                let end = turn_end(&self.state, &self.limits, &reason, 0);
                self.append(RecordBody::TurnEnded(Box::new(end)));
                self.end_tasks(TaskStatus::Stopped);
            }
            Step::Idle | Step::Promote => unreachable!("inputs are given when the session is idle"),
        }
    }

    fn user(&mut self, origin: UserOrigin, content: MessageContent, outcome: Option<CallOutcome>) {
        self.user_telling(origin, content, outcome, Vec::new());
    }

    fn user_telling(
        &mut self,
        origin: UserOrigin,
        content: MessageContent,
        outcome: Option<CallOutcome>,
        tasks: Vec<String>,
    ) {
        let entry = UserEntry {
            uuid: format!("u{}", self.state.last_seq + 1),
            parent_uuid: self.state.leaf.clone(),
            is_sidechain: false,
            cwd: "/w".into(),
            version: "0".into(),
            git_branch: None,
            is_meta: false,
            is_compact_summary: origin == UserOrigin::Summary,
            origin,
            input_id: None,
            message: Message { role: Role::User, content },
            outcome,
            tool_use_result: None,
            observations: Vec::new(),
            new_cwd: None,
            duration_ms: None,
            worktree: None,
            memory: Vec::new(),
            tasks,
            typed: None,
            turn_rules: Vec::new(),
            turn_model: None,
        };
        self.append(RecordBody::User(Box::new(entry)));
    }

    fn end_tasks(&mut self, status: TaskStatus) {
        let running: Vec<String> =
            self.state.running_tasks().map(|task| task.start.task_id.clone()).collect();
        for task_id in running {
            let end = TaskEnded { task_id, status, summary: "over".into(), exit_code: None, account: None };
            self.append(RecordBody::TaskEnded(end));
        }
    }

    fn tell(&mut self, tasks: Vec<String>) {
        let content = MessageContent::Text(TASK_NOTICE.into());
        self.user_telling(UserOrigin::Notice, content, None, tasks);
    }

    fn result(&mut self, id: &str, text: String, outcome: CallOutcome) {
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            content: ToolResultContent::Text(text),
            is_error: outcome != CallOutcome::Completed,
        };
        self.user(UserOrigin::ToolResult, MessageContent::Blocks(vec![block]), Some(outcome));
    }

    fn decide(&mut self, id: &str) {
        if id.contains("nosuchtool") {
            return self.result(id, "there is no such tool".into(), CallOutcome::Failed);
        }
        let call = self.state.call(id).unwrap();
        let answer = call.answer.as_ref().map(|answer| answer.allow);
        let behavior = match answer {
            None if id.contains("asked") => Behavior::Ask,
            Some(false) => Behavior::Deny,
            _ if id.contains("denied") => Behavior::Deny,
            _ => Behavior::Allow,
        };
        let decision = Decision {
            behavior,
            layer: DecisionLayer::Rule,
            rule: None,
            origin: None,
            mode: PermissionMode::Default,
            reason: "simulated".into(),
            considered: Vec::new(),
            answered_by: None,
        };
        if behavior == Behavior::Ask {
            let asked = Asked {
                tool_use_id: id.to_owned(),
                tool_name: "T".into(),
                kind: AskKind::Permission,
                decision,
                suggestions: Vec::new(),
            };
            return self.append(RecordBody::Asked(Box::new(asked)));
        }
        let decided = Decided { tool_use_id: id.to_owned(), tool_name: "T".into(), decision };
        self.append(RecordBody::Decided(decided));
    }

    /// Two people answer; the first counts.
    fn answer(&mut self, id: &str) {
        let first = !id.contains("denied");
        for allow in [first, !first] {
            self.append(RecordBody::Answered(Box::new(Answered {
                tool_use_id: id.to_owned(),
                allow,
                message: None,
                updated_input: None,
                updated_permissions: Vec::new(),
                interrupt: false,
                result: None,
                by: "maria".into(),
            })));
        }
    }

    fn run_call(&mut self, id: &str) {
        let replay = if id.contains("effect") { ReplayClass::Effectful } else { ReplayClass::Pure };
        let start = ToolStarted { tool_use_id: id.to_owned(), tool_name: "T".into(), replay };
        self.append(RecordBody::ToolStarted(start));
        let task_id = format!("task-{id}");
        if id.contains("task") {
            self.append(RecordBody::TaskStarted(TaskStarted {
                task_id: task_id.clone(),
                tool_use_id: id.to_owned(),
                description: "a task".into(),
                task_type: "local_bash".into(),
                output_file: "/w/out".into(),
                command: "true".into(),
            }));
        }
        self.result(id, format!("result of {id}"), CallOutcome::Completed);
        if id.contains("task") && !id.contains("long") {
            let status = TaskStatus::Completed;
            self.append(RecordBody::TaskEnded(TaskEnded {
                task_id,
                status,
                summary: "over".into(),
                exit_code: Some(0),
                account: None,
            }));
        }
    }

    fn compact(&mut self) {
        let boundary = SystemEntry {
            uuid: format!("s{}", self.state.last_seq + 1),
            parent_uuid: None,
            logical_parent_uuid: None,
            is_sidechain: false,
            subtype: "compact_boundary".into(),
            content: String::new(),
            compact_metadata: None,
            usage: Usage::default(),
            model: "m".into(),
            provider: None,
            cost_usd: 0.0,
            duration_api_ms: 0,
        };
        self.append(RecordBody::System(Box::new(boundary)));
        self.user(UserOrigin::Summary, MessageContent::Text("summary".into()), None);
    }

    fn call_model(&mut self) {
        if self.state.epoch.is_none() {
            self.append(RecordBody::Epoch(Epoch {
                number: 1,
                reason: "start".into(),
                model: "m".into(),
                system: vec!["system".into()],
                tools: Vec::new(),
                source: "s".into(),
            }));
        }
        let epoch = self.state.epoch.as_ref().map_or(0, |epoch| epoch.number);
        self.append(RecordBody::ModelRequested(ModelRequested {
            model: "m".into(),
            provider: None,
            messages: 0,
            epoch,
        }));
        let turn = usize::try_from(self.state.prompts - 1).unwrap();
        let index = usize::try_from(self.state.turn.as_ref().unwrap().model_calls).unwrap();
        let (content, stop_reason, input_tokens) = match self.scenario.prompts[turn].get(index) {
            Some(Reply::Calls(kinds)) => (calls(kinds, turn, index), StopReason::ToolUse, 10),
            Some(Reply::Full(kinds)) => (calls(kinds, turn, index), StopReason::ToolUse, 99_000),
            Some(Reply::Cut) => (vec![ContentBlock::text("half a")], StopReason::MaxTokens, 10),
            Some(Reply::Empty) => (Vec::new(), StopReason::EndTurn, 10),
            None => (vec![ContentBlock::text(format!("end of {turn}"))], StopReason::EndTurn, 10),
        };
        let entry = AssistantEntry {
            uuid: format!("a{}", self.state.last_seq + 1),
            parent_uuid: self.state.leaf.clone(),
            is_sidechain: false,
            cwd: "/w".into(),
            version: "0".into(),
            message: AssistantMessage {
                id: format!("m{turn}-{index}"),
                kind: "message".into(),
                role: Role::Assistant,
                model: "m".into(),
                content,
                stop_reason: Some(stop_reason),
                stop_sequence: None,
                usage: Usage { input_tokens, output_tokens: 1, ..Usage::default() },
            },
            request_id: None,
            provider: None,
            duration_api_ms: 0,
            cost_usd: 0.0,
            context_window: 0,
            max_output_tokens: 0,
        };
        self.append(RecordBody::Assistant(Box::new(entry)));
    }
}

fn calls(kinds: &[Kind], turn: usize, index: usize) -> Vec<ContentBlock> {
    kinds
        .iter()
        .enumerate()
        .map(|(number, kind)| ContentBlock::ToolUse {
            id: format!("{}-{turn}-{index}-{number}", format!("{kind:?}").to_lowercase()),
            name: "T".to_owned(),
            input: serde_json::json!({}),
        })
        .collect()
}
