//! The end of a turn: how it ended, what was said last, what it cost and what was denied.

use std::collections::BTreeMap;

use qoder_types::record::{TerminalReason, TurnSubtype};
use qoder_types::{AgentAccount, TaskStatus};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelUsage, StopReason, Usage, Word, extra, require};

pub use qoder_types::record::PermissionDenial;

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = always_written)]
pub struct ResultMessage {
    /// `success`, `error_max_turns`, `error_during_execution` and others to come.
    pub subtype: Word<TurnSubtype>,
    /// True when the turn failed.
    pub is_error: bool,
    /// Wall time.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Model calls.
    pub num_turns: u64,
    /// The session.
    pub session_id: String,
    /// New for each message.
    pub uuid: String,
    /// The final text; only on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The answer in the shape that was asked for, on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// Why the model stopped last.
    pub stop_reason: Option<StopReason>,
    /// Why the turn ended: `completed`, `max_turns`, `api_error`, `aborted_streaming`, `aborted_tools` and others to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TerminalReason")]
    pub terminal_reason: Option<Word<TerminalReason>>,
    /// Money of the session so far.
    #[schemars(with = "f64")]
    pub total_cost_usd: Option<f64>,
    /// Tokens of this turn.
    #[schemars(with = "Usage")]
    pub usage: Option<Usage>,
    /// Totals per model.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Calls that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// The agents that ended since the last result, with what each used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentAccount>,
    /// What went wrong, on errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The documented number of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<u32>,
    /// The endpoint's HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    #[schemars(skip)]
    pub extra: Map<String, Value>,
}

impl ResultMessage {
    /// The final text; empty when the turn failed.
    #[must_use]
    pub fn text(&self) -> &str {
        self.result.as_deref().unwrap_or_default()
    }
}

fn always_written(schema: &mut Schema) {
    require(schema, &["terminal_reason"]);
}

/// What an agent used. Its figures hold those of the agents that it started itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "AgentAccount")]
pub struct SubagentAccount {
    /// Identifies the agent.
    pub agent_id: String,
    /// Which agent it is.
    pub agent_type: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// `completed`, `failed`, `stopped` or `unknown`.
    pub status: Word<TaskStatus>,
    /// Its model calls, without those of its own agents.
    pub num_turns: u64,
    /// Its tool calls, without those of its own agents.
    pub tool_uses: u64,
    /// Wall time from its start to its end.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Tokens of all models.
    pub usage: Usage,
    /// Money of all models.
    pub total_cost_usd: f64,
    /// Totals per model.
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// The agents that it started; their figures are in its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentAccount>,
}

impl From<&AgentAccount> for SubagentAccount {
    fn from(account: &AgentAccount) -> Self {
        Self {
            agent_id: account.agent_id.clone(),
            agent_type: account.agent_type.clone(),
            tool_use_id: account.tool_use_id.clone(),
            status: account.status.into(),
            num_turns: account.num_turns,
            tool_uses: account.tool_uses,
            duration_ms: account.duration_ms,
            duration_api_ms: account.duration_api_ms,
            usage: account.usage,
            total_cost_usd: account.total_cost_usd,
            model_usage: account.model_usage.clone(),
            subagents: account.subagents.iter().map(Self::from).collect(),
        }
    }
}
