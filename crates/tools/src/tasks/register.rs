//! What the tools of one session share: its background tasks, and the commands in the foreground that may become some.
//!
//! A task is a program with everything it started. It stays in the register when it has ended, so that its output can still be asked
//! for. A session that ends stops what runs, and a register that is dropped without that kills it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use qoder_core::ports::CommandEnvironment;
use qoder_core::state::TaskState;
use qoder_types::{TaskEnded, TaskStarted, TaskStatus};
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, watch};

use qoder_process::TaskFile;
use qoder_process::sandbox::Scratch;
use qoder_process::tree::{Leash, TERMINATION_GRACE};

/// The most tasks that run at one time.
pub(crate) const MOST_RUNNING: usize = 32;
/// How long the end of a session waits for its tasks: the two seconds that each group has, as much again for what left
/// its group, and a moment for the rest.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(2_000 * TERMINATION_GRACE.as_secs() + 500);

/// Why a background task cannot be stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// No background task has this ID.
    #[error("there is no background task `{0}`")]
    Unknown(String),
    /// It has ended already.
    #[error("{id} is not running: it ended before ({})", status.as_str())]
    Ended {
        /// The task.
        id: String,
        /// How it ended.
        status: TaskStatus,
    },
}

impl StopError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "task_unknown",
            Self::Ended { .. } => "task_ended",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "use the ID that `task_started` named",
            Self::Ended { .. } => "its output can still be read",
        }
    }
}

/// What the tools of one session share. Goes into `ToolContext::shared`.
#[derive(Debug)]
pub struct SessionShared {
    tasks: Mutex<BTreeMap<String, Arc<Task>>>,
    /// Tasks that an earlier process left without an end and that do not run here.
    left: Mutex<Vec<TaskStarted>>,
    /// By call: what is notified to move.
    foreground: Mutex<HashMap<String, Arc<Notify>>>,
    running: watch::Sender<usize>,
    /// Where terminal multiplexers that commands start keep their sockets.
    multiplexers: OnceLock<Option<Scratch>>,
    /// How often a task that says something is reported.
    pub(crate) report_every: Duration,
}

/// What a task reads.
pub(crate) type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// One background task.
pub(crate) struct Task {
    pub(crate) start: TaskStarted,
    /// What takes its output; `None` for a task of an earlier process.
    pub(crate) file: Option<TaskFile>,
    /// Its standard input, where it has one.
    pub(crate) input: tokio::sync::Mutex<Option<Input>>,
    /// How many bytes of its output the model was shown.
    pub(crate) shown: tokio::sync::Mutex<u64>,
    end: watch::Sender<Option<TaskEnded>>,
    stop: watch::Sender<bool>,
    leash: Mutex<Option<Arc<Leash>>>,
    /// True for a task of an earlier process whose end was not reported to the model.
    owes_result: bool,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Task").field("start", &self.start).finish_non_exhaustive()
    }
}

impl Task {
    fn new(start: TaskStarted, file: Option<TaskFile>, end: Option<TaskEnded>) -> Self {
        Self {
            start,
            file,
            input: tokio::sync::Mutex::default(),
            shown: tokio::sync::Mutex::default(),
            end: watch::Sender::new(end),
            stop: watch::Sender::new(false),
            leash: Mutex::default(),
            owes_result: false,
        }
    }

    /// What kills its processes, once it has some.
    pub(crate) fn set_leash(&self, leash: Arc<Leash>) {
        *lock(&self.leash) = Some(leash);
    }

    /// How it ended, when it has.
    pub(crate) fn end(&self) -> Option<TaskEnded> {
        self.end.borrow().clone()
    }

    /// Completes when it has ended.
    pub(crate) async fn ended(&self) {
        // The sender is ours, so waiting cannot fail.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }

    /// Asks it to stop.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether it was asked to stop.
    pub(crate) fn shall_stop(&self) -> bool {
        *self.stop.borrow()
    }

    /// Completes when it is asked to stop.
    pub(crate) async fn stop_wanted(&self) {
        // As in `ended`.
        let _ = self.stop.subscribe().wait_for(|wanted| *wanted).await;
    }
}

impl SessionShared {
    /// Nothing runs yet. A task that says something is reported every five seconds.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Self::reporting_every(Duration::from_secs(5))
    }

    /// The same with another time between two reports of a task.
    #[must_use]
    pub fn reporting_every(report_every: Duration) -> Arc<Self> {
        Arc::new(Self {
            report_every,
            tasks: Mutex::default(),
            left: Mutex::default(),
            foreground: Mutex::default(),
            running: watch::Sender::new(0),
            multiplexers: OnceLock::new(),
        })
    }

    /// Variables that keep commands from the terminal multiplexers of the person, which would run for them what no call
    /// ends. What the settings say about them counts.
    pub(crate) fn multiplexer_variables(&self, environment: &CommandEnvironment) -> Vec<(String, String)> {
        // Without a folder they find the usual one.
        let made = self.multiplexers.get_or_init(|| Scratch::create().ok());
        let Some(folder) = made.as_ref().map(Scratch::temporary) else { return Vec::new() };
        let names = ["TMUX_TMPDIR", "SCREENDIR"].into_iter();
        let free = names.filter(|name| !environment.changed.contains_key(*name));
        free.map(|name| (name.to_owned(), folder.to_string_lossy().into_owned())).collect()
    }

    /// How many background tasks run.
    #[must_use]
    pub fn running_tasks(&self) -> usize {
        *self.running.borrow()
    }

