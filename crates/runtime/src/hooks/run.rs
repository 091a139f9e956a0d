//! Calls the hooks of one event, all at the same time and each within its time, and joins what they said. Needs nothing of
//! the driver, so that hooks can run beside tools. Dropping the future withdraws the calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use qoder_types::wire::{StreamMessage, SystemMessage};
use qoder_types::{HookOutcome, HookRun, HookVerdict, Hooked};
use serde_json::{Map, Value};

use super::join::{Joined, join};
use super::output::{Said, read};
use super::{Hook, HookCall, HookEvent, Hooks, OnFailure};
use crate::events::{Event, Host};
use crate::redact::Redactor;
use crate::session::new_id;

/// Something happened that hooks may want to know.
#[derive(Debug, Clone)]
pub(crate) struct Occasion {
    pub(crate) event: HookEvent,
    /// What matchers look at.
    pub(crate) subject: String,
    /// The call it is about.
    pub(crate) tool_use_id: Option<String>,
    /// The documented input.
    pub(crate) input: Map<String, Value>,
    /// The most time that any hook gets, when there is less than each may take.
    pub(crate) at_most: Option<Duration>,
}

/// What hooks came to.
#[derive(Debug)]
pub(crate) struct Fired {
    pub(crate) joined: Joined,
    /// For the log.
    pub(crate) record: Hooked,
}

/// Calls hooks.
#[derive(Clone)]
pub(crate) struct Firing {
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) redactor: Redactor,
    /// The session that messages name.
    pub(crate) session_id: String,
}

/// How the run of one hook ended, before its output is read.
struct Answered {
    answer: Result<Value, (HookOutcome, String)>,
    elapsed: Duration,
}

impl Firing {
    /// Calls the hooks that the occasion concerns; `None` when there are none. The error is the host's.
    pub(crate) async fn fire(&self, occasion: Occasion) -> std::io::Result<Option<Fired>> {
        let mut warnings = Vec::new();
        let hooks = self.hooks.about(occasion.event, &occasion.subject, &mut warnings);
        let told = warnings.iter().try_for_each(|warning| self.host.emit(Event::Warning(warning)));
        told?;
        if hooks.is_empty() {
            return Ok(None);
        }
        let runs = hooks.iter().map(|hook| self.call(hook, &occasion));
        let answers: Vec<std::io::Result<Answered>> = join_all(runs).await;
        let mut runs = Vec::with_capacity(hooks.len());
        let mut all = Vec::with_capacity(hooks.len());
        for (hook, answered) in hooks.iter().zip(answers) {
            let (run, said) = self.take(occasion.event, hook, &answered?)?;
            runs.push(run);
            all.push((hook.name.as_str(), said));
        }
        let joined = join(all);
        let record = joined.record(occasion.event, occasion.tool_use_id.as_deref(), runs);
        Ok(Some(Fired { joined, record }))
    }

    async fn call(&self, hook: &Hook, occasion: &Occasion) -> std::io::Result<Answered> {
        let announcement = Announcement::new(self, hook, occasion.event)?;
        let begun = Instant::now();
        let call = HookCall {
            input: Value::Object(occasion.input.clone()),
            tool_use_id: occasion.tool_use_id.clone(),
        };
        let limit = occasion.at_most.map_or(hook.timeout, |most| most.min(hook.timeout));
        // The function itself may fail before it gives its future.
        let run = AssertUnwindSafe(async { (hook.function)(call).await }).catch_unwind();
        let answer = match tokio::time::timeout(limit, run).await {
            Ok(Ok(Ok(output))) => Ok(output),
            Ok(Ok(Err(problem))) => Err((HookOutcome::Error, problem)),
            Ok(Err(_)) => Err((HookOutcome::Error, "a fault in its program".to_owned())),
            Err(_) => Err((HookOutcome::Timeout, format!("no answer within {} s", limit.as_secs_f64()))),
        };
        announcement.end(&answer)?;
        Ok(Answered { answer, elapsed: begun.elapsed() })
    }

