//! The state of a session: what the fold of its records comes to. Everything the loop knows is here, so a turn can be
//! continued from any prefix of the log.

pub mod call_ids;
pub mod structured;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use qoder_types::record::{Answered, Asked, InputAdmitted, PermissionDenial, TurnEnded};
use qoder_types::{
    AgentAccount, ContentBlock, Decision, ExternalResult, Hooked, ModelFailure, ModelTotals, Observation,
    ReplayClass, StopReason, TaskEnded, TaskParked, TaskStarted, ToolDefinition, Usage, Worktree,
};
use serde_json::Value;

use crate::permissions::SessionPermissions;
use crate::ports::PromptMessage;
use crate::state::call_ids::CallIds;
use crate::state::structured::StructuredAnswer;

/// The fixed part of the prompt.
#[derive(Debug, Clone)]
pub struct EpochState {
    /// Counts from 1; a compaction counts too.
    pub number: u32,
    /// The model's name as configured.
    pub model: String,
    /// The system prompt.
    pub system: Arc<[String]>,
    /// The advertised tools.
    pub tools: Arc<[ToolDefinition]>,
    /// What the system prompt was made from.
    pub source: String,
}

/// One tool call of the last reply.
#[derive(Debug, Clone)]
pub struct Call {
    /// Identifies the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
    /// What the gate said, when it has.
    pub decision: Option<Decision>,
    /// The working directory at that time.
    pub decided_in: String,
    /// What the hooks before the call said, when some ran.
    pub hooked: Option<Hooked>,
    /// What the hooks of the question said, when some ran.
    pub question_hooked: Option<Hooked>,
    /// The question that was put, when one was.
    pub asked: Option<Asked>,
    /// The answer to it.
    pub answer: Option<Answered>,
    /// Set when the tool was started.
    pub started: Option<ReplayClass>,
    /// The result block, when there is one.
    pub result: Option<ContentBlock>,
}

impl Call {
    /// The question, while it has no answer.
    #[must_use]
    pub fn waiting_ask(&self) -> Option<&Asked> {
        self.asked.as_ref().filter(|_| self.answer.is_none())
    }

    /// The result that came from outside, for a call that does not run here.
    #[must_use]
    pub fn external_result(&self) -> Option<&ExternalResult> {
        self.answer.as_ref()?.result.as_ref()
    }
}

/// What the last reply of the turn was like.
#[derive(Debug, Clone)]
pub struct ReplySummary {
    /// Why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// Its text.
    pub text: String,
    /// True when it said nothing at all.
    pub empty: bool,
}

/// The turn that is open.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// Replies received.
    pub model_calls: u64,
    /// Tokens so far.
    pub usage: Usage,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Calls that were denied.
    pub denials: Vec<PermissionDenial>,
    /// Calls that started.
    pub calls_run: u64,
    /// The last reply, until something follows it.
    pub reply: Option<ReplySummary>,
    /// Why the model stopped last, kept for the result.
    pub stop_reason: Option<StopReason>,
    /// The last text the model said in this turn.
    pub last_text: String,
    /// True while a model call is on its way.
    pub requested: bool,
    /// The failure that ended the last model call.
    pub failure: Option<ModelFailure>,
    /// True when that failure happened while summarising.
    pub compaction_failed: bool,
    /// Consecutive replies cut by the output limit that were continued.
    pub continuations: u32,
    /// Consecutive empty replies.
    pub empty_replies: u32,
    /// True once calls have results: a model may have nothing to add to them.
    pub used_tools: bool,
    /// Summaries in a row after which at most one reply fitted.
    pub quick_compactions: u32,
    /// Set when a person interrupted: what asked for it.
    pub interrupted: Option<qoder_types::Actor>,
    /// True once the interrupt was reported to the model.
    pub interrupt_noted: bool,
    /// Set when a hook ended the turn: why.
    pub stopped: Option<String>,
    /// How often hooks have kept the turn from ending.
    pub stop_blocks: u32,
    /// True when hooks did not let the conversation be summarised.
    pub compaction_blocked: bool,
    /// The model that its command wants, in place of the session's.
    pub model: Option<String>,
    /// What it has of an answer in a shape.
    pub structured: StructuredAnswer,
}

/// A background task.
#[derive(Debug, Clone)]
pub struct TaskState {
    /// How it began.
    pub start: TaskStarted,
    /// How it ended, when it has.
    pub end: Option<TaskEnded>,
    /// What an agent waits for, when it ended its drive for that. It continues from its log.
    pub parked: Option<TaskParked>,
    /// True once the model was told of its end.
    pub told: bool,
    /// True once a turn has counted what it used as its own.
    pub counted: bool,
    /// True once the end of a turn has listed what it used.
    pub listed: bool,
}

