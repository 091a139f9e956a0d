//! The timeline of a session: its records put together to spans of time. A span is one thing that happened: a model
//! call, a tool's call with its decision, hooks, a question, a background task, a compaction. What people are shown and
//! what is sent to a collector are both made from these, so that both say the same.

mod open;
mod tracker;

use qoder_types::record::{FilesRewound, TerminalReason, TurnSubtype};
use qoder_types::{
    CallOutcome, Decision, HookRun, HookVerdict, ModelFailure, ModelTotals, Purpose, StopReason, TaskStatus,
    Usage,
};
use serde::Serialize;
use serde_json::Value;

pub use tracker::Tracker;

/// What a record completes.
#[derive(Debug, Clone)]
pub enum Happening {
    /// A turn began.
    TurnBegan(TurnStart),
    /// Something is over. Spans come in the order in which they end.
    Span(Box<Span>),
    /// The turn is over; `None` when nothing says how.
    TurnEnded(Box<TurnEnd>),
}

/// The beginning of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    /// Counts from 1.
    pub number: u64,
    /// Milliseconds since 1970.
    pub began_ms: i64,
    /// What was asked.
    pub prompt: String,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The turn.
    pub number: u64,
    /// When it began.
    pub began_ms: i64,
    /// When it ended, or the last thing in it happened.
    pub ended_ms: i64,
    /// How it ended; none for a turn that has not.
    pub subtype: Option<TurnSubtype>,
    /// Why.
    pub terminal_reason: Option<TerminalReason>,
    /// True when it failed.
    pub is_error: bool,
    /// What went wrong.
    pub errors: Vec<String>,
    /// The final text.
    pub result: Option<String>,
    /// Model calls.
    pub model_calls: u64,
    /// Tokens, those of agents included.
    pub usage: Usage,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
}

/// A stretch of time and what happened in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Milliseconds since 1970.
    pub began_ms: i64,
    /// Milliseconds since 1970; the beginning for what takes no time.
    pub ended_ms: i64,
    /// The call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

impl Span {
    /// How long it took.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.ended_ms - self.began_ms).unwrap_or(0)
    }
}

/// What happens in a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum What {
    /// The model was asked.
    Model(ModelCall),
    /// A tool was called.
    Tool(Box<ToolCall>),
    /// Hooks ran.
    Hooks(HooksRan),
    /// A host or person was asked.
    Question(Question),
    /// A command ran in the background.
    Task(BackgroundTask),
    /// Older messages were replaced by a summary.
    Compaction(Compaction),
    /// A model was asked beside the conversation.
    SideCall(SideCall),
    /// Something that takes no time.
    Mark(Mark),
}

/// A model call of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// The model that was asked.
    pub requested_model: String,
    /// The model that answered; empty without an answer.
    pub model: String,
    /// The provider that was asked; logs of old do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// What it said.
    pub text: String,
    /// How many calls it made.
    pub calls: u64,
    /// The provider's id of the reply.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub response_id: String,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ModelFailure>,
}

/// A tool's call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// The input that the model asked for.
    pub input: Value,
    /// The input that counts, when it was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_input: Option<Value>,
    /// Who changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_changed_by: Option<String>,
    /// What was decided about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// How it ended; none when it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// How long the tool itself ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// What the model read.
    pub result: String,
    /// The agent that the call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Files that were kept before it changed them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptFile>,
}

impl ToolCall {
    /// Replaces the input that counted so far.
    pub(crate) fn change_input(&mut self, input: &Value, by: &str) {
        if self.ran_input.as_ref().unwrap_or(&self.input) == input {
            return;
        }
        self.ran_input = Some(input.clone());
        self.input_changed_by = Some(match self.input_changed_by.take() {
            Some(before) if before != by => format!("{before}, then {by}"),
            Some(_) | None => by.to_owned(),
        });
    }
}

/// A file that was kept before a call changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptFile {
    /// Where it is.
    pub path: String,
    /// The content's SHA-256; none when there was no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The hooks of one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HooksRan {
    /// The event.
    pub event: String,
    /// The runs.
    pub runs: Vec<HookRun>,
    /// The strictest verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<HookVerdict>,
    /// Why, or why the turn has to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hook that gave the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// True when they ended the turn.
    pub stops: bool,
}

/// A question to a person or host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The tool or the server that needs the answer.
    pub of: String,
    /// What was asked.
    pub text: String,
    /// `allow`, `deny`, `accept`, `decline` or `cancel`; none while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A background task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask {
    /// Identifies the task.
    pub task_id: String,
    /// What it does.
    pub description: String,
    /// How it ended; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// One line about its end.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

/// A compaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// The model that made the summary.
    pub model: String,
    /// The provider that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tokens of the summary call.
    pub usage: Usage,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// `auto` or `manual`.
    pub trigger: String,
    /// Size of the context before.
    pub pre_tokens: u64,
}

/// A model call beside the conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SideCall {
    /// Why.
    pub purpose: Purpose,
    /// The model.
    pub model: String,
    /// The provider that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
}

/// Something that takes no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Which.
    pub mark: MarkKind,
    /// For people.
    pub text: String,
}

/// What a [`Mark`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MarkKind {
    /// The runtime sent the model a notice.
    Notice,
    /// The turn was interrupted.
    Interrupted,
    /// The permissions changed.
    Permissions,
    /// The conversation continues from an earlier entry.
    Cut,
    /// Files went back to a checkpoint.
    Rewound,
    /// An input was taken back.
    Withdrawn,
}

/// Milliseconds by kind. Spans overlap, so the sum may be more than the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeByKind {
    /// Waiting for the model of the conversation, compactions included.
    pub model: u64,
    /// Tools.
    pub tools: u64,
    /// Hooks.
    pub hooks: u64,
    /// Waiting for people.
    pub questions: u64,
}

/// What a session came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Turns.
    pub turns: u64,
    /// Model calls of the conversation.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// From the beginning of each turn to its end, together.
    pub turns_ms: u64,
    /// Where the time went.
    pub time_ms: TimeByKind,
    /// Tokens and money by model.
    #[serde(skip)]
    pub by_model: std::collections::BTreeMap<String, ModelTotals>,
}

/// A rewind of files for people.
fn in_words(rewound: &FilesRewound) -> String {
    let mut text =
        format!("files go back to what they were before {}: {}", rewound.to, rewound.files.join(", "));
    if !rewound.changed_elsewhere.is_empty() {
        text.push_str("; changed by others too: ");
        text.push_str(&rewound.changed_elsewhere.join(", "));
    }
    text
}
