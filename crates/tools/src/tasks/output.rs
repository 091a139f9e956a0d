//! The TaskOutput tool: how a background task is, and what it has said since the last look.
//!
//! Each byte of output is shown once. Text may be written to a task first; that is judged like any other effect, because
//! what is written may be a command.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_process::TaskFile;
use qoder_types::{ReplayClass, TaskEnded, TaskStatus, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until};

use crate::SessionShared;
use crate::call::refusal::{Refusal, interrupted, refusal};
use crate::call::schema::{Flag, Whole, definition, parse};
use crate::tasks::register::Task;
use crate::tasks::text::since;

/// The name the model calls.
const NAME: &str = "TaskOutput";
/// How long the tool waits when the model names no time.
const USUAL_WAIT: u64 = 30_000;
/// The longest it waits.
const LONGEST_WAIT: u64 = 600_000;
/// The most bytes that one call writes to a task.
const LONGEST_INPUT: usize = 64 * 1024;
/// The most tasks that a complaint lists.
const LISTED: usize = 20;

/// Shows how a background task is and what it has printed since the last call for it.
///
/// - Waits until the task has ended, at most `timeout` milliseconds; with `block` false it answers at once.
/// - You are told when a task ends, so do not call this again and again to wait for it. Go on with other work.
/// - Output is shown once. All of it is in the file that was named when the task started; read that to look back.
/// - `output` is text for the task's standard input; end it with a newline to send a line. The call then waits until
///   the task prints something. Commands that were moved to the background have no input.
#[derive(Debug, Deserialize, JsonSchema)]
struct TaskOutputInput {
    /// The id of the task, as Bash or Agent gave it.
    task_id: String,
    /// Whether to wait; true when it is left out.
    block: Option<Flag>,
    /// How long to wait at most, in milliseconds: 30000 when it is left out, at most 600000.
    timeout: Option<Whole>,
    /// Text to write to the standard input of the task first.
    output: Option<String>,
}

/// See [`TaskOutputInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskOutputTool;

impl Tool for TaskOutputTool {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        definition::<TaskOutputInput>(&CELL, NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::default()
    }

    /// A task dies with the process, so what is written to it cannot be written again by the next one.
    fn replay(&self) -> ReplayClass {
        ReplayClass::Pure
    }

    fn is_read_only(&self, input: &Value) -> bool {
        !writes(input)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![if writes(input) { Access::Other } else { Access::Internal }]
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            match look(input, &context).await {
                Ok(outcome) => outcome,
                Err(refusal) => *refusal,
            }
        })
    }
}

fn writes(input: &Value) -> bool {
    input.get("output").is_some_and(|output| !output.is_null())
}

async fn look(input: Value, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let input = parse::<TaskOutputInput>(NAME, input)?;
    let task = find(context, &input.task_id)?;
    let wait = input.timeout.map_or(USUAL_WAIT, |wait| wait.0).min(LONGEST_WAIT);
    let deadline = Instant::now() + Duration::from_millis(wait);
    let before = task.file.as_ref().map_or(0, TaskFile::taken);
    let work = async {
        if let Some(text) = &input.output {
            write(&task, text, deadline).await?;
        }
        if input.block.is_none_or(|block| block.0) {
            let answered = async {
                match &task.file {
                    Some(file) if input.output.is_some() => file.more_than(before).await,
                    Some(_) | None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = task.ended() => {}
                () = answered => {}
                () = sleep_until(deadline) => {}
            }
        }
        report(&task).await
    };
    tokio::select! {
        biased;
        () = context.cancelled.clone() => Ok(interrupted()),
        outcome = work => outcome,
    }
}

/// The task of this id, or a complaint that names those there are.
pub(crate) fn find(context: &ToolContext, id: &str) -> Result<Arc<Task>, Refusal> {
    let shared = context.shared.downcast_ref::<SessionShared>();
    let shared = shared.ok_or_else(|| refusal("This session has no background tasks."))?;
    shared.task(id.trim()).ok_or_else(|| {
        let tasks = shared.tasks();
        let known: Vec<String> = tasks
            .iter()
            .rev()
            .take(LISTED)
            .map(|task| format!("{} ({}): {}", task.start.task_id, state(task), task.start.description))
            .collect();
        refusal(if known.is_empty() {
            format!("There is no task {id}: no background task was started in this session.")
        } else {
            format!("There is no task {id}. The tasks are:\n{}", known.join("\n"))
        })
    })
}

fn state(task: &Task) -> &'static str {
    task.end().map_or("running", |end| end.status.as_str())
}

