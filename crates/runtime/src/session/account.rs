//! What an agent used, from the fold of its log.

use qoder_core::State;
use qoder_types::{AgentAccount, TaskStarted, TaskStatus, Usage};

/// What the agent `start` used, by its log. The figures of its own agents are in it.
pub(crate) fn account(
    state: &State,
    start: &TaskStarted,
    status: TaskStatus,
    duration_ms: u64,
) -> AgentAccount {
    let mut usage = Usage::default();
    state.totals.values().for_each(|totals| usage.add(&totals.usage()));
    let ended = state.tasks.values().filter_map(|task| task.end.as_ref()?.account.as_deref());
    AgentAccount {
        agent_id: start.task_id.clone(),
        agent_type: start.command.clone(),
        tool_use_id: start.tool_use_id.clone(),
        status,
        num_turns: state.model_calls,
        tool_uses: state.tool_results,
        duration_ms,
        duration_api_ms: state.duration_api_ms,
        usage,
        total_cost_usd: state.total_cost_usd,
        model_usage: state.totals.clone(),
        subagents: ended.cloned().collect(),
    }
}
