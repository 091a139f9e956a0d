//! Hooks: functions that are called around the steps of a turn and may tighten, change or stop them. This file owns what
//! a hook is and which hooks an event concerns; what they answered is read and joined in the files beside it.

mod event;
mod join;
mod matcher;
mod output;
mod ruling;
mod run;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use matcher::Matcher;

pub use event::HookEvent;
pub(crate) use ruling::{may_be_answered_by_hook, with_hooks};
pub(crate) use run::{Fired, Firing, Occasion};

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
    hooks: Vec<Registered>,
}

/// A hook with its matcher, which is read when an event first needs it.
#[derive(Clone)]
struct Registered {
    hook: Hook,
    matcher: OnceLock<Matcher>,
}

impl Hooks {
    /// These hooks, in the order in which they were registered.
    #[must_use]
    pub fn new(hooks: Vec<Hook>) -> Self {
        let registered = |hook| Registered { hook, matcher: OnceLock::new() };
        Self { hooks: hooks.into_iter().map(registered).collect() }
    }

    /// True when some hook listens to the event.
    #[must_use]
    pub fn listens(&self, event: &str) -> bool {
        self.hooks.iter().any(|registered| registered.hook.event == event)
    }

    /// The hooks that an event about `subject` concerns, in the order in which they were registered. Matchers that cannot
    /// be used are added to `warnings`, each once.
    fn about(&self, event: HookEvent, subject: &str, warnings: &mut Vec<String>) -> Vec<&Hook> {
        let listening = self.hooks.iter().filter(|registered| registered.hook.event == event.as_str());
        let mut concerned = Vec::new();
        for Registered { hook, matcher } in listening {
            let matcher = matcher.get_or_init(|| {
                let matcher = Matcher::new(hook.matcher.as_deref());
                if let Matcher::Nothing(problem) = &matcher {
                    let text = hook.matcher.as_deref().unwrap_or_default();
                    warnings.push(format!(
                        "the hook {} is never called: its matcher `{text}` is no regular expression ({problem})",
                        hook.name
                    ));
                }
                matcher
            });
            // Of some events there is nothing that a matcher could look at.
            if subject.is_empty() || matcher.matches(subject) {
                concerned.push(hook);
            }
        }
        concerned
    }
}
