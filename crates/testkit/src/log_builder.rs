//! Well-formed logs for tests of whatever folds them. The builder numbers the records, chains the
//! transcript entries and keeps every id and time the same from run to run, so that two logs built alike
//! are equal.

use qoder_types::record::{
    AssistantEntry, AssistantMessage, CompactMetadata, Decided, Epoch, InputAdmitted, Interrupted,
    ModelFailed, ModelRequested, SessionStarted, SystemEntry, TerminalReason, ToolStarted, TurnEnded,
    TurnSubtype, Unknown, UserEntry, UserOrigin,
};
use qoder_types::{
    Behavior, CallOutcome, ContentBlock, Decision, DecisionLayer, Message, MessageContent, ModelFailure,
    ModelFailureClass, PermissionMode, Record, RecordBody, ReplayClass, Role, StopReason, ToolDefinition,
    ToolResultContent, Usage,
};
use serde_json::{Value, json};

const MODEL: &str = "scripted-large";
const FOLDER: &str = "/project";
const VERSION: &str = "0.0.0";

/// Builds a log record by record.
#[derive(Debug, Default)]
pub struct LogBuilder {
    records: Vec<Record>,
    last_entry: Option<String>,
    entries: u64,
    replies: u64,
    messages: u64,
    epochs: u32,
}

impl LogBuilder {
    /// A log that begins as every session does: its start and its first epoch, with the tools `Read` and `Bash`.
    #[must_use]
    pub fn new() -> Self {
        Self::empty()
            .push(RecordBody::SessionStarted(SessionStarted {
                cwd: FOLDER.to_owned(),
                version: VERSION.to_owned(),
                forked_from: None,
            }))
            .epoch("start")
    }

    /// A log without any record.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Appends any record; its number and time are given by the builder.
    #[must_use]
    pub fn push(mut self, body: RecordBody) -> Self {
        let seq = self.records.len() as u64 + 1;
        let (minutes, seconds) = (seq / 60 % 60, seq % 60);
        let timestamp = format!("2026-01-02T03:{minutes:02}:{seconds:02}.000Z");
        self.records.push(Record { seq, timestamp, body });
        self
    }

