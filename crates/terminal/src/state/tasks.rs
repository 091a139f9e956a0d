//! Background commands and agents: what runs, what each did last, and how it ended.

use std::time::{Duration, Instant};

use qoder_protocol::messages::TaskUsage;

/// How many tasks that have ended are remembered.
const MOST_ENDED: usize = 50;

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// Its id.
    pub(crate) id: String,
    /// What it does.
    pub(crate) description: String,
    /// True for an agent, false for a command.
    pub(crate) is_agent: bool,
    /// When it was first seen.
    pub(crate) since: Instant,
    /// What it used.
    pub(crate) usage: TaskUsage,
    /// The tool that an agent called last.
    pub(crate) last_tool: Option<String>,
    /// The last line it said.
    pub(crate) last_line: Option<String>,
    /// How it ended.
    pub(crate) end: Option<TaskEnd>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskEnd {
    /// `completed`, `failed` or `stopped`.
    pub(crate) status: String,
    /// One line for people.
    pub(crate) summary: String,
    /// Where its output is.
    pub(crate) output_file: String,
}

impl Task {
    /// A task that starts.
    pub(super) fn new(id: &str, description: &str, is_agent: bool, now: Instant) -> Self {
        Self {
            id: id.to_owned(),
            description: description.to_owned(),
            is_agent,
            since: now,
            usage: TaskUsage::default(),
            last_tool: None,
            last_line: None,
            end: None,
        }
    }

    /// How long it runs, or ran.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        let reported = Duration::from_millis(self.usage.duration_ms);
        if self.end.is_some() { reported } else { reported.max(now.saturating_duration_since(self.since)) }
    }
}

/// The tasks of a session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Vec<Task>);

impl Tasks {
    /// All of them.
    pub(crate) fn all(&self) -> &[Task] {
        &self.0
    }

    /// Those that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Task> {
        self.0.iter().filter(|task| task.end.is_none())
    }

    /// The task of an id.
    pub(crate) fn get(&self, id: &str) -> Option<&Task> {
        self.0.iter().find(|task| task.id == id)
    }

    pub(super) fn started(&mut self, task: Task) {
        if self.get(&task.id).is_none() {
            self.0.push(task);
        }
        while self.0.iter().filter(|task| task.end.is_some()).count() > MOST_ENDED {
            let Some(oldest) = self.0.iter().position(|task| task.end.is_some()) else { break };
            self.0.remove(oldest);
        }
    }

    pub(super) fn progressed(
        &mut self,
        id: &str,
        usage: TaskUsage,
        last_tool: Option<&String>,
        last_line: Option<&String>,
    ) {
        let Some(task) = self.0.iter_mut().find(|task| task.id == id) else { return };
        task.usage = usage;
        if last_tool.is_some() {
            task.last_tool = last_tool.cloned();
        }
        if last_line.is_some() {
            task.last_line = last_line.cloned();
        }
    }

    /// A task ended. False when that was known, or the task was not.
    pub(super) fn ended(&mut self, id: &str, end: TaskEnd) -> bool {
        match self.0.iter_mut().find(|task| task.id == id) {
            Some(task) if task.end.is_none() => {
                task.end = Some(end);
                true
            }
            Some(_) | None => false,
        }
    }
}
