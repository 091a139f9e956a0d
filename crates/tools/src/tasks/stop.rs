//! The TaskStop tool: ends a background task with everything it started.
//!
//! The task itself does the work, as at the end of a session; this only asks it and waits until that is reported.

use std::sync::OnceLock;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::refusal::{Refusal, interrupted, refusal};
use crate::call::schema::{definition, parse};
use crate::tasks::output::find;

/// The name the model calls.
const NAME: &str = "TaskStop";

/// Stops a background task with all the processes it started: asks them to end, and kills after two seconds.
///
/// Use it for servers and watchers that are no longer needed. What the task printed stays in its file.
#[derive(Debug, Deserialize, JsonSchema)]
struct TaskStopInput {
    /// The id of the task, as Bash or Agent gave it.
    task_id: Option<String>,
    /// Another name for `task_id`.
    shell_id: Option<String>,
    /// Why it is stopped, for the person who watches.
    reason: Option<String>,
}

/// See [`TaskStopInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskStopTool;

impl Tool for TaskStopTool {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        definition::<TaskStopInput>(&CELL, NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { destructive_hint: true, ..ToolAnnotations::default() }
    }

    /// A task dies with the process: stopping it again does nothing.
    fn replay(&self) -> ReplayClass {
        ReplayClass::Pure
    }

    fn is_read_only(&self, _: &Value) -> bool {
        false
    }

    /// Only what the session itself started can be stopped.
    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            match stop(input, &context).await {
                Ok(outcome) => outcome,
                Err(refusal) => *refusal,
            }
        })
    }
}

async fn stop(input: Value, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let input = parse::<TaskStopInput>(NAME, input)?;
    let id = input.task_id.or(input.shell_id);
    let id = id.ok_or_else(|| refusal(format!("Invalid input for {NAME}: field `task_id` is missing.")))?;
    let task = find(context, &id)?;
    let id = &task.start.task_id;
    if let Some(end) = task.end() {
        return Err(refusal(format!("{id} is not running: it ended before ({}).", end.status.as_str())));
    }
    task.ask_to_stop();
    tokio::select! {
        () = task.ended() => {}
        // The task ends all the same, and its end is reported.
        () = context.cancelled.clone() => return Ok(interrupted()),
    }
    let reason = input.reason.filter(|reason| !reason.trim().is_empty());
    let reason = reason.map_or_else(String::new, |reason| format!(" ({})", reason.trim()));
    let message = format!("Stopped {id}: {}{reason}", task.start.description);
    let mut outcome = ToolOutcome::completed(
        format!("{message}. What it printed is in {}.", task.start.output_file),
        json!({
            "success": true, "task_id": id, "message": message, "command": task.start.command,
            "task_type": task.start.task_type,
        }),
    );
    outcome.ended_tasks = vec![id.clone()];
    Ok(outcome)
}
