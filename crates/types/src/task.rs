//! Background tasks as the log knows them: that one was about to start, and how it ended. A start without an end in the
//! log of a process that is gone means that nobody knows the end; the next process says so in an end of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::AgentAccount;

/// The `task_type` of an agent.
pub const AGENT_TASK: &str = "local_agent";

/// A background task is about to start, or a running command is about to become one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStarted {
    /// Identifies the task.
    pub task_id: String,
    /// The call that starts it.
    pub tool_use_id: String,
    /// What it does, in one line.
    pub description: String,
    /// `local_bash` for a shell command, [`AGENT_TASK`] for an agent.
    pub task_type: String,
    /// The file that takes its output.
    pub output_file: String,
    /// The command; of an agent, which one it is.
    pub command: String,
}

impl TaskStarted {
    /// True for an agent.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.task_type == AGENT_TASK
    }
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// By itself, well.
    Completed,
    /// By itself, badly, or it could not be started.
    Failed,
    /// Somebody stopped it, or the session ended.
    Stopped,
    /// The process that ran it ended first.
    Unknown,
}

impl TaskStatus {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// The word on the stream, which knows three.
    #[must_use]
    pub fn on_the_stream(self) -> &'static str {
        match self {
            Self::Completed | Self::Failed | Self::Stopped => self.as_str(),
            Self::Unknown => Self::Stopped.as_str(),
        }
    }
}

/// A background task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEnded {
    /// The task.
    pub task_id: String,
    /// How.
    pub status: TaskStatus,
    /// One line for people.
    pub summary: String,
    /// The exit code, when the command came to have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it used, when it is an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Box<AgentAccount>>,
}
