//! Session records: the only durable truth. A record is one line of the session file. Lines of the types `user`,
//! `assistant` and `system` form the transcript chain that other programs read; all other types are ours alone.
//! Every record carries its number (`seq`), its schema version (`v`) and, at the end of the line, a checksum (`crc`).

mod cut;
mod input;
mod rewound;
mod turn;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::actor::Actor;
use crate::content::{ContentBlock, Message, Role};
use crate::decision::Decision;
use crate::hook::Hooked;
use crate::model::{ModelFailure, Purpose, StopReason, Usage};
use crate::permission::{RuleValue, WorktreeChange};
use crate::task::{TaskEnded, TaskParked, TaskStarted};
use crate::tool::{CallOutcome, Observation, ReplayClass, ToolDefinition};

pub use crate::answer::{
    Answered, AskKind, Asked, ElicitationAnswered, Elicited, ExternalResult, PermissionsChanged,
};
pub use crate::model::ModelNoticed;
pub use cut::Cut;
pub use input::{InputAdmitted, InputOrigin, InputProblem, InputWithdrawn};
pub use rewound::{FileKept, FilesRewound};
pub use turn::{PermissionDenial, TerminalReason, TurnEnded, TurnSubtype};

/// The schema version this program writes.
pub const RECORD_VERSION: u32 = 1;

/// One numbered record of a session.
#[derive(Debug, Clone)]
pub struct Record {
    /// Position in the session, from 1, without gaps.
    pub seq: u64,
    /// When it was written, RFC 3339 in UTC with milliseconds. For people; order comes from `seq`.
    pub timestamp: String,
    /// What happened.
    pub body: RecordBody,
}

/// What a record says.
#[derive(Debug, Clone)]
pub enum RecordBody {
    /// The session began (`session-start`).
    SessionStarted(SessionStarted),
    /// The prompt's fixed part changed (`epoch`).
    Epoch(Epoch),
    /// An input was accepted while a turn was running (`input`).
    InputAdmitted(InputAdmitted),
    /// An input was taken back before its turn (`input-withdrawn`).
    InputWithdrawn(InputWithdrawn),
    /// A user message: a prompt, a tool result, a summary or a notice (`user`).
    User(Box<UserEntry>),
    /// A complete reply of the model (`assistant`).
    Assistant(Box<AssistantEntry>),
    /// The boundary of a compaction (`system`).
    System(Box<SystemEntry>),
    /// A model call is about to be made (`model-request`).
    ModelRequested(ModelRequested),
    /// A model call failed for good (`model-failure`).
    ModelFailed(ModelFailed),
    /// A model call did something otherwise than asked (`model-notice`).
    ModelNoticed(Box<ModelNoticed>),
    /// The gate decided about a call (`decision`).
    Decided(Decided),
    /// A call is pending until it gets an answer (`permission-ask`).
    Asked(Box<Asked>),
    /// An answer arrived (`permission-answer`).
    Answered(Box<Answered>),
    /// A server waits for input of a person (`elicitation`).
    Elicited(Box<Elicited>),
    /// A server's question has an answer (`elicitation-answer`).
    ElicitationAnswered(ElicitationAnswered),
    /// The session's permissions changed (`permission-change`).
    PermissionsChanged(PermissionsChanged),
    /// A model was asked beside the conversation (`side-call`).
    SideCalled(Box<SideCalled>),
    /// A tool is about to run (`tool-start`).
    ToolStarted(ToolStarted),
    /// A background task is about to start (`task-start`).
    TaskStarted(TaskStarted),
    /// An agent ended its drive because calls of it wait for answers (`task-parked`).
    TaskParked(Box<TaskParked>),
    /// A background task ended (`task-end`).
    TaskEnded(TaskEnded),
    /// Hooks ran (`hook`).
    Hooked(Box<Hooked>),
    /// A person interrupted the turn (`interrupt`).
    Interrupted(Interrupted),
    /// The turn ended (`turn-end`).
    TurnEnded(Box<TurnEnded>),
    /// What came after an entry is no longer part of the conversation (`cut`).
    Cut(Box<Cut>),
    /// A file was kept as it was before a call changed it (`file-kept`).
    FileKept(Box<FileKept>),
    /// Files are about to go back to what they were before a message (`files-rewound`).
    FilesRewound(Box<FilesRewound>),
    /// A record of a kind this version does not know, or a line another program appended. Kept and passed through.
    Unknown(Unknown),
}

/// The session began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStarted {
    /// Working directory at the start.
    pub cwd: String,
    /// Version of the program.
    pub version: String,
    /// The session this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

/// The fixed part of the prompt: what precedes the messages until the next epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Epoch {
    /// Counts from 1.
    pub number: u32,
    /// Why the fixed part changed, for people.
    pub reason: String,
    /// The model's name as configured.
    pub model: String,
    /// The system prompt, in blocks.
    pub system: Vec<String>,
    /// The advertised tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// Fingerprint of everything the system prompt was made from; an equal one means the recorded text stays.
    pub source: String,
}

/// Why a user entry exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserOrigin {
    /// A person or host sent it; it opens a turn.
    #[default]
    Prompt,
    /// It is the result of one tool call.
    ToolResult,
    /// It is the summary that replaces what came before.
    Summary,
    /// The runtime speaks to the model inside a turn.
    Notice,
}