async fn write(task: &Task, text: &str, deadline: Instant) -> Result<(), Refusal> {
    let id = &task.start.task_id;
    if text.len() > LONGEST_INPUT {
        return Err(refusal(format!(
            "`output` has {} bytes; at most {LONGEST_INPUT} are written at once.",
            text.len()
        )));
    }
    let writing = async {
        let mut input = task.input.lock().await;
        let Some(pipe) = input.as_mut() else {
            return Err(if task.end().is_some() { "it has ended" } else { "it has no input" }.to_owned());
        };
        let mut written = 0;
        while written < text.len() {
            match pipe.write(&text.as_bytes()[written..]).await {
                Ok(0) => return Err(format!("it took {written} of {} bytes", text.len())),
                Ok(count) => written += count,
                Err(error) => return Err(format!("it took {written} of {} bytes: {error}", text.len())),
            }
        }
        Ok(())
    };
    let written = tokio::select! {
        written = writing => written,
        () = task.ended() => Err("it has ended".to_owned()),
        () = sleep_until(deadline) => Err("it does not read its input; a part of the text may have been taken".to_owned()),
    };
    written.map_err(|problem| refusal(format!("The text was not written to {id}: {problem}.")))
}

async fn report(task: &Task) -> Result<ToolOutcome, Refusal> {
    let start = &task.start;
    // One look at a time, so that each byte is shown to one of them.
    let mut shown = task.shown.lock().await;
    // Before the file is read: what comes at the end of a task is shown with its end.
    let end = task.end();
    let read = since(Path::new(&start.output_file), *shown, end.is_some());
    let (text, note) = match read {
        Ok((text, position)) => {
            *shown = position;
            (text, task.file.as_ref().and_then(TaskFile::problem))
        }
        Err(error) => (String::new(), Some(format!("{} cannot be read: {error}", start.output_file))),
    };
    let mut message = format!("Task {} ({}) {}.", start.task_id, start.description, describe(end.as_ref()));
    if let Some(note) = &note {
        message.push_str(&format!(" A part of its output is lost: {note}."));
    }
    if text.is_empty() {
        message.push_str("\nIt has printed nothing new.");
    } else {
        message.push_str("\nNew output:\n");
        message.push_str(&text);
    }
    let mut structured = json!({
        "task_id": start.task_id, "status": state(task), "output": text, "outputFile": start.output_file,
    });
    if let Some(code) = end.as_ref().and_then(|end| end.exit_code) {
        structured["exitCode"] = json!(code);
    }
    let mut outcome = ToolOutcome::completed(message, structured);
    outcome.ended_tasks = end.into_iter().map(|end| end.task_id).collect();
    Ok(outcome)
}

fn describe(end: Option<&TaskEnded>) -> String {
    let Some(end) = end else { return "is running".to_owned() };
    match (end.status, end.exit_code) {
        (TaskStatus::Completed, Some(_)) => "completed with exit code 0".to_owned(),
        (TaskStatus::Completed, None) => "completed".to_owned(),
        (TaskStatus::Failed, Some(code)) => format!("failed with exit code {code}"),
        (TaskStatus::Failed, None) => "failed".to_owned(),
        (TaskStatus::Stopped, _) => "was stopped".to_owned(),
        (TaskStatus::Unknown, _) => {
            "has an unknown outcome: the program ended while it ran, and it was stopped with it".to_owned()
        }
    }
}
