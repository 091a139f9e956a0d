//! Hooks: functions that are called around the steps of a turn and may tighten, change or stop them. This file owns what
//! a hook is and which hooks an event concerns; what they answered is read and joined elsewhere.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

/// How long a callback may take when its matcher names no time.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// One call of a hook.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// The documented input of the event, with `hook_event_name`.
    pub input: Value,
    /// The call of a tool that the event is about.
    pub tool_use_id: Option<String>,
}

/// Answers with the documented output object, or with why it failed. Dropping the future withdraws the call.
pub type HookFunction = Arc<dyn Fn(HookCall) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// What it means when a hook fails, is too slow or answers nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// As if the hook had no opinion.
    Continue,
    /// The call asks; where nobody answers it is denied.
    Ask,
    /// The action is blocked.
    Block,
}

impl OnFailure {
    /// Reads the wire word; `None` for a word that does not exist.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "continue" | "allow" => Some(Self::Continue),
            "ask" => Some(Self::Ask),
            "block" | "deny" => Some(Self::Block),
            _ => None,
        }
    }
}

/// One registered hook.
#[derive(Clone)]
pub struct Hook {
    /// The event, as documented; one that does not exist is never called.
    pub event: String,
    /// Which tools (or which other field of the event) it is for; `None` is all.
    pub matcher: Option<String>,
    /// Names it in records and messages.
    pub name: String,
    /// How long it may take.
    pub timeout: Duration,
    /// What its failure means; `None` takes the event's own rule.
    pub on_failure: Option<OnFailure>,
    /// The hook itself.
    pub function: HookFunction,
}

/// The hooks of a session.
#[derive(Clone, Default)]
pub struct Hooks {
    hooks: Vec<Hook>,
}

impl Hooks {
    /// These hooks, in the order in which they were registered.
    #[must_use]
    pub fn new(hooks: Vec<Hook>) -> Self {
        Self { hooks }
    }

    /// True when some hook listens to the event.
    #[must_use]
    pub fn listens(&self, event: &str) -> bool {
        self.hooks.iter().any(|hook| hook.event == event)
    }
}
