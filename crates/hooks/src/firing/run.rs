//! Calls the hooks of one event, all at the same time and each within its time, and joins what they said. Needs nothing of
//! the driver, so that hooks can run beside tools. Dropping the future withdraws the calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use qoder_core::ports::{Spent, ToolContext};
use qoder_types::{HookOutcome, HookRun, HookVerdict, Hooked};
use serde_json::{Map, Value};

use crate::answers::join::{Joined, join};
use crate::answers::output::{Said, bounded, read};
use crate::firing::announce::{Announcement, Response};
use crate::firing::command::{self, Program, Ran, tail};
use crate::firing::set::Hooks;
use crate::firing::set::Registered;
use crate::firing::{http, judge, prompt};
use crate::outlet::HookOutlet;
use qoder_config::hooks::{Action, Background};
use qoder_config::hooks::{Hook, HookCall, HookEvent, OnFailure};
use qoder_core::redact::Redactor;

/// Something happened that hooks may want to know.
#[derive(Debug, Clone)]
pub struct Occasion {
    /// The event.
    pub event: HookEvent,
    /// What matchers look at.
    pub subject: String,
    /// The call it is about.
    pub tool_use_id: Option<String>,
    /// The documented input.
    pub input: Map<String, Value>,
    /// The most time that any hook gets, when there is less than each may take.
    pub at_most: Option<Duration>,
}

/// What hooks came to.
#[derive(Debug)]
pub struct Fired {
    /// What they said together.
    pub joined: Joined,
    /// For the log.
    pub record: Hooked,
}

/// Calls hooks.
#[derive(Clone)]
pub struct Firing {
    /// The hooks.
    pub hooks: Arc<Hooks>,
    /// Where they are reported.
    pub outlet: Arc<dyn HookOutlet>,
    /// Takes secrets out of what they say.
    pub redactor: Redactor,
    /// The session on whose account hooks ask models.
    pub session_id: String,
    /// What models cost that hooks ask.
    pub spent: Spent,
    /// What an agent is given that judges for a hook.
    pub context: Option<Arc<ToolContext>>,
}

