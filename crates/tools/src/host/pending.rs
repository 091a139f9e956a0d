//! What waits for a tool host: calls, files and tasks. What the host says about anything else is ignored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use qoder_core::ports::{ToolContext, ToolProgress};
use qoder_core::redact::{RedactedStream, Secrets};
use tokio::sync::oneshot;

use super::error::HostError;
use super::lines::{Sender, decode};
use super::message::{FromHost, Outcome, ToHost};
use super::tasks::{RemoteTask, Tasks};

/// How much of what a call printed is kept for the case that the host ends.
const KEPT_OUTPUT: usize = 4 * 1024;

/// What a file request is answered with.
pub(crate) enum FileAnswer {
    Opened(u64),
    Piece(Vec<u8>),
    Failed(String),
}

/// How a call ended.
pub(crate) enum CallEnd {
    /// With a result; paths of files that the host named for tasks, and those that they have here.
    Result(Box<Outcome>, Vec<(String, String)>),
    /// The host ended: why, and the end of what the call had printed.
    Gone { problem: String, printed: String },
}

/// A call that waits.
pub(crate) struct PendingCall {
    done: oneshot::Sender<CallEnd>,
    context: ToolContext,
    /// True when a task that it starts has an input.
    has_input: bool,
    redacted: RedactedStream,
    printed: String,
    /// Output files of its tasks: as the host names them, and as they are named here.
    files: Vec<(String, String)>,
}

impl PendingCall {
    fn push_output(&mut self, clean: &[u8]) {
        if clean.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(clean).into_owned();
        self.printed.push_str(&text);
        let surplus = self.printed.len().saturating_sub(KEPT_OUTPUT);
        let cut = (surplus..=self.printed.len()).find(|at| self.printed.is_char_boundary(*at));
        self.printed.drain(..cut.unwrap_or(0));
        (self.context.progress)(ToolProgress::Output(text));
    }

    fn finish(&mut self) {
        let rest = self.redacted.finish();
        self.push_output(&rest);
    }
}

/// Everything that waits for one host.
pub(crate) struct Pending {
    sender: Sender,
    calls: Mutex<HashMap<u64, PendingCall>>,
    files: Mutex<HashMap<u64, oneshot::Sender<FileAnswer>>>,
    tasks: Tasks,
    /// Why the host is no longer there.
    ended: OnceLock<String>,
}

impl Pending {
    pub(crate) fn new(sender: Sender) -> Self {
        Self {
            tasks: Tasks::new(sender.clone()),
            sender,
            calls: Mutex::default(),
            files: Mutex::default(),
            ended: OnceLock::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ended.get().is_none()
    }

    /// Why the host is no longer there.
    pub(crate) fn problem(&self) -> String {
        self.ended.get().cloned().unwrap_or_else(|| "its process ended".to_owned())
    }

    /// Enters a call.
    pub(crate) fn enter(
        &self,
        call: u64,
        context: ToolContext,
        has_input: bool,
    ) -> oneshot::Receiver<CallEnd> {
        let (done, end) = oneshot::channel();
        let redacted = context.outputs.redactor.stream(Secrets::All);
        let (printed, files) = (String::new(), Vec::new());
        lock(&self.calls).insert(call, PendingCall { done, context, has_input, redacted, printed, files });
        if !self.is_open() {
            // It ended in between: what ends the others has passed.
            self.end_calls();
        }
        end
    }

    /// Asks for something of a file.
    pub(crate) async fn ask_for_file(&self, file: u64, message: &ToHost) -> Result<FileAnswer, HostError> {
        let (sender, answer) = oneshot::channel();
        lock(&self.files).insert(file, sender);
        if !self.is_open() {
            lock(&self.files).clear();
        }
        self.sender.send(message);
        answer.await.map_err(|_| HostError::Gone(self.problem()))
    }

    /// Takes what the host says.
    pub(crate) fn take(self: &Arc<Self>, message: FromHost) {
        match message {
            FromHost::Ready { .. } => {}
            FromHost::Output { call, text } => {
                if let Some(pending) = lock(&self.calls).get_mut(&call) {
                    let clean = pending.redacted.push(text.as_bytes());
                    pending.push_output(&clean);
                }
            }
            FromHost::Result { call, result } => {
                let pending = lock(&self.calls).remove(&call);
                if let Some(mut pending) = pending {
                    pending.finish();
                    // Who called may no longer wait.
                    let _ = pending.done.send(CallEnd::Result(result, pending.files));
                }
            }
            FromHost::Observe { question, call, path } => {
                let observed = lock(&self.calls).get(&call).map(|pending| pending.context.observed.clone());
                let observation = observed.and_then(|observed| observed(&path)).map(Box::new);
                self.sender.send(&ToHost::Observed { question, observation });
            }
            FromHost::IsHidden { question, call, path } => {
                let hidden = lock(&self.calls).get(&call).map(|pending| pending.context.hidden.clone());
                let is_hidden = hidden.is_none_or(|hidden| hidden.is_some_and(|hidden| hidden(&path)));
                self.sender.send(&ToHost::Hidden { question, is_hidden });
            }
            FromHost::TaskStarted { call, start } => {
                let known = lock(&self.calls).get(&call).map(|one| (one.context.clone(), one.has_input));
                match known {
                    Some((context, has_input)) => {
                        let (pending, id) = (Arc::clone(self), start.task_id.clone());
                        // It waits until the start is on record.
                        tokio::spawn(async move {
                            let named = start.output_file.clone();
                            let task = pending.tasks.announce(start, &context, has_input).await;
                            pending.announced(call, id, named, task);
                        });
                    }
                    None => self.sender.send(&ToHost::Recorded { task: start.task_id, is_recorded: false }),
                }
            }
            FromHost::TaskOutput { task, data } => self.tasks.append(&task, &decode(&data)),
            FromHost::TaskEnded { end } => self.tasks.end(end),
            FromHost::FileOpened { file, size } => self.answer_file(file, FileAnswer::Opened(size)),
            FromHost::FilePiece { file, data } => self.answer_file(file, FileAnswer::Piece(decode(&data))),
            FromHost::FileFailed { file, problem } => self.answer_file(file, FileAnswer::Failed(problem)),
        }
    }

    fn announced(&self, call: u64, id: String, named: String, task: Option<RemoteTask>) {
        let is_recorded = task.is_some();
        if let Some(task) = task {
            if let Some(pending) = lock(&self.calls).get_mut(&call) {
                pending.files.push((named, task.output_file()));
            }
            self.tasks.keep(task);
        }
        self.sender.send(&ToHost::Recorded { task: id, is_recorded });
        if !self.is_open() {
            self.tasks.lose();
        }
    }

    fn answer_file(&self, file: u64, answer: FileAnswer) {
        if let Some(waiting) = lock(&self.files).remove(&file) {
            // Who asked may no longer wait.
            let _ = waiting.send(answer);
        }
    }

    /// The host is gone: nothing waits for it any longer.
    pub(crate) fn close(&self, problem: &str) {
        // The first word counts.
        let _ = self.ended.set(problem.to_owned());
        self.end_calls();
        lock(&self.files).clear();
        self.tasks.lose();
    }

    fn end_calls(&self) {
        let calls: Vec<PendingCall> = lock(&self.calls).drain().map(|(_, call)| call).collect();
        for mut call in calls {
            call.finish();
            let end = CallEnd::Gone { problem: self.problem(), printed: call.printed };
            // As above.
            let _ = call.done.send(end);
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
