//! What the call of an agent comes to for the parent: the answer for the model and the figures beside it.

use qoder_core::ports::ToolOutcome;
use qoder_types::record::{TerminalReason, TurnEnded, TurnSubtype};
use qoder_types::{AgentAccount, CallOutcome, TaskStatus, Worktree};
use serde_json::{Value, json};

/// How an agent ended.
pub(super) struct Ending {
    pub(super) status: TaskStatus,
    /// Its last words, or why there are none.
    pub(super) text: String,
    /// Its worktree, when there is something in it.
    worktree: Option<Worktree>,
    /// Why a hook has ended it, which ends the turn that waits for it.
    stop: Option<String>,
}

impl Ending {
    /// What the end of its turn says. `timed_out` and `stopped` say how it was ended.
    pub(super) fn of(end: &TurnEnded, timed_out: bool, stopped: bool) -> Self {
        if end.subtype == TurnSubtype::Success {
            let text = end.result.clone().unwrap_or_default();
            let silent = text.trim().is_empty();
            let text = if silent { "(The agent ended without text.)".to_owned() } else { text };
            return Self { status: TaskStatus::Completed, text, worktree: None, stop: None };
        }
        let aborted =
            matches!(end.terminal_reason, TerminalReason::AbortedStreaming | TerminalReason::AbortedTools);
        let why = if timed_out { "its time limit was reached".to_owned() } else { end.errors.join("; ") };
        let status = if aborted && stopped && !timed_out { TaskStatus::Stopped } else { TaskStatus::Failed };
        let why = why.trim_end_matches('.');
        let stop = (end.terminal_reason == TerminalReason::HookStopped).then(|| why.to_owned());
        Self { status, text: format!("The agent did not finish: {why}."), worktree: None, stop }
    }

    /// It did not come to an end of its own.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { status: TaskStatus::Failed, text: text.into(), worktree: None, stop: None }
    }

    /// It was stopped before it began.
    pub(super) fn stopped() -> Self {
        let text = "The agent did not finish: it was stopped before it began.".to_owned();
        Self { status: TaskStatus::Stopped, text, worktree: None, stop: None }
    }

    /// It has left something in a worktree of its own.
    pub(super) fn keep(&mut self, worktree: Worktree) {
        let Worktree { path, branch, .. } = &worktree;
        self.text
            .push_str(&format!("\n\n[Its worktree {path} on the branch {branch} is kept: it has changes.]"));
        self.worktree = Some(worktree);
    }

    /// What became of it, after its name.
    pub(super) fn words(&self) -> &'static str {
        match self.status {
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Stopped | TaskStatus::Unknown => "was stopped",
        }
    }

    /// What its call comes to, with the log as `transcript`.
    pub(super) fn outcome(self, text: String, account: &AgentAccount, transcript: &Value) -> ToolOutcome {
        let mut structured = figures(account);
        structured["transcript"] = transcript.clone();
        if let Some(worktree) = &self.worktree {
            structured["worktreePath"] = json!(worktree.path);
            structured["worktreeBranch"] = json!(worktree.branch);
        }
        let outcome = match self.status {
            TaskStatus::Completed => {
                structured["status"] = json!("completed");
                structured["result"] = json!(self.text);
                structured["content"] = json!([{ "type": "text", "text": text }]);
                CallOutcome::Completed
            }
            TaskStatus::Failed | TaskStatus::Stopped | TaskStatus::Unknown => {
                structured["status"] = json!("failed");
                structured["error"] = json!(self.text);
                if self.status == TaskStatus::Failed { CallOutcome::Failed } else { CallOutcome::Interrupted }
            }
        };
        let mut outcome = ToolOutcome { outcome, ..ToolOutcome::completed(text, structured) };
        outcome.ended_tasks = vec![account.agent_id.clone()];
        outcome.stop = self.stop;
        outcome
    }
}

/// The figures under their documented names.
fn figures(account: &AgentAccount) -> Value {
    json!({
        "agent": account.agent_type, "agentType": account.agent_type, "agentId": account.agent_id,
        "numTurns": account.num_turns, "totalToolUseCount": account.tool_uses,
        "totalDurationMs": account.duration_ms, "usage": account.usage,
        "totalTokens": account.usage.total_input() + account.usage.output_tokens,
        "totalCostUsd": account.total_cost_usd, "modelUsage": account.model_usage,
    })
}