/// A user message in the transcript chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserEntry {
    /// Identifies the entry.
    pub uuid: String,
    /// The entry before it in the chain.
    pub parent_uuid: Option<String>,
    /// True in the file of a subagent.
    #[serde(default)]
    pub is_sidechain: bool,
    /// Working directory.
    #[serde(default)]
    pub cwd: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// Branch checked out in the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// True for texts of the runtime that readers should not show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_meta: bool,
    /// True for the summary after a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_compact_summary: bool,
    /// Why it exists.
    #[serde(default)]
    pub origin: UserOrigin,
    /// The admitted input it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<String>,
    /// The message.
    pub message: Message,
    /// For a tool result: how the call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// For a tool result: the tool's typed output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Box<RawValue>>,
    /// For a tool result: what the tool saw of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<Observation>,
    /// For a tool result: the working directory from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_cwd: Option<String>,
    /// For a tool result: milliseconds the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// For a tool result: a worktree that was entered or left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeChange>,
    /// For a notice: the memory files it brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// The background tasks whose end it reports to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// For a prompt: what the person wrote, when the message is the expansion of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    /// Rules that allow calls from here to the end of the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn_rules: Vec<RuleValue>,
    /// For a prompt: the model that its command wants for the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_model: Option<String>,
}

/// The model's message inside an [`AssistantEntry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The provider's id.
    #[serde(default)]
    pub id: String,
    /// Always `message`.
    #[serde(rename = "type", default = "message_kind")]
    pub kind: String,
    /// Always assistant.
    #[serde(default = "assistant_role")]
    pub role: Role,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// What it said.
    pub content: Vec<ContentBlock>,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// Always null; readers expect the key.
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Usage,
}

fn message_kind() -> String {
    "message".to_owned()
}

fn assistant_role() -> Role {
    Role::Assistant
}

/// A complete reply of the model in the transcript chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantEntry {
    /// Identifies the entry.
    pub uuid: String,
    /// The entry before it in the chain.
    pub parent_uuid: Option<String>,
    /// True in the file of a subagent.
    #[serde(default)]
    pub is_sidechain: bool,
    /// Working directory.
    #[serde(default)]
    pub cwd: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// The reply.
    pub message: AssistantMessage,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Time from request to end of reply.
    #[serde(default)]
    pub duration_api_ms: u64,
    /// Price in dollars.
    #[serde(default, rename = "costUSD")]
    pub cost_usd: f64,
    /// The model's window and output limit, for `modelUsage`.
    #[serde(default)]
    pub context_window: u64,
    /// See `context_window`.
    #[serde(default)]
    pub max_output_tokens: u64,
}

/// What a compaction was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactMetadata {
    /// `auto` or `manual`.
    pub trigger: String,
    /// Context size before, in tokens.
    pub pre_tokens: u64,
}

/// The boundary of a compaction in the transcript chain. The summary follows as a user entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemEntry {
    /// Identifies the entry.
    pub uuid: String,
    /// Null: a new chain starts here.
    pub parent_uuid: Option<String>,
    /// The last entry of the old chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_parent_uuid: Option<String>,
    /// True in the file of a subagent.
    #[serde(default)]
    pub is_sidechain: bool,
    /// `compact_boundary`.
    pub subtype: String,
    /// For people.
    #[serde(default)]
    pub content: String,
    /// What the compaction was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_metadata: Option<CompactMetadata>,
    /// Tokens the summary call used.
    #[serde(default)]
    pub usage: Usage,
    /// The model that made the summary.
    #[serde(default)]
    pub model: String,
    /// The provider that was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the summary call cost.
    #[serde(default, rename = "costUSD")]
    pub cost_usd: f64,
    /// Time the summary call took.
    #[serde(default)]
    pub duration_api_ms: u64,
}

/// A model call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequested {
    /// The model that will be asked.
    pub model: String,
    /// The provider that will be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How many messages the request has.
    pub messages: u64,
    /// Epoch of the fixed part.
    pub epoch: u32,
}

/// A model call failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFailed {
    /// The model that was asked.
    pub model: String,
    /// True when the call was the summary of a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compaction: bool,
    /// What went wrong.
    pub failure: ModelFailure,
}

/// The gate decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// The decision and its explanation.
    pub decision: Decision,
}

/// A model was asked beside the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SideCalled {
    /// The call of a tool that needed it.
    pub tool_use_id: String,
    /// Why.
    pub purpose: Purpose,
    /// The model that answered.
    pub model: String,
    /// The provider that answered; none for the sum of several calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// Price in dollars.
    #[serde(default, rename = "costUSD")]
    pub cost_usd: f64,
    /// Time it took.
    #[serde(default)]
    pub duration_api_ms: u64,
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted {
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// What may be done if no result follows.
    pub replay: ReplayClass,
}

/// A person or the host interrupted the turn, or a signal ended the process while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    /// What asked for it: `signal`, `host`, `resume` when a new prompt closes an unfinished turn, or the name of the signal
    /// that ended the process, such as `SIGTERM`.
    pub by: Actor,
}

impl Interrupted {
    /// True when it was the process that was to end and not the turn: a resumed session continues the turn.
    #[must_use]
    pub fn leaves_turn_open(&self) -> bool {
        matches!(self.by, Actor::Ending(_))
    }
}

/// A line this version does not interpret.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// Its `type`.
    pub kind: String,
    /// The whole line.
    pub raw: Box<RawValue>,
}
