//! What a tool declares about itself and what a call to it came to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The names that permission configuration may use; a part of them comes with later versions.
pub const TOOL_NAMES: [&str; 23] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "Agent",
    "AskUserQuestion",
    "NotebookEdit",
    "TaskOutput",
    "TaskStop",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "Config",
    "TodoWrite",
    "ListMcpResources",
    "ReadMcpResource",
    "Mcp",
    "Skill",
    "ImageGen",
];

/// How long a command may run when neither the model nor the settings name a time, in milliseconds.
pub const SHELL_TIMEOUT_MS: u64 = 120_000;
/// How long a command may stay silent when the settings name no time, in seconds.
pub const SHELL_INACTIVITY_SECONDS: u64 = 300;

/// What may be done with a call that started and never finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayClass {
    /// Has no effects: run it again.
    Pure,
    /// Has effects: never run it again; its outcome is unknown.
    Effectful,
    /// Finds what it did before and continues from there: running it again repeats nothing.
    Resumable,
}

/// The MCP hints. Shown and used for scheduling, never for permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Changes nothing.
    #[serde(default)]
    pub read_only_hint: bool,
    /// May destroy something.
    #[serde(default)]
    pub destructive_hint: bool,
    /// Reaches beyond this machine.
    #[serde(default)]
    pub open_world_hint: bool,
}

/// A tool as it is advertised to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name the model calls.
    pub name: String,
    /// What it does, for the model. Shared: a session has several copies of a definition, and a process many sessions.
    pub description: Arc<str>,
    /// JSON Schema of the input object, shared as well.
    pub input_schema: Arc<Value>,
}

impl ToolDefinition {
    /// Says more of the tool.
    pub fn add_description(&mut self, text: &str) {
        self.description = [&*self.description, text].concat().into();
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It ran and succeeded.
    Completed,
    /// It ran and failed, or its input was not acceptable.
    Failed,
    /// A rule, mode or person said no.
    Denied,
    /// It was stopped while it ran.
    Interrupted,
    /// It never started.
    NotRun,
    /// It started in a process that died; how far it came is unknown.
    Unknown,
}

/// What a tool saw of a file: the proof that an edit is based on the file's present content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Absolute real path.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Hex SHA-256 of the content.
    pub sha256: String,
    /// Modification time in nanoseconds since the epoch.
    pub modified_ns: i64,
    /// True when only a part of the file was shown to the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The line range shown, as `(offset, limit)`, for noticing a repeated read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(u64, u64)>,
}

/// What a call would touch. The gate judges exactly this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Reads this file or folder. The path may be relative to the working directory and is not resolved yet.
    Read(PathBuf),
    /// Creates or changes this file.
    Edit(PathBuf),
    /// Runs this shell command.
    Command(String),
    /// Sends a request to this URL.
    Fetch(String),
    /// Starts an agent of this name.
    Agent(String),
    /// Brings the text of a skill to the model.
    Skill {
        /// The skill.
        name: String,
        /// It brings nothing but text: no rules that allow calls.
        only_text: bool,
    },
    /// Asks a server for its resources; nothing there is changed.
    Resource {
        /// The server; none for all of them.
        server: Option<String>,
        /// It asks which there are, and for none of them.
        lists: bool,
    },
    /// Stands for another tool and is judged under its name, so that no rule about that tool is passed by.
    As(String),
    /// Needs a person's answer each time, whatever the rules and the mode: no rule allows it ahead.
    Person,
    /// Touches nothing outside the session.
    Internal,
    /// Something the gate has no words for; it asks.
    Other,
}

/// How the environment of commands differs from that of this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandEnvironment {
    /// Names of variables that commands must not have.
    pub hidden: Vec<String>,
    /// Variables that have another value for them; `None` takes one away.
    pub changed: BTreeMap<String, Option<String>>,
}