    /// The fixed part of the prompt changes.
    #[must_use]
    pub fn epoch(mut self, reason: &str) -> Self {
        self.epochs += 1;
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: format!("The tool {name}.").into(),
            input_schema: json!({ "type": "object" }).into(),
        };
        let epoch = Epoch {
            number: self.epochs,
            reason: reason.to_owned(),
            model: MODEL.to_owned(),
            system: vec!["You are a test.".to_owned()],
            tools: vec![tool("Read"), tool("Bash")],
            source: format!("source-{}", self.epochs),
        };
        self.push(RecordBody::Epoch(epoch))
    }

    /// A person sends a prompt; it opens a turn.
    #[must_use]
    pub fn prompt(self, text: &str) -> Self {
        self.user(UserOrigin::Prompt, Message::user(text), |_| {})
    }

    /// An input is accepted while a turn is running.
    #[must_use]
    pub fn input(self, input_id: &str, text: &str) -> Self {
        let input = InputAdmitted::user(input_id, Message::user(text));
        self.push(RecordBody::InputAdmitted(input))
    }

    /// An admitted input becomes the prompt of its turn.
    #[must_use]
    pub fn prompt_from_input(self, input_id: &str, text: &str) -> Self {
        self.user(UserOrigin::Prompt, Message::user(text), |entry| entry.input_id = Some(input_id.to_owned()))
    }

    /// The runtime speaks to the model inside a turn.
    #[must_use]
    pub fn notice(self, text: &str) -> Self {
        self.user(UserOrigin::Notice, Message::user(text), |entry| entry.is_meta = true)
    }

    /// A model call is about to be made.
    #[must_use]
    pub fn model_requested(self) -> Self {
        let requested = ModelRequested {
            model: MODEL.to_owned(),
            provider: None,
            messages: self.messages,
            epoch: self.epochs,
        };
        self.push(RecordBody::ModelRequested(requested))
    }

    /// A model call failed for good.
    #[must_use]
    pub fn model_failed(self, class: ModelFailureClass, message: &str) -> Self {
        let failure = ModelFailure { class, message: message.to_owned(), status: None, retry_after_ms: None };
        self.push(RecordBody::ModelFailed(ModelFailed {
            model: MODEL.to_owned(),
            compaction: false,
            failure,
        }))
    }

    /// The model answers with text.
    #[must_use]
    pub fn assistant_text(self, text: &str) -> Self {
        self.assistant(vec![ContentBlock::text(text)], StopReason::EndTurn)
    }

    /// The model calls one tool.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, input: Value) -> Self {
        self.tool_calls(vec![(id, name, input)])
    }

    /// The model calls several tools in one reply.
    #[must_use]
    pub fn tool_calls(self, calls: Vec<(&str, &str, Value)>) -> Self {
        let block = |(id, name, input): (&str, &str, Value)| ContentBlock::ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
        };
        self.assistant(calls.into_iter().map(block).collect(), StopReason::ToolUse)
    }

    /// The model answers with any blocks.
    #[must_use]
    pub fn assistant(mut self, content: Vec<ContentBlock>, stop_reason: StopReason) -> Self {
        self.replies += 1;
        self.messages += 1;
        let (uuid, parent_uuid) = self.link();
        let entry = AssistantEntry {
            uuid,
            parent_uuid,
            is_sidechain: false,
            cwd: FOLDER.to_owned(),
            version: VERSION.to_owned(),
            message: AssistantMessage {
                id: format!("msg_{}", self.replies),
                kind: "message".to_owned(),
                role: Role::Assistant,
                model: MODEL.to_owned(),
                content,
                stop_reason: Some(stop_reason),
                stop_sequence: None,
                usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
            },
            request_id: Some(format!("req_{}", self.replies)),
            provider: None,
            duration_api_ms: 1,
            cost_usd: 0.0,
            context_window: 200_000,
            max_output_tokens: 32_000,
        };
        self.push(RecordBody::Assistant(Box::new(entry)))
    }

    /// The gate decides about a call.
    #[must_use]
    pub fn decision(self, id: &str, name: &str, behavior: Behavior) -> Self {
        let decision = Decision {
            behavior,
            layer: DecisionLayer::Mode,
            rule: None,
            origin: None,
            mode: PermissionMode::Default,
            reason: "decided by the test".to_owned(),
            considered: Vec::new(),
            answered_by: None,
        };
        let decided = Decided { tool_use_id: id.to_owned(), tool_name: name.to_owned(), decision };
        self.push(RecordBody::Decided(decided))
    }

    /// A tool is about to run.
    #[must_use]
    pub fn tool_started(self, id: &str, name: &str, replay: ReplayClass) -> Self {
        let started = ToolStarted { tool_use_id: id.to_owned(), tool_name: name.to_owned(), replay };
        self.push(RecordBody::ToolStarted(started))
    }

    /// A call ends.
    #[must_use]
    pub fn tool_result(self, id: &str, text: &str, outcome: CallOutcome) -> Self {
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            content: ToolResultContent::Text(text.to_owned()),
            is_error: outcome != CallOutcome::Completed,
        };
        let message = Message { role: Role::User, content: MessageContent::Blocks(vec![block]) };
        self.user(UserOrigin::ToolResult, message, |entry| {
            entry.outcome = Some(outcome);
            entry.duration_ms = Some(1);
        })
    }

    /// A whole call: the model is asked, calls one tool, the call is allowed, runs and succeeds.
    #[must_use]
    pub fn finished_call(self, id: &str, name: &str, input: Value, result: &str) -> Self {
        self.model_requested()
            .tool_call(id, name, input)
            .decision(id, name, Behavior::Allow)
            .tool_started(id, name, ReplayClass::Pure)
            .tool_result(id, result, CallOutcome::Completed)
    }

    /// A compaction: its boundary and the summary that starts a new chain.
    #[must_use]
    pub fn compaction(mut self, summary: &str) -> Self {
        let old = self.last_entry.take();
        let (uuid, parent_uuid) = self.link();
        let boundary = SystemEntry {
            uuid,
            parent_uuid,
            logical_parent_uuid: old,
            is_sidechain: false,
            subtype: "compact_boundary".to_owned(),
            content: "Conversation compacted".to_owned(),
            compact_metadata: Some(CompactMetadata { trigger: "auto".to_owned(), pre_tokens: 150_000 }),
            usage: Usage::default(),
            model: MODEL.to_owned(),
            provider: None,
            cost_usd: 0.0,
            duration_api_ms: 1,
        };
        self.messages = 0;
        self.push(RecordBody::System(Box::new(boundary))).user(
            UserOrigin::Summary,
            Message::user(summary),
            |entry| entry.is_compact_summary = true,
        )
    }

    /// The turn is interrupted.
    #[must_use]
    pub fn interrupted(self, by: &str) -> Self {
        self.push(RecordBody::Interrupted(Interrupted { by: by.into() }))
    }

    /// The turn ends well.
    #[must_use]
    pub fn turn_ended(self, result: &str) -> Self {
        let ended = TurnEnded {
            subtype: TurnSubtype::Success,
            terminal_reason: TerminalReason::Completed,
            is_error: false,
            result: Some(result.to_owned()),
            structured_output: None,
            errors: Vec::new(),
            error_code: None,
            api_error_status: None,
            stop_reason: Some(StopReason::EndTurn),
            num_turns: self.replies,
            duration_ms: 1,
            duration_api_ms: 1,
            usage: Usage::default(),
            total_cost_usd: 0.0,
            model_usage: std::collections::BTreeMap::new(),
            permission_denials: Vec::new(),
            calls_run: 0,
            subagents: Vec::new(),
            permission_mode: PermissionMode::Default,
        };
        self.push(RecordBody::TurnEnded(Box::new(ended)))
    }

    /// A line that this version does not interpret, as another program may append it.
    ///
    /// # Panics
    /// Never: the line is made here.
    #[expect(clippy::expect_used, reason = "a value that was built here can be written")]
    #[must_use]
    pub fn unknown(self, kind: &str) -> Self {
        let raw = serde_json::value::to_raw_value(&json!({ "type": kind })).expect("plain JSON");
        self.push(RecordBody::Unknown(Unknown { kind: kind.to_owned(), raw }))
    }

    /// The records.
    #[must_use]
    pub fn build(self) -> Vec<Record> {
        self.records
    }

    fn user(mut self, origin: UserOrigin, message: Message, change: impl FnOnce(&mut UserEntry)) -> Self {
        self.messages += 1;
        let (uuid, parent_uuid) = self.link();
        let mut entry = UserEntry {
            uuid,
            parent_uuid,
            is_sidechain: false,
            cwd: FOLDER.to_owned(),
            version: VERSION.to_owned(),
            git_branch: None,
            is_meta: false,
            is_compact_summary: false,
            origin,
            input_id: None,
            message,
            outcome: None,
            tool_use_result: None,
            observations: Vec::new(),
            new_cwd: None,
            duration_ms: None,
            worktree: None,
            memory: Vec::new(),
            tasks: Vec::new(),
            typed: None,
            turn_rules: Vec::new(),
            turn_model: None,
        };
        change(&mut entry);
        self.push(RecordBody::User(Box::new(entry)))
    }

    /// The id of a new entry and of the one before it.
    fn link(&mut self) -> (String, Option<String>) {
        self.entries += 1;
        let uuid = format!("00000000-0000-4000-8000-{:012x}", self.entries);
        let parent = self.last_entry.replace(uuid.clone());
        (uuid, parent)
    }
}
