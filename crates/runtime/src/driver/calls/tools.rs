//! Tool calls: started in the log, run, and their results recorded as they come. Read-only calls of a batch run together, the others one at a time and in order. A failing call does not disturb its siblings.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use qoder_core::ports::{ProgressSink, Spent, Tool, ToolContext, ToolOutcome, ToolProgress};
use qoder_types::record::{PermissionsChanged, RecordBody, ToolStarted, UserEntry, UserOrigin};
use qoder_types::{
    Actor, CallOutcome, ContentBlock, Hooked, Message, MessageContent, Observation, PermissionUpdate, Role,
    ToolResultContent,
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::driver::hooks::calls::{AfterCall, FileChange};
use crate::error::DriveError;
use crate::events::Event;
use qoder_config::hooks::HookEvent;
use qoder_hooks::Fired;

/// Read-only calls that run at the same time.
const MOST_TOGETHER: usize = 10;
/// Pieces of tool output that may wait for the host; further ones are dropped, they are ephemeral.
const WAITING_OUTPUT: usize = 1024;

/// A call that is about to run.
pub(in crate::driver) struct Ready {
    pub(in crate::driver) id: String,
    pub(in crate::driver) tool: Arc<dyn Tool>,
    pub(in crate::driver) input: Value,
}

/// A call that has run, and what hooks said about it.
pub(in crate::driver) struct Ran {
    id: String,
    tool: String,
    pub(in crate::driver) outcome: ToolOutcome,
    elapsed_ms: u64,
    pub(in crate::driver) spent: Spent,
    /// The error is the host's.
    pub(in crate::driver) fired: std::io::Result<Option<Fired>>,
    /// The files that it was to change, when hooks want to know.
    changes: Vec<FileChange>,
}

/// What is put on record of a call that has run.
struct Recorded {
    /// What hooks said.
    before: Option<RecordBody>,
    /// The result.
    entry: UserEntry,
    /// Changes of permissions that it brought, and the tool that did.
    updates: Vec<PermissionUpdate>,
    by: Actor,
    /// What ends the turn, if it does.
    stop: Option<RecordBody>,
}

pub(in crate::driver) async fn run_one(
    ready: Ready,
    context: ToolContext,
    after: Option<AfterCall>,
    changes: Vec<FileChange>,
) -> Ran {
    let spent = Arc::clone(&context.spent);
    let begun = Instant::now();
    let run = AssertUnwindSafe(ready.tool.run(ready.input, context)).catch_unwind();
    let outcome = run.await.unwrap_or_else(|_| {
        ToolOutcome::failed("The tool failed because of a fault in the program; its effect is unknown.")
    });
    let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let fired = match after {
        Some(after) if !outcome.parked => after.fire(&outcome, elapsed_ms).await,
        Some(_) | None => Ok(None),
    };
    let tool = ready.tool.definition().name.clone();
    Ran { id: ready.id, tool, outcome, elapsed_ms, spent, fired, changes }
}

impl Driver<'_> {
    pub(in crate::driver) async fn run_calls(&mut self, ids: &[String]) -> Result<(), DriveError> {
        let mut ready = Vec::new();
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            // A tool that was advertised by an earlier process may be gone.
            let checked = self.engine.toolbox.get(&call.name).map(|tool| {
                self.engine.toolbox.check(&*tool, &call.input).map(|input| (Arc::clone(&tool), input))
            });
            match checked {
                Some(Ok((tool, input))) => {
                    let tool = self.with_worktree_hooks(tool, &input);
                    ready.push(Ready { id: id.clone(), tool, input });
                }
                Some(Err(error)) => self.append_result(id, &error.to_string(), CallOutcome::Failed)?,
                None => {
                    let text = format!("The tool {} is not available any more.", call.name);
                    self.append_result(id, &text, CallOutcome::NotRun)?;
                }
            }
        }
        for group in groups(ready) {
            if self.stopping.is_wanted() {
                return self.interrupt_turn();
            }
            let mut starting = Vec::with_capacity(group.len());
            for ready in group {
                if self.may_start(&ready.id)? {
                    starting.push(ready);
                }
            }
            self.run_group(starting).await?;
        }
        Ok(())
    }

    async fn run_group(&mut self, group: Vec<Ready>) -> Result<(), DriveError> {
        if group.is_empty() {
            return Ok(());
        }
        let started = group
            .iter()
            .map(|ready| {
                RecordBody::ToolStarted(ToolStarted {
                    tool_use_id: ready.id.clone(),
                    tool_name: ready.tool.definition().name.clone(),
                    replay: ready.tool.replay(),
                })
            })
            .collect();
        self.session.append_all(started)?;
        self.session.barrier().await?;
        let (output, mut pieces) = mpsc::channel(WAITING_OUTPUT);
        let mut running: FuturesUnordered<_> = group
            .into_iter()
            .map(|ready| {
                let context = self.context(&ready.id, &output);
                let name = ready.tool.definition().name.clone();
                let after = self.after_call(&ready.id, &name, &ready.input, &context.spent);
                let changes = self.file_changes(&*ready.tool, &ready.input);
                run_one(ready, context, after, changes)
            })
            .collect();
        let mut cancelled = self.stopping.wanted();
        let mut interrupted = false;
        loop {
            tokio::select! {
                biased;
                done = running.next() => match done {
                    Some(ran) => {
                        let mut ended = vec![ran];
                        // What ended at the same time is put on record in one write.
                        while let Some(Some(ran)) = running.next().now_or_never() {
                            ended.push(ran);
                        }
                        let mut told = Ok(());
                        while let (Ok((id, text)), Ok(())) = (pieces.try_recv(), &told) {
                            told = self.emit_call_output(&id, &text);
                        }
                        // What became of tasks is on record before the result that reports it, and a host that is gone
                        // keeps nothing from the log.
                        let forwarded = self.forward_task_events();
                        self.record_outcomes(ended)?;
                        told.and(forwarded)?;
                    }
                    None => {
                        drop(output);
                        return Ok(());
                    }
                },
                Some((id, text)) = pieces.recv() => {
                    self.emit_call_output(&id, &text)?;
                }
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
                () = &mut cancelled, if !interrupted => {
                    // The tools learn of it through their contexts; each ends with an outcome of its own.
                    interrupted = true;
                    self.interrupt_turn()?;
                }
            }
        }
    }

    /// Output of a running call, which came without secrets.
    pub(in crate::driver) fn emit_call_output(
        &self,
        tool_use_id: &str,
        text: &str,
    ) -> Result<(), DriveError> {
        self.engine.outlet.emit(Event::ToolOutput { tool_use_id, text }).map_err(DriveError::Output)
    }

    pub(in crate::driver) fn context(
        &self,
        id: &str,
        output: &mpsc::Sender<(String, String)>,
    ) -> ToolContext {
        let observations = Arc::clone(&self.session.state.observations);
        let observed = move |path: &Path| -> Option<Observation> {
            observations.get(path.to_string_lossy().as_ref()).cloned()
        };
        let permissions = &self.session.state.permissions;
        let spent = Spent::default();
        ToolContext {
            session_id: self.session.id.clone(),
            tool_use_id: id.to_owned(),
            cwd: PathBuf::from(&self.session.state.cwd),
            roots: self.engine.gate.policy(permissions).workspace().roots.as_slice().into(),
            outputs: self.session.kept_outputs(),
            observed: Arc::new(observed),
            keep_before: self.keep_before(id),
            hidden: self.engine.gate.hidden(permissions),
            cancelled: self.stopping.wanted(),
            progress: self.progress_sink(id, output),
            environment: Arc::clone(&self.engine.common.environment),
            side_model: Some(self.side_model(id, &spent)),
            spent,
            mode: self.engine.gate.mode(permissions),
            mode_after_plan: self.engine.gate.mode_before_plan(permissions),
            permissions: permissions.clone(),
            worktree: self.session.state.worktree.clone(),
            shared: Arc::clone(&self.engine.shared) as Arc<dyn std::any::Any + Send + Sync>,
        }
    }

    /// What an agent is given that judges for a hook.
    pub(in crate::driver) fn context_of_hook(&self) -> ToolContext {
        let (output, _) = mpsc::channel(1);
        self.context("", &output)
    }

    fn progress_sink(&self, id: &str, output: &mpsc::Sender<(String, String)>) -> ProgressSink {
        let wanted = self.engine.outlet.wants().tool_output;
        // Weak, so that a background task that outlives the call does not keep the group waiting.
        let output = output.downgrade();
        let tasks = self.session.task_events.sender();
        let id = id.to_owned();
        Arc::new(move |progress| match progress {
            ToolProgress::Output(text) => {
                if wanted && let Some(output) = output.upgrade() {
                    // A full channel means a slow reader; live output is a courtesy, the result is complete.
                    let _ = output.try_send((id.clone(), text));
                }
            }
            // The driver may be gone when a background task ends; then there is no one to report it to.
            task @ (ToolProgress::TaskStarted { .. }
            | ToolProgress::TaskProgress { .. }
            | ToolProgress::TaskParked(_)
            | ToolProgress::TaskEnded(_)) => {
                let _ = tasks.send(task);
            }
        })
    }

    /// Puts calls on record that have run, and then announces their results.
    fn record_outcomes(&mut self, ended: Vec<Ran>) -> Result<(), DriveError> {
        for ran in &ended {
            self.record_spent(&ran.spent)?;
        }
        self.record_kept()?;
        let (mut bodies, mut results, mut parent, mut failed) = (Vec::new(), Vec::new(), None, None);
        for ran in ended {
            if ran.outcome.parked || self.is_left_open(&ran.id) {
                continue;
            }
            let mut recorded = match self.recorded(ran) {
                Ok(recorded) => recorded,
                // The others have run, too.
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            if let Some(parent) = parent.replace(recorded.entry.uuid.clone()) {
                recorded.entry.parent_uuid = Some(parent);
            }
            let Recorded { before, entry, updates, by, stop } = recorded;
            bodies.extend(before);
            results.push((bodies.len(), updates.clone()));
            bodies.push(RecordBody::User(Box::new(entry)));
            // What the call brought and its result are kept together or not at all.
            if !updates.is_empty() {
                bodies.push(RecordBody::PermissionsChanged(PermissionsChanged { updates, by }));
            }
            bodies.extend(stop);
        }
        let records = if bodies.is_empty() { Vec::new() } else { self.session.append_all(bodies)? };
        for (place, updates) in results {
            if let Some(record) = records.get(place) {
                self.emit_record(record)?;
            }
            self.took_updates(&updates)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// What is put on record of a call that has run.
    fn recorded(&mut self, ran: Ran) -> Result<Recorded, DriveError> {
        let Ran { id, tool, mut outcome, elapsed_ms, fired, changes, .. } = ran;
        self.notice_changes(&outcome, changes);
        let (report, abandoned) = self.end_abandoned_agent_of(&id)?;
        if let Some(report) = report {
            outcome.content = ToolResultContent::Text(format!("{} {report}", outcome.content.to_text()));
        }
        let hooked = fired.map_err(DriveError::Output)?.map(|fired| self.revise(&mut outcome, fired));
        self.add_call_context(&id, &mut outcome.content);
        let stop = outcome.stop.take().map(|reason| stopped_with_agent(&id, reason));
        let block = ContentBlock::ToolResult {
            tool_use_id: id,
            content: outcome.content,
            is_error: outcome.outcome != CallOutcome::Completed,
        };
        let message = Message { role: Role::User, content: MessageContent::Blocks(vec![block]) };
        let mut entry = self.session.user_entry(UserOrigin::ToolResult, message);
        entry.outcome = Some(outcome.outcome);
        entry.tool_use_result = serde_json::value::to_raw_value(&outcome.structured).ok();
        self.read_files.extend(outcome.observations.iter().map(|seen| PathBuf::from(&seen.path)));
        entry.observations = outcome.observations;
        entry.new_cwd = outcome.new_cwd.map(|cwd| cwd.to_string_lossy().into_owned());
        entry.duration_ms = Some(elapsed_ms);
        outcome.ended_tasks.extend(abandoned);
        entry.tasks = self.untold(outcome.ended_tasks);
        entry.worktree = outcome.worktree;
        entry.turn_rules = outcome.turn_rules;
        let updates = self.usable_updates(outcome.permission_updates)?;
        Ok(Recorded { before: hooked, entry, updates, by: Actor::Named(tool), stop })
    }
}

/// A hook has stopped the agent that a call started, and with it this turn. What it said is in the agent's log.
fn stopped_with_agent(id: &str, reason: String) -> RecordBody {
    RecordBody::Hooked(Box::new(Hooked {
        event: HookEvent::SubagentStop.as_str().to_owned(),
        tool_use_id: Some(id.to_owned()),
        runs: Vec::new(),
        verdict: None,
        reason: None,
        by: None,
        updated_input: None,
        updated_input_by: None,
        additional_context: None,
        stop: Some(reason),
    }))
}

/// Neighbouring read-only calls form a group; every other call is one by itself.
fn groups(ready: Vec<Ready>) -> Vec<Vec<Ready>> {
    let mut groups: Vec<Vec<Ready>> = Vec::new();
    let mut open = false;
    for call in ready {
        let read_only = call.tool.is_read_only(&call.input);
        match groups.last_mut() {
            Some(group) if open && read_only && group.len() < MOST_TOGETHER => group.push(call),
            _ => groups.push(vec![call]),
        }
        open = read_only;
    }
    groups
}
