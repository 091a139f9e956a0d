//! Background tasks that run in a tool host. Each is a task like any other here: on record before it starts, in the session's
//! register, with an output file that the environment cannot change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use qoder_core::ports::ToolContext;
use qoder_core::redact::{RedactedStream, Secrets};
use qoder_types::{TaskEnded, TaskStarted, TaskStatus};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::lines::{Sender, encode};
use super::message::ToHost;
use super::pending::lock;
use crate::SessionShared;
use crate::tasks::lifecycle::{Recorded, announce_as};

/// What a task may be sent before it has read some of it.
const INPUT_BYTES: usize = 64 * 1024;
/// The kind of task that a host starts.
const KIND: &str = "local_bash";

/// A task that is on record.
pub(crate) struct RemoteTask {
    recorded: Recorded,
    redacted: RedactedStream,
    /// How much it had said when that was last reported, and when that is due again.
    reported: (u64, Instant),
    /// Passes on what the task is asked for; ends with it.
    attending: Vec<JoinHandle<()>>,
}

impl RemoteTask {
    pub(crate) fn output_file(&self) -> String {
        self.recorded.start().output_file.clone()
    }

    fn end(mut self, end: TaskEnded) {
        self.recorded.file().append(&self.redacted.finish());
        // A writer that holds it has just noticed the end.
        if let Ok(mut input) = self.recorded.task().input.try_lock() {
            input.take();
        }
        self.recorded.end(end);
    }
}

impl Drop for RemoteTask {
    fn drop(&mut self) {
        self.attending.iter().for_each(JoinHandle::abort);
    }
}

/// The tasks of one host.
pub(crate) struct Tasks {
    sender: Sender,
    running: Mutex<HashMap<String, RemoteTask>>,
}

impl Tasks {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender, running: Mutex::default() }
    }

    /// Puts a task on record; `None` when it may not start.
    pub(crate) async fn announce(
        &self,
        start: TaskStarted,
        context: &ToolContext,
        has_input: bool,
    ) -> Option<RemoteTask> {
        let shared = Arc::clone(&context.shared).downcast::<SessionShared>().ok()?;
        let id = start.task_id.clone();
        if !is_id(&id) || shared.task(&id).is_some() {
            return None;
        }
        let start = TaskStarted {
            tool_use_id: context.tool_use_id.clone(),
            task_type: KIND.to_owned(),
            output_file: String::new(),
            ..start
        };
        let recorded = announce_as(&shared, start, context).await.ok()?;
        let task = shared.task(&id)?;
        let mut attending = Vec::new();
        if has_input {
            let (writer, mut reader) = tokio::io::duplex(INPUT_BYTES);
            *task.input.lock().await = Some(Box::new(writer));
            let (sender, id) = (self.sender.clone(), id.clone());
            attending.push(tokio::spawn(async move {
                let mut piece = vec![0; INPUT_BYTES];
                while let Ok(count @ 1..) = reader.read(&mut piece).await {
                    sender.send(&ToHost::TaskInput { task: id.clone(), data: encode(&piece[..count]) });
                }
            }));
        }
        let sender = self.sender.clone();
        attending.push(tokio::spawn(async move {
            task.stop_wanted().await;
            sender.send(&ToHost::StopTask { task: id });
        }));
        Some(RemoteTask {
            reported: (0, Instant::now() + recorded.report_every()),
            recorded,
            redacted: context.outputs.redactor.stream(Secrets::All),
            attending,
        })
    }

    /// The task runs from now on.
    pub(crate) fn keep(&self, task: RemoteTask) {
        lock(&self.running).insert(task.recorded.start().task_id.clone(), task);
    }

    /// Takes in what a task said.
    pub(crate) fn append(&self, id: &str, bytes: &[u8]) {
        if let Some(task) = lock(&self.running).get_mut(id) {
            let clean = task.redacted.push(bytes);
            task.recorded.file().append(&clean);
            let (mut said, due) = task.reported;
            if due <= Instant::now() {
                task.recorded.report(&mut said);
                task.reported = (said, Instant::now() + task.recorded.report_every());
            }
        }
    }

    /// A task has ended.
    pub(crate) fn end(&self, end: TaskEnded) {
        let task = lock(&self.running).remove(&end.task_id);
        if let Some(task) = task {
            task.end(TaskEnded { account: None, ..end });
        }
    }

    /// The host is gone, and its tasks with it.
    pub(crate) fn lose(&self) {
        let tasks: Vec<RemoteTask> = lock(&self.running).drain().map(|(_, task)| task).collect();
        for task in tasks {
            let start = task.recorded.start();
            let stopped = task.recorded.task().shall_stop();
            let (status, ending) = if stopped {
                (TaskStatus::Stopped, "was stopped")
            } else {
                (TaskStatus::Unknown, "has an unknown outcome: its environment ended while it ran")
            };
            let end = TaskEnded {
                task_id: start.task_id.clone(),
                status,
                summary: format!("Background command \"{}\" {ending}", start.description),
                exit_code: None,
                account: None,
            };
            task.end(end);
        }
    }
}

/// True for an ID as a host makes it: it becomes part of a file name.
fn is_id(id: &str) -> bool {
    let rest = id.strip_prefix("bash_");
    rest.is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