/// How full the context is.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextMeter {
    /// Tokens of the last request and reply, as the provider counted them.
    pub reported: u64,
    /// Bytes added since.
    pub added_bytes: u64,
    /// Bytes of all messages.
    pub total_bytes: u64,
    /// Bytes of the system prompt.
    pub system_bytes: u64,
    /// Replies since the last compaction.
    pub replies: u64,
}

impl ContextMeter {
    /// The best estimate in tokens: the provider's figure first, four bytes a token for the rest.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        if self.reported > 0 {
            self.reported + self.added_bytes / 4
        } else {
            (self.system_bytes + self.total_bytes) / 4
        }
    }

    /// Nothing is in front of the model but this system prompt.
    pub(crate) fn with_system(system: &[String]) -> Self {
        let system_bytes = system.iter().map(|text| text.len() as u64).sum();
        Self { system_bytes, ..Self::default() }
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.added_bytes += bytes;
        self.total_bytes += bytes;
    }
}

/// The fold of a prefix of a session's records.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Number of the last record.
    pub last_seq: u64,
    /// Working directory.
    pub cwd: String,
    /// The fixed part of the prompt.
    pub epoch: Option<EpochState>,
    /// The conversation as the model reads it.
    pub prompt: Vec<Arc<PromptMessage>>,
    /// What was learned about model servers, by server and model.
    pub learned: BTreeMap<String, Value>,
    /// The last entry of the transcript chain.
    pub leaf: Option<String>,
    /// The first prompt, for lists.
    pub first_prompt: Option<String>,
    /// Text of the prompt that opened the present or last turn.
    pub last_prompt: String,
    /// The entry of that prompt.
    pub last_prompt_id: Option<String>,
    /// The turn that is open.
    pub turn: Option<Turn>,
    /// Inputs that wait for their turn.
    pub inputs: VecDeque<InputAdmitted>,
    /// Texts of the operator that the model reads before the next prompt.
    pub system_inputs: VecDeque<InputAdmitted>,
    /// The input whose command has begun to run calls of its own: they are not run a second time.
    pub begun_input: Option<String>,
    /// Ids of every input and prompt, so that the same one sent twice counts once.
    pub input_ids: HashSet<String>,
    /// The calls of the last reply, in order.
    pub calls: Vec<Call>,
    /// The ids of all calls.
    pub call_ids: CallIds,
    /// What was last seen of each file, by real path.
    pub observations: Arc<HashMap<String, Observation>>,
    /// Memory files that were brought to the model inside the conversation.
    pub memory: BTreeSet<String>,
    /// Background tasks by id, ended ones included.
    pub tasks: BTreeMap<String, TaskState>,
    /// Totals per model.
    pub totals: BTreeMap<String, ModelTotals>,
    /// Money so far.
    pub total_cost_usd: f64,
    /// Replies of the model so far.
    pub model_calls: u64,
    /// Results of tool calls so far.
    pub tool_results: u64,
    /// Time spent waiting for models so far.
    pub duration_api_ms: u64,
    /// How full the context is.
    pub context: ContextMeter,
    /// How the last turn ended.
    pub last_turn: Option<TurnEnded>,
    /// The number of the record with that end.
    pub last_turn_seq: u64,
    /// Prompts seen.
    pub prompts: u64,
    /// Questions of servers to a person that have no answer.
    pub elicitations: BTreeSet<String>,
    /// What the session changed about its permissions.
    pub permissions: SessionPermissions,
    /// The worktree it works in.
    pub worktree: Option<Worktree>,
}

impl State {
    /// The call with this id, if it belongs to the last reply.
    #[must_use]
    pub fn call(&self, id: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// Calls of the last reply that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.result.is_none())
    }

    /// Tasks that have no end on record.
    pub fn running_tasks(&self) -> impl Iterator<Item = &TaskState> {
        self.tasks.values().filter(|task| task.end.is_none())
    }

    /// Tasks that ended without the model knowing.
    pub fn untold_tasks(&self) -> impl Iterator<Item = &TaskState> {
        self.tasks.values().filter(|task| task.end.is_some() && !task.told)
    }

    /// What the agents used that ended since the last turn did.
    pub fn unlisted_accounts(&self) -> impl Iterator<Item = &AgentAccount> {
        let unlisted = self.tasks.values().filter(|task| !task.listed);
        unlisted.filter_map(|task| task.end.as_ref()?.account.as_deref())
    }

    /// True when the call was started, has no result, and finds by itself how far it came.
    #[must_use]
    pub fn is_resumable(&self, tool_use_id: &str) -> bool {
        self.call(tool_use_id)
            .is_some_and(|call| call.result.is_none() && call.started == Some(ReplayClass::Resumable))
    }

    /// True when a turn is open or an input waits.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.turn.is_some() || !self.inputs.is_empty()
    }
}
