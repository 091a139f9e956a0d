//! The record of hooks that ran: who was called, how each run ended, and what they said together. Part of a session's log,
//! so that a session that is resumed follows the same verdict without asking the hooks again.

mod event;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use event::{HookEvent, OnFailure};

/// What hooks may say about an action. The order is the strictness: of several verdicts the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookVerdict {
    /// It may happen.
    Allow,
    /// The hook has no opinion; other layers decide.
    Defer,
    /// A person has to say.
    Ask,
    /// It must not happen. For the end of a turn: the turn continues.
    Deny,
}

/// How the run of one hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookOutcome {
    /// It answered.
    Success,
    /// It failed, or its answer makes no sense.
    Error,
    /// It took too long.
    Timeout,
    /// It continues in the background; how it ends is a record of its own.
    Background,
}

/// The run of one hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRun {
    /// The hook's name.
    pub hook: String,
    /// How it ended.
    pub outcome: HookOutcome,
    /// How long it took.
    pub duration_ms: u64,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The exit code of a hook that is a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what such a hook wrote to its error stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// The hooks of one event ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooked {
    /// The event.
    pub event: String,
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The runs, in the order in which the hooks were registered.
    pub runs: Vec<HookRun>,
    /// The strictest verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<HookVerdict>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hook that gave the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The input to use in place of the call's own. It is judged like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// The hook that gave that input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input_by: Option<String>,
    /// What the model reads besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Set when the turn has to end: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl Hooked {
    /// Who gave the input that counts in place of the call's own, for people.
    #[must_use]
    pub fn changer(&self) -> String {
        let name = self.updated_input_by.as_deref().or(self.by.as_deref());
        name.map_or_else(|| format!("a {} hook", self.event), |name| format!("hook {name}"))
    }
}
