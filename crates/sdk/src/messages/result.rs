//! The end of a turn: how it ended, what was said last, what it cost and what was denied.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelUsage, Usage, extra};

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultMessage {
    /// `success`, `error_max_turns`, `error_during_execution` and others to come.
    pub subtype: String,
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
    /// Why the model stopped last.
    pub stop_reason: Option<String>,
    /// Why the turn ended: `completed`, `max_turns`, `api_error`, `aborted_streaming`, `aborted_tools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<String>,
    /// Money of the session so far.
    pub total_cost_usd: Option<f64>,
    /// Tokens of this turn.
    pub usage: Option<Usage>,
    /// Totals per model.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Calls that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// The subagents that ended since the last result, with what each used.
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
    /// The reply as JSON, when `output_format` asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten, deserialize_with = "extra")]
    pub extra: Map<String, Value>,
}

impl ResultMessage {
    /// The final text; empty when the turn failed.
    #[must_use]
    pub fn text(&self) -> &str {
        self.result.as_deref().unwrap_or_default()
    }
}

/// What a subagent used. Its figures hold those of the subagents that it started itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentAccount {
    /// Identifies the agent.
    pub agent_id: String,
    /// Which agent it is.
    pub agent_type: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// `completed`, `failed`, `stopped` or `unknown`.
    pub status: String,
    /// Its model calls.
    pub num_turns: u64,
    /// Its tool calls.
    pub tool_uses: u64,
    /// Wall time.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Tokens of all models.
    pub usage: Usage,
    /// Money of all models.
    pub total_cost_usd: f64,
    /// Totals per model.
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// The agents that it started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentAccount>,
}

/// A call that was denied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: Value,
}
