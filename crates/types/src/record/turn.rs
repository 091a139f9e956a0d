//! How a turn ended: the record of it, and the words for it that records and the result message share.
//! Everything the result message needs is in the record, so that a process that died before it could say so leaves
//! the saying to the next one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::PermissionMode;
use crate::model::{ModelTotals, StopReason, Usage};
use crate::task::AgentAccount;

/// How a turn ended, in the words of the result message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnSubtype {
    /// The model finished.
    Success,
    /// The turn limit was reached.
    ErrorMaxTurns,
    /// A model failure, an interrupt or a fault of the runtime ended it.
    ErrorDuringExecution,
    /// The money of the run was spent.
    ErrorMaxBudgetUsd,
    /// The tokens of the task were used.
    ErrorMaxTaskBudget,
    /// The model did not give an answer that fits the schema.
    ErrorMaxStructuredOutputRetries,
}

impl TurnSubtype {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ErrorMaxTurns => "error_max_turns",
            Self::ErrorDuringExecution => "error_during_execution",
            Self::ErrorMaxBudgetUsd => "error_max_budget_usd",
            Self::ErrorMaxTaskBudget => "error_max_task_budget",
            Self::ErrorMaxStructuredOutputRetries => "error_max_structured_output_retries",
        }
    }
}

/// Why a turn ended, finer than [`TurnSubtype`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalReason {
    /// The model finished.
    Completed,
    /// The turn limit was reached.
    MaxTurns,
    /// The endpoint failed.
    ApiError,
    /// Interrupted while the model spoke.
    AbortedStreaming,
    /// Interrupted while tools ran.
    AbortedTools,
    /// A hook ended it, or did not let it begin.
    HookStopped,
    /// The money of the run was spent.
    MaxBudget,
    /// The tokens of the task were used.
    MaxTaskBudget,
    /// The model did not give an answer that fits the schema.
    StructuredOutputRetries,
}

impl TerminalReason {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxTurns => "max_turns",
            Self::ApiError => "api_error",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedTools => "aborted_tools",
            Self::HookStopped => "hook_stopped",
            Self::MaxBudget => "max_budget",
            Self::MaxTaskBudget => "max_task_budget",
            Self::StructuredOutputRetries => "structured_output_retries",
        }
    }
}

/// A call that the gate denied, for `permission_denials`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: serde_json::Value,
}

/// The turn ended; everything the result message needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// How.
    pub subtype: TurnSubtype,
    /// Why.
    pub terminal_reason: TerminalReason,
    /// True unless the turn succeeded.
    pub is_error: bool,
    /// The final text, on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The answer in the shape that was asked for, on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// What went wrong.
    #[serde(default)]
    pub errors: Vec<String>,
    /// The documented number of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<u32>,
    /// The endpoint's HTTP status, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// Why the model stopped last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Model calls of this turn.
    pub num_turns: u64,
    /// Wall time of this turn in this process.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Tokens of this turn.
    pub usage: Usage,
    /// Money of the session so far.
    pub total_cost_usd: f64,
    /// Totals of the session so far, per model.
    pub model_usage: std::collections::BTreeMap<String, ModelTotals>,
    /// Calls that were denied in this turn.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial>,
    /// Calls that ran in this turn, however they ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_run: u64,
    /// The agents that ended since the turn before ended, with what each used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<AgentAccount>,
    /// The mode the turn ended in.
    pub permission_mode: PermissionMode,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