    /// Reads an answer, tells of what is wrong with it and of what it wants to be told.
    fn take(&self, event: HookEvent, hook: &Hook, answered: &Answered) -> std::io::Result<(HookRun, Said)> {
        let (mut said, outcome, problem) = match &answered.answer {
            Ok(output) => {
                let read = read(event, output);
                let outcome = if read.problem.is_some() { HookOutcome::Error } else { HookOutcome::Success };
                (read.said, outcome, read.problem)
            }
            Err((outcome, problem)) => (Said::default(), *outcome, Some(problem.clone())),
        };
        if let Some(problem) = &problem {
            let effect = failed(event, hook, problem, &mut said);
            let text = format!("the hook {} for {} failed: {problem}; {effect}", hook.name, event.as_str());
            self.host.emit(Event::Warning(&self.redactor.text(&text)))?;
        }
        if let Some(message) = &said.message {
            self.host.emit(Event::Warning(&self.redactor.text(message)))?;
        }
        let duration_ms = u64::try_from(answered.elapsed.as_millis()).unwrap_or(u64::MAX);
        Ok((HookRun { hook: hook.name.clone(), outcome, duration_ms, problem }, said))
    }
}

/// What the failure of a hook means. What it did say still counts when it is stricter.
fn failed(event: HookEvent, hook: &Hook, problem: &str, said: &mut Said) -> &'static str {
    let (verdict, effect) = match hook.on_failure.unwrap_or_else(|| event.on_failure()) {
        OnFailure::Continue => return "it has no effect",
        OnFailure::Ask => (HookVerdict::Ask, "somebody has to be asked"),
        OnFailure::Block => (HookVerdict::Deny, "that counts as a block"),
    };
    if said.verdict < Some(verdict) {
        said.verdict = Some(verdict);
        said.reason = Some(format!("the hook {} failed: {problem}", hook.name));
    }
    effect
}

/// Tells the host of the run of one hook, if it wants to know: that it began, and how it ended, also when it is withdrawn.
struct Announcement<'a> {
    firing: Option<&'a Firing>,
    event: HookEvent,
    hook: &'a str,
    id: String,
}

impl<'a> Announcement<'a> {
    fn new(firing: &'a Firing, hook: &'a Hook, event: HookEvent) -> std::io::Result<Self> {
        let wanted = firing.host.wants_hook_events() || event == HookEvent::SessionStart;
        let announcement = Self { firing: wanted.then_some(firing), event, hook: &hook.name, id: new_id() };
        if let Some(firing) = announcement.firing {
            let uuid = new_id();
            let message = SystemMessage::HookStarted {
                hook_id: &announcement.id,
                hook_name: announcement.hook,
                hook_event: event.as_str(),
                uuid: &uuid,
                session_id: &firing.session_id,
            };
            firing.host.emit(Event::Message(&StreamMessage::System(message)))?;
        }
        Ok(announcement)
    }

    fn end(mut self, answer: &Result<Value, (HookOutcome, String)>) -> std::io::Result<()> {
        let (output, outcome) = match answer {
            Ok(output) => (output.to_string(), "success"),
            Err((_, problem)) => (problem.clone(), "error"),
        };
        self.respond(&output, outcome)
    }

    fn respond(&mut self, output: &str, outcome: &str) -> std::io::Result<()> {
        let Some(firing) = self.firing.take() else { return Ok(()) };
        let uuid = new_id();
        let output = firing.redactor.text(output);
        let message = SystemMessage::HookResponse {
            hook_id: &self.id,
            hook_name: self.hook,
            hook_event: self.event.as_str(),
            output: &output,
            stdout: "",
            stderr: "",
            outcome,
            uuid: &uuid,
            session_id: &firing.session_id,
        };
        firing.host.emit(Event::Message(&StreamMessage::System(message)))
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        // A host that is gone is met again by the next message of the turn.
        let _ = self.respond("", "cancelled");
    }
}