/// How the run of one hook ended, before its output is read.
pub(crate) struct Answered {
    pub(crate) answer: Result<Value, (HookOutcome, String)>,
    pub(crate) elapsed: Duration,
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What running a hook came to.
enum Came {
    Answered(Answered),
    /// It continues in the background with the given time.
    GoesOn(BoxFuture<'static, Program>, Option<Duration>),
}

impl Answered {
    fn new(answer: Result<Value, (HookOutcome, String)>) -> Self {
        Self {
            answer,
            elapsed: Duration::ZERO,
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    /// Nothing is known yet.
    fn later() -> Self {
        Self::new(Err((HookOutcome::Background, String::new())))
    }
}

impl From<Program> for Answered {
    fn from(program: Program) -> Self {
        let Program { output, exit_code, stdout, stderr } = program;
        let answer = output.map_err(|problem| (HookOutcome::Error, problem));
        Self { exit_code, stdout, stderr, ..Self::new(answer) }
    }
}

impl Firing {
    /// Calls the hooks that the occasion concerns; `None` when there are none. The error is the host's.
    ///
    /// # Errors
    /// When no host can take what is reported.
    pub async fn fire(&self, occasion: Occasion) -> std::io::Result<Option<Fired>> {
        let mut warnings = Vec::new();
        let hooks = self.hooks.about(&occasion, &mut warnings);
        let told = warnings.iter().try_for_each(|warning| self.outlet.warn(warning));
        told?;
        if hooks.is_empty() {
            return Ok(None);
        }
        let runs = hooks.iter().map(|hook| self.call(hook, &occasion));
        let answers: Vec<std::io::Result<Answered>> = join_all(runs).await;
        let mut runs = Vec::with_capacity(hooks.len());
        let mut all = Vec::with_capacity(hooks.len());
        for (one, answered) in hooks.iter().zip(answers) {
            // One that runs in the background cannot block anything, not even by finding no place to run.
            let waited = one.hook.traits.background == Background::No;
            let (run, said) = self.take(occasion.event, &one.hook, &answered?, waited)?;
            runs.push(run);
            all.push((one.hook.name.as_str(), said));
        }
        let joined = join(all);
        let record = joined.record(occasion.event, occasion.tool_use_id.as_deref(), runs);
        Ok(Some(Fired { joined, record }))
    }

    async fn call(&self, one: &Arc<Registered>, occasion: &Occasion) -> std::io::Result<Answered> {
        if one.hook.traits.background != Background::No {
            let (firing, hook, beside) = (self.clone(), Arc::clone(one), occasion.clone());
            let begun = self.hooks.run_beside(false, async move {
                // A host that is gone is met again by the turn.
                if let Ok(answered) = firing.run_whole(&hook, &beside).await {
                    firing.deliver(beside.event, &hook.hook, &answered);
                }
            });
            return Ok(match begun {
                true => Answered::later(),
                false => Answered::new(Err((
                    HookOutcome::Error,
                    "too many hooks run there already, so it was not started".to_owned(),
                ))),
            });
        }
        let announcement = Announcement::new(self, &one.hook.name, occasion.event)?;
        self.emit_status(&one.hook)?;
        let begun = Instant::now();
        let limit = occasion.at_most.map_or(one.hook.timeout, |most| most.min(one.hook.timeout));
        let came = AssertUnwindSafe(self.run(one, occasion, &announcement)).catch_unwind();
        let mut answered = match tokio::time::timeout(limit, came).await {
            Ok(Ok(Came::Answered(answered))) => answered,
            Ok(Ok(Came::GoesOn(rest, wanted))) => {
                self.go_on(one, occasion.event, rest, wanted.unwrap_or(one.hook.timeout), announcement);
                return Ok(Answered::later());
            }
            Ok(Err(_)) => Answered::new(Err((HookOutcome::Error, "a fault in its program".to_owned()))),
            Err(_) => Answered::new(Err(too_slow(limit))),
        };
        answered.elapsed = begun.elapsed();
        announce_end(announcement, &answered)?;
        Ok(answered)
    }

    /// The whole run of a hook in the background.
    async fn run_whole(&self, one: &Arc<Registered>, occasion: &Occasion) -> std::io::Result<Answered> {
        let announcement = Announcement::new(self, &one.hook.name, occasion.event)?;
        self.emit_status(&one.hook)?;
        let begun = Instant::now();
        let whole = async {
            match self.run(one, occasion, &announcement).await {
                Came::Answered(answered) => answered,
                Came::GoesOn(rest, _) => rest.await.into(),
            }
        };
        let whole = tokio::time::timeout(one.hook.timeout, AssertUnwindSafe(whole).catch_unwind());
        let mut answered = match whole.await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Answered::new(Err((HookOutcome::Error, "a fault in its program".to_owned()))),
            Err(_) => Answered::new(Err(too_slow(one.hook.timeout))),
        };
        answered.elapsed = begun.elapsed();
        announce_end(announcement, &answered)?;
        Ok(answered)
    }

    /// A program said that it continues in the background.
    fn go_on(
        &self,
        one: &Arc<Registered>,
        event: HookEvent,
        rest: BoxFuture<'static, Program>,
        limit: Duration,
        announcement: Announcement,
    ) {
        let (firing, hook, begun) = (self.clone(), Arc::clone(one), Instant::now());
        // When too much runs already it is dropped, which ends it; that is reported as a withdrawal.
        self.hooks.run_beside(false, async move {
            let mut answered = match tokio::time::timeout(limit, rest).await {
                Ok(program) => Answered::from(program),
                Err(_) => Answered::new(Err(too_slow(limit))),
            };
            answered.elapsed = begun.elapsed();
            if announce_end(announcement, &answered).is_ok() {
                firing.deliver(event, &hook.hook, &answered);
            }
        });
    }

    async fn run(&self, one: &Registered, occasion: &Occasion, announcement: &Announcement) -> Came {
        let failed = |problem: String| Came::Answered(Answered::new(Err((HookOutcome::Error, problem))));
        if let Some(problem) = one.matcher_problem() {
            return failed(problem);
        }
        let input = Value::Object(occasion.input.clone());
        let services = self.hooks.services().ok_or("hooks of files cannot run here".to_owned());
        let output = match (&one.hook.action, services) {
            (Action::Function(function), _) => {
                let call = HookCall { input, tool_use_id: occasion.tool_use_id.clone() };
                function(call).await
            }
            (Action::Broken(problem), _) => Err(problem.clone()),
            (Action::Command(_) | Action::Http(_) | Action::Prompt(_) | Action::Agent(_), Err(problem)) => {
                Err(problem)
            }
            (Action::Command(hook), Ok(services)) => {
                let directory = command::directory(&input, services);
                if let Some(problem) = self.hooks.unvouched(&one.hook, hook, &directory) {
                    return failed(problem);
                }
                let run = command::run(hook, occasion.event, &input, services, announcement.listener());
                return match run.await {
                    Ran::Ended(program) => Came::Answered(program.into()),
                    Ran::Detached(rest, wanted) => Came::GoesOn(rest, wanted),
                };
            }
            (Action::Http(hook), Ok(services)) => {
                http::post(hook, occasion.event, &input, services.variables_for(&one.hook), &services.post)
                    .await
            }
            (Action::Prompt(hook), Ok(services)) => {
                prompt::ask(hook, &input, services, &self.session_id, &self.spent).await
            }
            (Action::Agent(hook), Ok(services)) => {
                let judge = services.judge.get().and_then(std::sync::Weak::upgrade);
                match (judge, &self.context) {
                    (Some(judge), Some(context)) => {
                        let answer = judge.judge(judge::task(hook, &input, context)).await;
                        answer.map_err(|error| error.to_string()).and_then(|answer| judge::output(&answer))
                    }
                    _ => Err("this session cannot run agents".to_owned()),
                }
            }
        };
        Came::Answered(Answered::new(output.map_err(|problem| (HookOutcome::Error, problem))))
    }

    fn emit_status(&self, hook: &Hook) -> std::io::Result<()> {
        match &hook.traits.status_message {
            Some(message) => self.outlet.warn(message),
            None => Ok(()),
        }
    }

    /// Reads an answer, and reports what is wrong with it and the message that it has for people. The failure of a hook that
    /// no caller `waited` for has no effect.
    pub(crate) fn take(
        &self,
        event: HookEvent,
        hook: &Hook,
        answered: &Answered,
        waited: bool,
    ) -> std::io::Result<(HookRun, Said)> {
        let (mut said, outcome, problem) = match &answered.answer {
            Ok(output) => {
                let read = read(event, output);
                let outcome = if read.problem.is_some() { HookOutcome::Error } else { HookOutcome::Success };
                (read.said, outcome, read.problem)
            }
            Err((HookOutcome::Background, _)) => (Said::default(), HookOutcome::Background, None),
            Err((outcome, problem)) => (Said::default(), *outcome, Some(problem.clone())),
        };
        if let Some(problem) = &problem {
            let effect = match waited {
                true => failed(event, hook, problem, &mut said),
                false => "it belongs to the background and has no effect",
            };
            let text = format!("the hook {} for {} failed: {problem}; {effect}", hook.name, event.as_str());
            self.outlet.warn(&self.redactor.text(&text))?;
        }
        if let Some(message) = &said.message {
            self.outlet.warn(&self.redactor.text(message))?;
        }
        // In the front, hooks of these events only observe.
        let observes = matches!(event, HookEvent::Elicitation | HookEvent::ElicitationResult);
        if observes && matches!(hook.action, Action::Function(_)) {
            said.more.elicitation = None;
            said.verdict = None;
        }
        let stderr = Some(tail(&answered.stderr)).filter(|text| !text.is_empty());
        Ok((
            HookRun {
                hook: hook.name.clone(),
                outcome,
                duration_ms: u64::try_from(answered.elapsed.as_millis()).unwrap_or(u64::MAX),
                problem,
                exit_code: answered.exit_code,
                stderr,
            },
            said,
        ))
    }
}

fn too_slow(limit: Duration) -> (HookOutcome, String) {
    (HookOutcome::Timeout, format!("no answer within {} s", limit.as_secs_f64()))
}

fn announce_end(announcement: Announcement, answered: &Answered) -> std::io::Result<()> {
    let is_suppressed =
        matches!(&answered.answer, Ok(output) if output.get("suppressOutput") == Some(&Value::Bool(true)));
    let (output, outcome) = match &answered.answer {
        Ok(output) => (output.to_string(), "success"),
        Err((_, problem)) => (problem.clone(), "error"),
    };
    let stdout = if is_suppressed { String::new() } else { bounded(&answered.stdout) };
    announcement.end(&Response {
        output: &bounded(&output),
        stdout: &stdout,
        stderr: &bounded(&answered.stderr),
        exit_code: answered.exit_code,
        outcome,
    })
}

/// What the failure of a hook means. What it did say still counts when it is stricter.
fn failed(event: HookEvent, hook: &Hook, problem: &str, said: &mut Said) -> &'static str {
    let (verdict, effect) = match hook.on_failure.unwrap_or_else(|| event.on_failure()) {
        OnFailure::Continue => return "it has no effect",
        OnFailure::Ask => (HookVerdict::Ask, "a person has to be asked"),
        OnFailure::Block => (HookVerdict::Deny, "that counts as a block"),
    };
    if said.verdict < Some(verdict) {
        said.verdict = Some(verdict);
        said.reason = Some(format!("the {} hook {} failed: {problem}", event.as_str(), hook.name));
    }
    effect
}
