//! Background tasks as the log knows them: that one was about to start, and how it ended. A start without an end in the
//! log of a process that is gone means that the end is unknown; the next process says so in an end of its own.

mod account;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::AskKind;

pub use account::AgentAccount;

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

/// A call of an agent that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParkedCall {
    /// The agent that made the call.
    pub agent_id: String,
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// What is wanted.
    #[serde(default)]
    pub kind: AskKind,
    /// Why it asks.
    pub reason: String,
}

/// An agent ended its drive because calls of it, or of agents below it, wait for answers. It continues from its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParked {
    /// The task.
    pub task_id: String,
    /// The calls that wait.
    pub calls: Vec<ParkedCall>,
    /// The input of the call that started the agent, for an agent in the background, whose call has its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// By itself, well.
    Completed,
    /// By itself, badly, or it could not be started.
    Failed,
    /// The model, the host or a person stopped it, or the session ended.
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
