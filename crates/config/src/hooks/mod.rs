//! Hooks as they are defined: by the front, in settings, by plugins and by agents. This file owns what a hook is; reading
//! one from a file, what it does when it is called, and which hooks of a folder may run have files of their own.

mod action;
mod condition;
mod entry;
mod files;
mod settings;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

pub use action::{
    Action, AgentHook, Background, CommandHook, HookPlace, HttpHook, PluginFolders, PromptHook, Shell, Traits,
};
pub use condition::{holds, other_name};
pub use files::{HookSource, of_agent, of_main_agent, of_plugin, read, unknown_event};
pub use qoder_types::{HookEvent, OnFailure};
pub use settings::{
    SettingsHooks, Vouched, agent_digests_of_folder, digest_of_folder, hooks_of_folder,
    script_digests_of_folder, unbound_parts_of_folder,
};

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
            .field("action", &self.action.display_text())
            .finish_non_exhaustive()
    }
}
