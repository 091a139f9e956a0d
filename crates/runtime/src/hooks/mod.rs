//! Hooks: functions, programs, requests and models that are called around the steps of a turn and may tighten, change or
//! stop them. This file owns what a hook is and which hooks an event concerns; reading them from files, calling them, and
//! reading and joining what they answered have files of their own beside it.

pub mod action;
mod announce;
mod command;
mod condition;
mod entry;
mod event;
pub mod files;
mod http;
mod join;
mod judge;
mod kernel_watch;
mod late;
mod matcher;
mod more;
mod output;
mod prompt;
mod ruling;
mod run;
mod runners;
pub(crate) mod scripts;
mod set;
mod settings;
mod watch;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

pub use action::{Action, HookPlace, PluginFolders, Traits};
pub use event::HookEvent;
pub use files::HookSource;
pub use judge::{Judge, JudgeTask};
pub(crate) use late::{Late, Remembered};
pub(crate) use more::{ElicitationWord, More};
pub(crate) use ruling::{failure_of, may_be_answered_by_hook, with_failure, with_hooks};
pub(crate) use run::{Fired, Firing, Occasion};
pub use set::{HookServices, Hooks};
pub(crate) use settings::Vouched;
pub use settings::{
    SettingsHooks, agent_digests_of_folder, digest_of_folder, hooks_of_folder, script_digests_of_folder,
    unbound_parts_of_folder,
};
pub(crate) use watch::{Stamp, stamp};
pub(crate) use workspace::WorkspaceWatch;

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

    /// The word for it in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "allow",
            Self::Ask => "ask",
            Self::Block => "deny",
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
    /// What it does.
    pub action: Action,
    /// What hooks of files may have besides.
    pub traits: Traits,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Hook")
            .field("event", &self.event)
            .field("matcher", &self.matcher)
            .field("name", &self.name)
            .field("action", &self.action.told())
            .finish_non_exhaustive()
    }
}
