//! What an agent used, as its end puts on record and as results list it. The figures of an agent hold those of the agents
//! that it started itself, so that a session's own figures and those of its agents add up to its totals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{ModelTotals, Usage};
use crate::task::TaskStatus;

/// What an agent used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAccount {
    /// Identifies the agent.
    pub agent_id: String,
    /// Which agent it is.
    pub agent_type: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// How it ended.
    pub status: TaskStatus,
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
    pub model_usage: BTreeMap<String, ModelTotals>,
    /// The agents that it started; their figures are in its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<AgentAccount>,
}
