//! What an unfinished call means. A call that started and has no result was cut off by the death of the process: pure
//! ones run again, effectful ones are closed as unknown and never run again. Also closes what an interrupt or a new
//! prompt leaves open, so that no call is ever without an outcome. [`recover`] is what a process says first when it
//! drives a session that another one left.

use std::collections::BTreeMap;

use qoder_types::record::{ElicitationAnswered, RecordBody};
use qoder_types::{Actor, AgentAccount, CallOutcome, ReplayClass, TaskEnded, TaskStarted, TaskStatus};

use crate::state::{Call, State};

/// What to do with a call that started and never finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Run it again: it has no effects, or repeats none.
    RunAgain,
    /// Close it: how far it came is unknown.
    CloseUnknown,
}

/// What to do with `call`, which started and has no result.
#[must_use]
pub fn recovery(replay: ReplayClass) -> Recovery {
    match replay {
        ReplayClass::Pure | ReplayClass::Resumable => Recovery::RunAgain,
        ReplayClass::Effectful => Recovery::CloseUnknown,
    }
}

/// Why open calls are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The process died while the call ran.
    ProcessDied,
    /// A person interrupted the turn.
    Interrupted,
    /// A new prompt was given to a session whose turn was unfinished.
    NewPrompt,
    /// A hook ended the turn.
    Stopped,
}

/// An outcome for a call that will not run (any further).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The call.
    pub tool_use_id: String,
    /// Its outcome.
    pub outcome: CallOutcome,
    /// What the model reads.
    pub text: String,
}

/// The outcome of one call that is closed for `reason`.
#[must_use]
pub fn close(call: &Call, reason: CloseReason) -> Closing {
    let (outcome, text) = match (call.started, reason) {
        (
            Some(ReplayClass::Effectful | ReplayClass::Resumable),
            CloseReason::ProcessDied | CloseReason::NewPrompt | CloseReason::Stopped,
        ) => (
            CallOutcome::Unknown,
            format!(
                "Outcome unknown: the program stopped while {} was running. It may have happened completely, in part \
                 or not at all, and it was not run again. Check the result before you repeat it.",
                call.name
            ),
        ),
        (Some(_), CloseReason::Interrupted) => {
            (CallOutcome::Interrupted, format!("{} was interrupted by the user while it ran.", call.name))
        }
        (
            Some(ReplayClass::Pure),
            CloseReason::ProcessDied | CloseReason::NewPrompt | CloseReason::Stopped,
        ) => (
            CallOutcome::Interrupted,
            format!("{} did not finish: the program stopped while it ran. It changed nothing.", call.name),
        ),
        (None, CloseReason::Interrupted) => {
            (CallOutcome::NotRun, format!("{} was not run: the user interrupted the turn.", call.name))
        }
        (None, CloseReason::Stopped) => {
            (CallOutcome::NotRun, format!("{} was not run: a hook ended the turn.", call.name))
        }
        (None, CloseReason::ProcessDied | CloseReason::NewPrompt) => (
            CallOutcome::NotRun,
            format!("{} was not run: the program stopped before it started.", call.name),
        ),
    };
    Closing { tool_use_id: call.id.clone(), outcome, text }
}

/// Outcomes for every open call.
#[must_use]
pub fn close_open_calls(state: &State, reason: CloseReason) -> Vec<Closing> {
    state.open_calls().map(|call| close(call, reason)).collect()
}

/// What is recorded when a process begins to drive a session that another one left: the ends of tasks that were left
/// running and of servers' questions that were left open. `agents` are the accounts of agents by their task ids, as their
/// own logs have them.
#[must_use]
pub fn recover(state: &State, agents: &BTreeMap<String, AgentAccount>) -> Vec<RecordBody> {
    let ends = left_running(state).map(|start| lost_end(start, agents.get(&start.task_id)));
    let cancelled = state.elicitations.iter().map(|id| ElicitationAnswered {
        elicitation_id: id.clone(),
        action: "cancel".to_owned(),
        by: Actor::Resume,
    });
    ends.map(RecordBody::TaskEnded).chain(cancelled.map(RecordBody::ElicitationAnswered)).collect()
}

/// The tasks that an earlier process left running. Those of a call that is resumed are not lost, nor are agents that wait.
pub fn left_running(state: &State) -> impl Iterator<Item = &TaskStarted> {
    let starts = state.running_tasks().filter(|task| task.parked.is_none()).map(|task| &task.start);
    starts.filter(|start| !start.is_agent() || !state.is_resumable(&start.tool_use_id))
}

/// The end of a task that was left running; `account` is an agent's, by its log.
#[must_use]
pub fn lost_end(start: &TaskStarted, account: Option<&AgentAccount>) -> TaskEnded {
    let summary = if start.is_agent() {
        format!(
            "Agent \"{}\" was cut off: the program ended while it worked, after {} model calls",
            start.description,
            account.map_or(0, |account| account.num_turns)
        )
    } else {
        format!(
            "Background command \"{}\": outcome unknown: the program ended while the task ran",
            start.description
        )
    };
    TaskEnded {
        task_id: start.task_id.clone(),
        status: TaskStatus::Unknown,
        summary,
        exit_code: None,
        account: account.filter(|_| start.is_agent()).cloned().map(Box::new),
    }
}
