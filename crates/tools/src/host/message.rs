//! What is said between a tool host and its caller: one JSON object a line, in both directions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_types::{CallOutcome, Observation, TaskEnded, TaskStarted, ToolResultContent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolSettings;

/// The form of the messages; a host of another one is refused.
pub(crate) const VERSION: u32 = 1;
/// The longest line. Pictures and files that are written are the longest.
pub(crate) const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// The bytes of one piece of a file or an output.
pub(crate) const PIECE: usize = 256 * 1024;

/// How a host runs tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettings {
    bash_default_timeout_ms: u64,
    bash_max_timeout_ms: u64,
    bash_inactivity_seconds: u64,
    respect_gitignore: bool,
}

impl From<&ToolSettings> for HostSettings {
    fn from(settings: &ToolSettings) -> Self {
        Self {
            bash_default_timeout_ms: settings.bash_default_timeout_ms,
            bash_max_timeout_ms: settings.bash_max_timeout_ms,
            bash_inactivity_seconds: settings.bash_inactivity_seconds,
            respect_gitignore: settings.respect_gitignore,
        }
    }
}

impl HostSettings {
    /// The settings of tools that nothing but their environment confines.
    pub(crate) fn tool_settings(&self) -> ToolSettings {
        ToolSettings {
            bash_default_timeout_ms: self.bash_default_timeout_ms,
            bash_max_timeout_ms: self.bash_max_timeout_ms,
            bash_inactivity_seconds: self.bash_inactivity_seconds,
            respect_gitignore: self.respect_gitignore,
            ..ToolSettings::default()
        }
    }
}

/// What a host is given when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Variables that commands have besides those of the host.
    pub variables: BTreeMap<String, String>,
    /// Values that nothing keeps or shows.
    pub secrets: Vec<String>,
    /// The socket of a proxy, which commands reach on their own loopback.
    pub proxy: Option<PathBuf>,
}

/// Of a call's context, what the host cannot know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Context {
    pub(crate) session_id: String,
    pub(crate) tool_use_id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) outputs: PathBuf,
    /// Searches ask about each place whether they have to pass over it.
    pub(crate) hides: bool,
}

/// To the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToHost {
    Start {
        version: u32,
        settings: HostSettings,
        start: Start,
    },
    Call {
        call: u64,
        tool: String,
        input: Value,
        context: Box<Context>,
    },
    Cancel {
        call: u64,
    },
    /// The command of the call continues as a task.
    Move {
        call: u64,
    },
    Observed {
        question: u64,
        observation: Option<Box<Observation>>,
    },
    Hidden {
        question: u64,
        is_hidden: bool,
    },
    Recorded {
        task: String,
        is_recorded: bool,
    },
    StopTask {
        task: String,
    },
    TaskInput {
        task: String,
        data: String,
    },
    OpenFile {
        file: u64,
        path: PathBuf,
    },
    ReadFile {
        file: u64,
    },
    CloseFile {
        file: u64,
    },
}

/// From the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromHost {
    Ready { version: u32 },
    Output { call: u64, text: String },
    Result { call: u64, result: Box<Outcome> },
    Observe { question: u64, call: u64, path: PathBuf },
    IsHidden { question: u64, call: u64, path: PathBuf },
    TaskStarted { call: u64, start: TaskStarted },
    TaskOutput { task: String, data: String },
    TaskEnded { end: TaskEnded },
    FileOpened { file: u64, size: u64 },
    FilePiece { file: u64, data: String },
    FileFailed { file: u64, problem: String },
}

/// What a call came to. What a host may not bring, such as changes of permissions, has no place here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) content: ToolResultContent,
    pub(crate) outcome: CallOutcome,
    pub(crate) structured: Value,
    pub(crate) observations: Vec<Observation>,
    pub(crate) new_cwd: Option<String>,
}
