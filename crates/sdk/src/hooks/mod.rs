//! Hooks: functions of your program that are called around the steps of a turn and may tighten, change or stop them.
//! This file owns how they are registered; what they are given and what they answer have files of their own.

mod input;
mod output;

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use input::{HookDetail, HookInput};
pub use output::HookJsonOutput;

use crate::callback::{CallbackAnswer, CallbackError, CancellationToken};

/// The events that hooks can be registered for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before a tool call.
    PreToolUse,
    /// After a tool succeeded.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// Before a prompt is taken.
    UserPromptSubmit,
    /// When a session starts.
    SessionStart,
    /// When a session ends.
    SessionEnd,
    /// When the model stops.
    Stop,
    /// When a subagent starts.
    SubagentStart,
    /// When a subagent stops.
    SubagentStop,
    /// Before older messages are replaced by a summary.
    PreCompact,
    /// After that.
    PostCompact,
    /// When the working directory changes.
    CwdChanged,
    /// When an instructions file is loaded.
    InstructionsLoaded,
    /// When a watched file changes.
    FileChanged,
    /// When a call is about to ask.
    PermissionRequest,
    /// When the runtime has something to tell a person.
    Notification,
    /// When an MCP server asks a person for input.
    Elicitation,
    /// After that was answered.
    ElicitationResult,
    /// Another event, by its name.
    #[serde(untagged)]
    Other(String),
}

impl HookEvent {
    /// The documented word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::CwdChanged => "CwdChanged",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::FileChanged => "FileChanged",
            Self::PermissionRequest => "PermissionRequest",
            Self::Notification => "Notification",
            Self::Elicitation => "Elicitation",
            Self::ElicitationResult => "ElicitationResult",
            Self::Other(name) => name,
        }
    }
}

/// What a hook is given besides its input.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// Cancelled when the answer is no longer needed.
    pub signal: CancellationToken,
}

/// A hook: its input, the call it is about, and the context.
pub type HookCallback = Arc<
    dyn Fn(
            HookInput,
            Option<String>,
            HookContext,
        ) -> BoxFuture<'static, Result<HookJsonOutput, CallbackError>>
        + Send
        + Sync,
>;

/// What it means when a hook fails, panics or is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// As if the hook had no opinion.
    Continue,
    /// The call asks; where no one can answer it is denied.
    Ask,
    /// The action is blocked.
    Block,
}

impl OnFailure {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Ask => "ask",
            Self::Block => "block",
        }
    }
}

/// Hooks that share a matcher.
///
/// ```
/// # use qoder_agent_sdk::{HookJsonOutput, HookMatcher};
/// let matcher = HookMatcher::for_tools("Bash").hook(|input, _tool_use_id, _context| async move {
///     let command = input.tool_input().and_then(|input| input["command"].as_str()).unwrap_or_default();
///     if command.contains("rm -rf") {
///         return HookJsonOutput::deny("rm -rf is not allowed");
///     }
///     HookJsonOutput::default()
/// });
/// assert_eq!(matcher.matcher.as_deref(), Some("Bash"));
/// ```
#[derive(Clone, Default)]
pub struct HookMatcher {
    /// A pattern for the tool's name (or the event's own field); `None` is all.
    pub matcher: Option<String>,
    /// The hooks.
    pub hooks: Vec<HookCallback>,
    /// How long each may take, in seconds; `None` is 60.
    pub timeout: Option<u64>,
    /// What a failure means; `None` takes the event's own rule.
    pub on_failure: Option<OnFailure>,
}

impl HookMatcher {
    /// For everything that the event is about.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For tools whose name fits a pattern.
    #[must_use]
    pub fn for_tools(matcher: impl Into<String>) -> Self {
        Self { matcher: Some(matcher.into()), ..Self::default() }
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook<F, W, R>(mut self, hook: F) -> Self
    where
        F: Fn(HookInput, Option<String>, HookContext) -> W + Send + Sync + 'static,
        W: Future<Output = R> + Send + 'static,
        R: CallbackAnswer<HookJsonOutput> + 'static,
    {
        self.hooks.push(Arc::new(move |input, tool_use_id, context| {
            hook(input, tool_use_id, context).map(CallbackAnswer::into_answer).boxed()
        }));
        self
    }

    /// How long each hook may take.
    #[must_use]
    pub fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// What a failure means.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = Some(on_failure);
        self
    }
}

impl std::fmt::Debug for HookMatcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HookMatcher")
            .field("matcher", &self.matcher)
            .field("hooks", &self.hooks.len())
            .field("timeout", &self.timeout)
            .field("on_failure", &self.on_failure)
            .finish()
    }
}
