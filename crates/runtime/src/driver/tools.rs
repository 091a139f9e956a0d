//! Tool calls: checked, decided, started in the log, run, and their results recorded as they come. Read-only calls of
//! a batch run together, the others one at a time and in order. A failing call does not disturb its siblings.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use qoder_core::ports::{ProgressSink, Tool, ToolContext, ToolOutcome, ToolProgress};
use qoder_types::record::{Decided, RecordBody, ToolStarted, UserOrigin};
use qoder_types::wire::{StreamMessage, SystemMessage};
use qoder_types::{
    Behavior, CallOutcome, ContentBlock, Decision, DecisionLayer, Message, MessageContent, Observation, Role,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Driver, arrival};
use crate::error::DriveError;
use crate::events::Event;
use crate::session::new_id;

/// Read-only calls that run at the same time.
const MOST_TOGETHER: usize = 10;
/// Pieces of tool output that may wait for the host; further ones are dropped, they are ephemeral.
const WAITING_OUTPUT: usize = 1024;

/// A call that is about to run.
struct Ready {
    id: String,
    tool: Arc<dyn Tool>,
    input: Value,
}

impl Driver<'_> {
    /// Decides about calls. One that cannot be decided about, because its tool or input makes no sense, gets an error
    /// that the model can repair.
    pub(super) fn decide(&mut self, ids: &[String]) -> Result<(), DriveError> {
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            let name = call.name.clone();
            match self.judge(&name, &call.input.clone()) {
                Ok(decision) => self.record_decision(id, &name, decision)?,
                Err(text) => self.append_result(id, &text, CallOutcome::Failed)?,
            }
        }
        Ok(())
    }

    fn judge(&self, name: &str, input: &Value) -> Result<Decision, String> {
        let Some(tool) = self.engine.toolbox.get(name) else {
            let known: Vec<&str> = self.engine.toolbox.names().collect();
            return Err(format!("There is no tool named {name}. The tools are: {}.", known.join(", ")));
        };
        let input = self.engine.toolbox.check(&**tool, input)?;
        self.engine.gate.decide(&**tool, &input, Path::new(&self.session.state.cwd))
    }

    fn record_decision(&mut self, id: &str, name: &str, decision: Decision) -> Result<(), DriveError> {
        let denied = decision.behavior != Behavior::Allow;
        let (layer, reason) = (decision.layer, decision.reason.clone());
        let body = Decided { tool_use_id: id.to_owned(), tool_name: name.to_owned(), decision };
        self.session.append(RecordBody::Decided(body))?;
        if !denied {
            return Ok(());
        }
        let uuid = new_id();
        let message = denial_text(name, &reason);
        self.emit(&StreamMessage::System(SystemMessage::PermissionDenied {
            tool_name: name,
            tool_use_id: id,
            decision_reason_type: layer_name(layer),
            decision_reason: &reason,
            message: &message,
            uuid: &uuid,
            session_id: &self.session.id,
        }))
    }

    /// Answers calls whose denial is on record.
    pub(super) fn refuse(&mut self, ids: &[String]) -> Result<(), DriveError> {
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            let reason = call.decision.as_ref().map_or("no decision was made", |decision| &decision.reason);
            let text = denial_text(&call.name, reason);
            self.append_result(id, &text, CallOutcome::Denied)?;
        }
        Ok(())
    }

    pub(super) async fn run_calls(&mut self, ids: &[String]) -> Result<(), DriveError> {
        let mut ready = Vec::new();
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            // A tool that was advertised by an earlier process may be gone.
            let checked = self.engine.toolbox.get(&call.name).map(|tool| {
                self.engine.toolbox.check(&**tool, &call.input).map(|input| (Arc::clone(tool), input))
            });
            match checked {
                Some(Ok((tool, input))) => ready.push(Ready { id: id.clone(), tool, input }),
                Some(Err(text)) => self.append_result(id, &text, CallOutcome::Failed)?,
                None => {
                    let text = format!("The tool {} is not available any more.", call.name);
                    self.append_result(id, &text, CallOutcome::NotRun)?;
                }
            }
        }
        for group in groups(ready) {
            if self.interrupt.is_triggered() {
                return self.interrupt_turn();
            }
            self.run_group(group).await?;
        }
        Ok(())
    }

    async fn run_group(&mut self, group: Vec<Ready>) -> Result<(), DriveError> {
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
        let (output, mut pieces) = mpsc::channel(WAITING_OUTPUT);
        let mut running: FuturesUnordered<_> = group
            .into_iter()
            .map(|ready| {
                let context = self.context(&ready.id, &output);
                async move {
                    let begun = Instant::now();
                    let run = AssertUnwindSafe(ready.tool.run(ready.input, context)).catch_unwind();
                    let outcome = run.await.unwrap_or_else(|_| {
                        ToolOutcome::failed(
                            "The tool failed because of a fault in the program; its effect is unknown.",
                        )
                    });
                    (ready.id, begun.elapsed(), outcome)
                }
            })
            .collect();
        drop(output);
        let mut cancelled = self.interrupt.cancelled();
        let mut interrupted = false;
        loop {
            tokio::select! {
                biased;
                done = running.next() => match done {
                    Some((id, elapsed, outcome)) => {
                        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                        // What became of tasks is on record before the result that speaks of it.
                        self.forward_task_events()?;
                        self.record_outcome(&id, outcome, elapsed)?;
                    }
                    None => return Ok(()),
                },
                Some((id, text)) = pieces.recv() => {
                    let event = Event::ToolOutput { tool_use_id: &id, text: &text };
                    self.engine.host.emit(event).map_err(DriveError::Output)?;
                }
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                input = arrival(&mut self.inbox) => self.admit(input)?,
                () = &mut cancelled, if !interrupted => {
                    // The tools were told through their contexts; each ends with an outcome of its own.
                    interrupted = true;
                    self.interrupt_turn()?;
                }
            }
        }
    }

    fn context(&self, id: &str, output: &mpsc::Sender<(String, String)>) -> ToolContext {
        let observations = Arc::clone(&self.session.state.observations);
        let observed = move |path: &Path| -> Option<Observation> {
            observations.get(path.to_string_lossy().as_ref()).cloned()
        };
        ToolContext {
            session_id: self.session.id.clone(),
            tool_use_id: id.to_owned(),
            cwd: PathBuf::from(&self.session.state.cwd),
            roots: Arc::clone(&self.engine.roots),
            output_dir: self.session.outputs().to_path_buf(),
            observed: Arc::new(observed),
            hidden: self.engine.gate.hidden(),
            cancelled: self.interrupt.cancelled(),
            progress: self.progress_sink(id, output),
            hidden_environment: Arc::clone(&self.engine.hidden_environment),
            side_model: None,
            mode: self.engine.gate.mode,
            mode_after_plan: qoder_types::PermissionMode::Default,
            worktree: None,
            shared: Arc::clone(&self.engine.shared) as Arc<dyn std::any::Any + Send + Sync>,
        }
    }

    fn progress_sink(&self, id: &str, output: &mpsc::Sender<(String, String)>) -> ProgressSink {
        let wanted = self.engine.host.wants_tool_output();
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
            // The driver may be gone when a background task ends; nobody is left to tell.
            task @ (ToolProgress::TaskStarted { .. }
            | ToolProgress::TaskProgress { .. }
            | ToolProgress::TaskEnded(_)) => {
                let _ = tasks.send(task);
            }
        })
    }

    fn record_outcome(&mut self, id: &str, outcome: ToolOutcome, elapsed_ms: u64) -> Result<(), DriveError> {
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
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
        entry.tasks = self.untold(outcome.ended_tasks);
        let record = self.session.append(RecordBody::User(Box::new(entry)))?;
        self.emit_user(&record, false)
    }
}

fn denial_text(tool: &str, reason: &str) -> String {
    format!("Permission to use {tool} was denied: {reason}.")
}

fn layer_name(layer: DecisionLayer) -> &'static str {
    match layer {
        DecisionLayer::Rule => "rule",
        DecisionLayer::BuiltIn => "other",
        DecisionLayer::SafetyCheck => "safetyCheck",
        DecisionLayer::Mode => "mode",
        DecisionLayer::Unattended => "unattended",
    }
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
