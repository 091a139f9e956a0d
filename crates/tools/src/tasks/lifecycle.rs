//! The life of one background task: announced, put on record, running, ended and reported.
//!
//! A command starts only after the start of its task is on record, so that no process ever runs that the log does not
//! know. The end is reported before a caller that waits for it continues.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use qoder_core::ports::{ProgressSink, Receipt, ToolContext, ToolProgress};
use qoder_core::redact::Redactor;
use qoder_process::TaskFile;
use qoder_process::output::{FILE_BYTES, OutputFile, first_characters};
use qoder_process::shell::Shell;
use qoder_process::tree::exit_code;
use qoder_types::{TaskEnded, TaskParked, TaskStarted, TaskStatus};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::call::refusal::{Refusal, refusal};
use crate::output::capture::pump_to_file;
use crate::tasks::register::{Input, MOST_RUNNING, SessionShared, Task};
use crate::tasks::text::last_lines;

/// How long output is awaited when the shell has ended and something else still holds its pipes.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(250);
/// The longest description of a task.
const DESCRIPTION_CHARACTERS: usize = 200;

/// A task that is on record. It ends as stopped when it is dropped before its time.
pub(crate) struct Recorded {
    task: Arc<Task>,
    file: TaskFile,
    /// Weak: dropping the register is what kills the tasks of a lost session.
    register: Weak<SessionShared>,
    progress: ProgressSink,
    /// Takes secrets out of its output.
    redactor: Redactor,
    begun: Instant,
    report_every: Duration,
    over: bool,
}

/// Announces a task for `command` and waits until it is on record. The refusal is the result for the model.
pub(crate) async fn announce(
    shared: &Arc<SessionShared>,
    command: &str,
    description: Option<&str>,
    context: &ToolContext,
) -> Result<Recorded, Refusal> {
    let task_id = format!("bash_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let description = description.filter(|text| !text.trim().is_empty()).unwrap_or(command);
    let start = TaskStarted {
        task_id,
        tool_use_id: context.tool_use_id.clone(),
        description: description.to_owned(),
        task_type: "local_bash".to_owned(),
        output_file: String::new(),
        command: command.to_owned(),
    };
    announce_as(shared, start, context).await
}

/// Announces a task and waits until it is on record. It gets a file for its output.
pub(crate) async fn announce_as(
    shared: &Arc<SessionShared>,
    mut start: TaskStarted,
    context: &ToolContext,
) -> Result<Recorded, Refusal> {
    let (folder, id) = (&context.outputs.directory, &start.task_id);
    // An agent that continues after its process died is on record with the file that it had.
    let file = if start.is_agent() {
        OutputFile::anew(folder, &format!("agent-{id}.txt"), FILE_BYTES)
    } else {
        OutputFile::create(folder, id, FILE_BYTES)
    };
    let file = file.map_err(|error| refusal(format!("The output file could not be created: {error}.")))?;
    let path = file.path().to_path_buf();
    let file = TaskFile::new(file);
    start.description =
        first_characters(&start.description, DESCRIPTION_CHARACTERS).0.replace(['\n', '\r'], " ");
    start.output_file = path.to_string_lossy().into_owned();
    let Some(task) = shared.enter(start.clone(), file.clone()) else {
        drop(std::fs::remove_file(&path));
        return Err(refusal(format!(
            "{MOST_RUNNING} background tasks are running, which is the most there may be. Stop one with TaskStop first."
        )));
    };
    let mut entered = Entered { shared, task, recorded: false };
    let (receipt, recorded) = Receipt::pair();
    (context.progress)(ToolProgress::TaskStarted { start, receipt });
    if recorded.await.is_err() {
        return Err(refusal("The task could not be put on record and was not started."));
    }
    entered.recorded = true;
    Ok(Recorded {
        task: entered.task.clone(),
        file,
        register: Arc::downgrade(shared),
        progress: context.progress.clone(),
        redactor: context.outputs.redactor.clone(),
        begun: Instant::now(),
        report_every: shared.report_every,
        over: false,
    })
}

/// Takes a task out of the register again that does not come on record, also when the caller no longer waits for that.
struct Entered<'a> {
    shared: &'a SessionShared,
    task: Arc<Task>,
    recorded: bool,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if !self.recorded {
            self.shared.withdraw(&self.task);
            // It is empty; one that cannot be removed does no harm.
            drop(std::fs::remove_file(&self.task.start.output_file));
        }
    }
}

impl Recorded {
    /// How it began.
    pub(crate) fn start(&self) -> &TaskStarted {
        &self.task.start
    }

    /// How often it is reported that it says something.
    pub(crate) fn report_every(&self) -> Duration {
        self.report_every
    }

