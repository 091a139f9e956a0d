//! What a tool declares about itself and what a call to it came to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What may be done with a call that started and never finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayClass {
    /// Has no effects: run it again.
    Pure,
    /// Has effects: never run it again; its outcome is unknown.
    Effectful,
    /// Finds what it did before and goes on from there: running it again repeats nothing.
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
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the input object.
    pub input_schema: Value,
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
    /// It started in a process that died; nobody knows how far it came.
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
