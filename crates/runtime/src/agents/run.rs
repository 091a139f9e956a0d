//! The run of an agent, from its turn in the room to its account. It is a task of its own: the call that started it may
//! wait for it or not, and it is stopped from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_core::ports::{ToolContext, ToolOutcome};
use qoder_tools::AgentTask;
use qoder_types::record::TurnEnded;
use qoder_types::{ParkedCall, TaskParked};
use serde_json::json;

use super::AgentTool;
use super::child::Child;
use super::ending::Ending;
use super::tool::AgentInput;
use crate::driver::Driver;
use crate::engine::interrupt::Interrupt;
use crate::error::{DriveError, WaitingCall};
use crate::session::account::account;

/// An agent that is on record.
pub(super) struct Run {
    pub(super) tool: Arc<AgentTool>,
    pub(super) child: Child,
    pub(super) input: AgentInput,
    pub(super) task: AgentTask,
    pub(super) context: ToolContext,
    pub(super) interrupt: Interrupt,
}

/// What the work of an agent came to.
enum Worked {
    Ended(Ending),
    /// The process ends first.
    Left,
    /// These calls wait.
    Parked(Vec<ParkedCall>),
}

/// How a drive ended: by itself, by its time limit or because it was stopped.
struct Driven {
    end: Result<Option<TurnEnded>, DriveError>,
    timed_out: bool,
    stopped: bool,
}

impl Run {
    /// Works until the agent has ended, and reports that.
    pub(super) async fn work_to_the_end(mut self) -> ToolOutcome {
        let begun = Instant::now();
        let slots = Arc::clone(&self.tool.tree.slots);
        let place = tokio::select! {
            biased;
            () = self.interrupt.cancelled() => None,
            () = self.task.stop_wanted() => None,
            place = slots.place(self.tool.tree.depth()) => place,
        };
        let worked = match place {
            Some(_) => self.work().await,
            None if self.ends_with_process() => Worked::Left,
            None => Worked::Ended(Ending::stopped()),
        };
        drop(place);
        self.child.leave_servers().await;
        let mut ending = match worked {
            Worked::Ended(ending) => ending,
            Worked::Left => {
                self.task.leave();
                return ToolOutcome::failed(
                    "The agent is not finished: the program ends, and resumes it later.",
                );
            }
            Worked::Parked(calls) => {
                // The log is free before its parent hears of it: an answer is appended to it.
                drop(self.child);
                let (task_id, input) = (self.task.start().task_id.clone(), Some(self.input.to_value()));
                self.task.park(TaskParked { task_id, calls, input });
                let text = "The agent is not finished: a call of it waits for an answer.";
                return ToolOutcome { parked: true, ..ToolOutcome::failed(text) };
            }
        };
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let session = &self.child.session;
        let account = account(&session.state, self.task.start(), ending.status, milliseconds);
        let transcript = json!(session.log_path());
        if let Some(worktree) = self.child.leave_worktree(&self.context).await {
            ending.keep(worktree);
        }
        let session = &self.child.session;
        let (text, _) = qoder_tools::bounded_text(ending.text.clone(), &session.kept_outputs(), "agent");
        self.task.finish(ending.status, ending.words(), &ending.text, account.clone());
        ending.outcome(text, &account, &transcript)
    }

    /// True when it stops because the process ends.
    fn ends_with_process(&self) -> bool {
        self.child.engine.common.ending.signal().is_some()
    }

    /// Works to the end of the task, or of the process, which leaves the task open, or until a call of it waits.
    async fn work(&mut self) -> Worked {
        // Tokens of an earlier process are spent, too.
        if self.tool.tree.slots.is_new_here(&self.child.agent_id) {
            for totals in self.child.session.state.totals.values() {
                self.tool.common.spending.recall(&totals.usage(), totals.cost_usd);
            }
        }
        self.tool.observe(&mut self.child.session, &self.child.sidecar.agent_type, &self.context);
        if let Err(error) = self.tool.begin(&mut self.child, &self.input.prompt, &self.context) {
            return Worked::Ended(Ending::failed(format!("The agent could not be started: {error}.")));
        }
        let driven = self.drive().await;
        Worked::Ended(match driven.end {
            Err(DriveError::Ended(_)) => return Worked::Left,
            Err(DriveError::Waiting(calls)) => return Worked::Parked(self.parked(calls)),
            Ok(Some(end)) => Ending::of(&end, driven.timed_out, driven.stopped),
            // It had ended before its process could say so.
            Ok(None) => match &self.child.session.state.last_turn {
                Some(end) => Ending::of(end, false, true),
                None => Ending::failed("The agent ended without an answer."),
            },
            Err(error) => Ending::failed(format!("The agent could not go on: {error}.")),
        })
    }

    /// Calls that wait, with the agents that made them.
    fn parked(&self, calls: Vec<WaitingCall>) -> Vec<ParkedCall> {
        let parked = |call: WaitingCall| ParkedCall {
            agent_id: call.agent_id.unwrap_or_else(|| self.child.agent_id.clone()),
            tool_use_id: call.tool_use_id,
            tool_name: call.tool_name,
            kind: call.kind,
            reason: call.reason,
        };
        calls.into_iter().map(parked).collect()
    }

    async fn drive(&mut self) -> Driven {
        let asked = self.input.timeout_ms.map(Duration::from_millis);
        let defined = self.child.definition.as_ref().and_then(|definition| definition.timeout);
        let limit = asked.into_iter().chain(defined).min();
        let mut driver = Driver::new(&self.child.engine, &mut self.child.session, self.interrupt.clone());
        let (mut timed_out, mut asked_to_stop) = (false, false);
        let end = {
            let mut run = Box::pin(driver.run());
            let mut time = Box::pin(sleep(limit));
            loop {
                tokio::select! {
                    end = &mut run => break end,
                    () = self.task.stop_wanted(), if !asked_to_stop => {
                        asked_to_stop = true;
                        self.interrupt.trigger();
                    }
                    () = &mut time, if !timed_out => {
                        timed_out = true;
                        self.interrupt.trigger();
                    }
                }
            }
        };
        let ended = driver.end_tasks().await;
        let stopped = asked_to_stop || self.interrupt.is_triggered();
        Driven { end: end.and_then(|end| ended.map(|()| end)), timed_out, stopped }
    }
}

async fn sleep(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