    /// What takes its output.
    pub(crate) fn file(&self) -> &TaskFile {
        &self.file
    }

    /// What the register knows of it.
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    /// The command could not be started.
    pub(crate) fn fail(mut self, reason: &str) {
        let ending = format!("could not be started: {reason}");
        self.finish(TaskStatus::Failed, &ending, None);
    }

    /// Lets a shell that was started for it run as the task. Both streams come through the one pipe.
    pub(crate) async fn run(self, mut shell: Shell) {
        let mut pumps = JoinSet::new();
        if let Some(stream) = shell.tree.child.stdout.take() {
            pumps.spawn(pump_to_file(stream, self.file.clone(), self.redactor.clone()));
        }
        drop(shell.tree.child.stderr.take());
        let input = shell.tree.child.stdin.take();
        *self.task.input.lock().await = input.map(|pipe| Box::new(pipe) as Input);
        self.take_over(shell, pumps);
    }

    /// Lets a running shell continue as the task; `pumps` write its output to the task's file.
    pub(crate) fn take_over(self, shell: Shell, pumps: JoinSet<()>) {
        self.task.set_leash(shell.tree.leash());
        tokio::spawn(self.tend(shell, pumps));
    }

    async fn tend(mut self, mut shell: Shell, mut pumps: JoinSet<()>) {
        let task = self.task.clone();
        let mut ticks = interval_at(Instant::now() + self.report_every, self.report_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = 0;
        let status = loop {
            tokio::select! {
                status = shell.tree.wait() => break status,
                () = task.stop_wanted() => break shell.tree.terminate().await,
                _ = ticks.tick() => self.report(&mut reported),
            }
        };
        let drained = async { while pumps.join_next().await.is_some() {} };
        drop(timeout(DRAIN_GRACE, drained).await);
        shell.tree.end_leftovers().await;
        pumps.shutdown().await;
        self.conclude(status);
        // A writer holds the lock and has just noticed the end.
        if let Ok(mut input) = task.input.try_lock() {
            input.take();
        }
    }

    /// Reports that the task continues, when it has said something since the last time.
    pub(crate) fn report(&self, reported: &mut u64) {
        let taken = self.file.taken();
        if taken == *reported {
            return;
        }
        *reported = taken;
        let last_line = last_lines(self.file.path(), 1, DESCRIPTION_CHARACTERS);
        (self.progress)(ToolProgress::TaskProgress {
            task_id: self.task.start.task_id.clone(),
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            last_line: Some(last_line).filter(|line| !line.is_empty()),
            total_tokens: 0,
            tool_uses: 0,
            last_tool: None,
        });
    }

    fn conclude(&mut self, status: std::io::Result<ExitStatus>) {
        let code = status.as_ref().ok().map(|status| exit_code(*status));
        let stopped = self.task.shall_stop() || self.register.strong_count() == 0;
        let (status, mut ending) = match status {
            _ if stopped => (TaskStatus::Stopped, "was stopped".to_owned()),
            Ok(status) if status.success() => (TaskStatus::Completed, "completed".to_owned()),
            Ok(status) => (TaskStatus::Failed, format!("failed with exit code {}", exit_code(status))),
            Err(error) => (TaskStatus::Failed, format!("could not be waited for: {error}")),
        };
        if let Some(problem) = self.file.problem() {
            ending.push_str(&format!("; a part of its output was lost: {problem}"));
        }
        self.finish(status, &ending, code);
    }

    fn finish(&mut self, status: TaskStatus, ending: &str, exit_code: Option<i32>) {
        let task_id = self.task.start.task_id.clone();
        let kind = if self.task.start.is_agent() { "Agent" } else { "Background command" };
        let summary = format!("{kind} \"{}\" {ending}", self.task.start.description);
        self.end(TaskEnded { task_id, status, summary, exit_code, account: None });
    }

    /// Leaves the task without an end.
    pub(crate) fn leave(&mut self) {
        self.over = true;
        if let Some(register) = self.register.upgrade() {
            register.withdraw(&self.task);
        }
    }

    /// Leaves the task without an end, and reports what it waits for.
    pub(crate) fn park(&mut self, parked: TaskParked) {
        self.leave();
        (self.progress)(ToolProgress::TaskParked(parked));
    }

    /// Reports the end, and then notifies everything that waits for it.
    pub(crate) fn end(&mut self, end: TaskEnded) {
        self.over = true;
        (self.progress)(ToolProgress::TaskEnded(end.clone()));
        if let Some(register) = self.register.upgrade() {
            register.leave(&self.task, end);
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.over {
            self.finish(TaskStatus::Stopped, "was stopped", None);
        }
    }
}