    /// True when there is such a task, it has ended and nothing waits for its report: one that ended just before its process
    /// did may still owe its call a result.
    #[must_use]
    pub fn is_over(&self, id: &str) -> bool {
        self.task(id).is_some_and(|task| task.end().is_some() && !task.owes_result)
    }

    /// True when the task runs in this process.
    #[must_use]
    pub fn is_running(&self, id: &str) -> bool {
        self.task(id).is_some_and(|task| task.end().is_none())
    }

    /// The agent that an earlier process put on record for this call, which has no result yet. What became of it is for
    /// its log to say: the call must not start another one.
    #[must_use]
    pub fn announced_agent(&self, tool_use_id: &str) -> Option<TaskStarted> {
        let of_call = |start: &TaskStarted| start.is_agent() && start.tool_use_id == tool_use_id;
        let left = lock(&self.left).iter().find(|start| of_call(start)).cloned();
        left.or_else(|| {
            let tasks = lock(&self.tasks);
            let ended = tasks.values().find(|task| task.owes_result && of_call(&task.start));
            ended.map(|task| task.start.clone())
        })
    }

    /// Makes tasks of earlier processes known, so that their output can be asked for. Known ones stay as they are.
    pub fn adopt<'a>(&self, past: impl IntoIterator<Item = &'a TaskState>) {
        let mut tasks = lock(&self.tasks);
        let mut left = lock(&self.left);
        left.clear();
        for task in past {
            let Some(end) = &task.end else {
                if !tasks.contains_key(&task.start.task_id) {
                    left.push(task.start.clone());
                }
                continue;
            };
            let known = tasks.entry(task.start.task_id.clone());
            known.or_insert_with(|| {
                let owes_result = !task.told;
                Arc::new(Task { owes_result, ..Task::new(task.start.clone(), None, Some(end.clone())) })
            });
        }
    }

    /// Makes the foreground command of this call, or of every call, continue as a background task: the call returns at once
    /// with what there was of its output. Returns how many commands were asked.
    pub fn move_to_background(&self, tool_use_id: Option<&str>) -> usize {
        let room = MOST_RUNNING.saturating_sub(self.running_tasks());
        let foreground = lock(&self.foreground);
        let wanted = foreground.iter().filter(|(id, _)| tool_use_id.is_none_or(|wanted| wanted == *id));
        wanted.take(room).map(|(_, moving)| moving.notify_one()).count()
    }

    /// Stops one background task and waits until it has ended.
    ///
    /// # Errors
    /// When there is no such task or it has ended before.
    pub async fn stop(&self, id: &str) -> Result<(), StopError> {
        let task = self.task(id).ok_or_else(|| StopError::Unknown(id.to_owned()))?;
        if let Some(end) = task.end() {
            return Err(StopError::Ended { id: id.to_owned(), status: end.status });
        }
        task.ask_to_stop();
        task.ended().await;
        Ok(())
    }

    /// Stops every background task with all its processes: asks, waits up to two seconds, kills.
    pub async fn shutdown(&self) {
        for task in lock(&self.tasks).values() {
            task.ask_to_stop();
        }
        let mut running = self.running.subscribe();
        // Each task ends its own group; the limit only guards against a process that is stuck inside the kernel.
        drop(tokio::time::timeout(SHUTDOWN_LIMIT, running.wait_for(|count| *count == 0)).await);
    }

    /// Enters a task that is about to start; `None` when as many run as may.
    pub(crate) fn enter(&self, start: TaskStarted, file: TaskFile) -> Option<Arc<Task>> {
        let mut tasks = lock(&self.tasks);
        if self.running_tasks() >= MOST_RUNNING {
            return None;
        }
        let task = Arc::new(Task::new(start, Some(file), None));
        tasks.insert(task.start.task_id.clone(), task.clone());
        self.running.send_modify(|count| *count += 1);
        Some(task)
    }

    /// Takes out a task that never started.
    pub(crate) fn withdraw(&self, task: &Task) {
        lock(&self.tasks).remove(&task.start.task_id);
        self.running.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// A task has ended, and that was reported.
    pub(crate) fn leave(&self, task: &Task, end: TaskEnded) {
        task.end.send_replace(Some(end));
        self.running.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// The task of this id.
    pub(crate) fn task(&self, id: &str) -> Option<Arc<Task>> {
        lock(&self.tasks).get(id).cloned()
    }

    /// All tasks, by id.
    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        lock(&self.tasks).values().cloned().collect()
    }

    /// Enters the foreground command, or agent, of a call until the answer is dropped.
    pub fn enter_foreground(self: &Arc<Self>, tool_use_id: &str) -> Foreground {
        let moving = Arc::new(Notify::new());
        lock(&self.foreground).insert(tool_use_id.to_owned(), moving.clone());
        Foreground { shared: self.clone(), tool_use_id: tool_use_id.to_owned(), moving }
    }
}

impl Drop for SessionShared {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.values().filter(|task| task.end.borrow().is_none()) {
            task.ask_to_stop();
            if let Some(leash) = &*lock(&task.leash) {
                leash.kill();
            }
        }
    }
}

/// A command or an agent in the foreground that may be moved.
#[derive(Debug)]
pub struct Foreground {
    pub(crate) shared: Arc<SessionShared>,
    tool_use_id: String,
    moving: Arc<Notify>,
}

impl Foreground {
    /// Completes when it shall move.
    pub async fn moving(&self) {
        self.moving.notified().await;
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        lock(&self.shared.foreground).remove(&self.tool_use_id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
