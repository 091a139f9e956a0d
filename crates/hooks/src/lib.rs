//! Hooks: functions, programs, requests and models that are called around the steps of a turn and may tighten, change or
//! stop them. This crate owns which hooks an event concerns, calling them, and joining what they answered; how hooks are
//! defined is `qoder-config`'s. It reaches the session through [`HookOutlet`] and [`HookServices`] alone.

mod answers;
mod firing;
mod outlet;
mod watching;

pub use answers::event_fields::{ElicitationWord, EventFields};
pub use answers::join::Joined;
pub use answers::ruling::{failure_of, may_be_answered_by_hook, with_failure, with_hooks};
pub use firing::background::{BackgroundAnswer, Remembered};
pub use firing::judge::{Judge, JudgeError, JudgeTask};
pub use firing::run::{Fired, Firing, Occasion};
pub use firing::set::{HookServices, Hooks, PostJson};
pub use outlet::{HookOutlet, RunReport};
pub use watching::watch::Watched;
pub use watching::workspace::WorkspaceWatch;
