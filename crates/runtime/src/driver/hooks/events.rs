//! Events beside the steps of a turn: settings files that changed, paths that are watched, notifications, background tasks,
//! denials and failures; and what hooks say later than their caller could wait.

use std::collections::BTreeSet;
use std::path::PathBuf;

use qoder_core::next::EndReason;
use qoder_types::record::{InputAdmitted, RecordBody};
use qoder_types::{HookVerdict, Message, ModelFailureClass, RuleSource, StopReason};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::driver::hooks::Waited;
use crate::error::DriveError;
use crate::events::Event;
use crate::session::new_id;
use qoder_config::hooks::{HookEvent, SettingsHooks};
use qoder_hooks::{BackgroundAnswer, EventFields, Occasion, WorkspaceWatch};

/// How often hooks may wake the model before a person says something.
const MOST_WAKES: u32 = 8;

impl Driver<'_> {
    /// Takes over hooks of settings files that changed, unless a hook objects. Reports what is wrong with them.
    pub(in crate::driver) async fn refresh_hooks(&mut self) -> Result<(), DriveError> {
        if self.engine.agent.is_some() {
            return Ok(());
        }
        self.take_all_late()?;
        let hooks = &self.engine.hooks;
        hooks.follow(&self.engine.common.extensions.current());
        if let Some(settings) = hooks.settings() {
            let changed = settings.changed();
            if !changed.is_empty() {
                let mut blocked = false;
                for (source, file) in &changed {
                    let (word, file) = (config_source(*source), file.to_string_lossy());
                    let fields = || json!({ "source": word, "file_path": file });
                    let occasion = self.occasion(HookEvent::ConfigChange, word, fields);
                    blocked |= self.is_blocked(occasion).await?;
                }
                self.take_settings(&settings, blocked)?;
            }
        }
        let problems = self.engine.hooks.take_problems().into_iter();
        for problem in problems.chain(self.engine.common.memory.take_problems()) {
            self.warn(&problem.to_string())?;
        }
        self.refresh_definitions().await
    }

    fn take_settings(&self, settings: &SettingsHooks, blocked: bool) -> Result<(), DriveError> {
        let hooks = &self.engine.hooks;
        if blocked {
            hooks.keep_settings(settings.seen());
            return self.warn("a hook rejected the change of the settings files");
        }
        match settings.renewed() {
            Ok(settings) => {
                hooks.take_settings(settings);
                Ok(())
            }
            Err(error) => {
                hooks.keep_settings(settings.seen());
                self.warn(&format!("{error}; the hooks stay as they were. {}", error.hint()))
            }
        }
    }

    /// Calls hooks; true when one blocks what they are about.
    pub(in crate::driver) async fn is_blocked(
        &mut self,
        occasion: Option<Occasion>,
    ) -> Result<bool, DriveError> {
        match self.wait_for_hooks(occasion).await? {
            Waited::Fired(fired) => {
                let blocked = fired.joined.verdict == Some(HookVerdict::Deny);
                self.session.hook_context.extend(fired.joined.context);
                self.session.append(RecordBody::Hooked(Box::new(fired.record)))?;
                Ok(blocked)
            }
            // An interrupt is met by the next step of the turn.
            Waited::Nobody | Waited::Interrupted => Ok(false),
        }
    }

    pub(in crate::driver) fn warn(&self, text: &str) -> Result<(), DriveError> {
        let text = self.engine.gate.option_names.reword(text);
        self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)
    }

    /// What an observing hook said beyond context.
    pub(in crate::driver) fn remember(
        &mut self,
        event: HookEvent,
        more: EventFields,
    ) -> Result<(), DriveError> {
        self.session.remembered.watched.add(more.watch_paths);
        if let Some(text) = more.initial_user_message {
            self.submit_first(text)?;
        }
        if more.reload_skills {
            self.read_definitions(&[])?;
        }
        if let Some(title) = &more.session_title
            && let Err(error) = self.keep_title(title)
        {
            self.warn(&format!("the title that a hook gave cannot be kept: {error}"))?;
        }
        if more.retry && event == HookEvent::PermissionDenied {
            let text = "[A hook lets you try the denied call once more, if it is still needed.]";
            self.session.hook_context.push(text.to_owned());
        }
        Ok(())
    }

    /// A hook begins the session with a message of its own; what a person sent waits behind it. Where a turn runs already,
    /// the model only reads it.
    fn submit_first(&mut self, text: String) -> Result<(), DriveError> {
        if self.session.state.turn.is_some() {
            self.session.hook_context.push(text);
            return Ok(());
        }
        let input_id = new_id();
        self.session.remembered.own_inputs.insert(input_id.clone());
        self.session.remembered.first_input = Some(input_id.clone());
        self.admit(InputAdmitted::user(input_id, Message::user(text)))
    }

    /// Watches the workspace while a hook wants to know of changed files; costs nothing otherwise. Agents change files of
    /// the main session's workspace, which reports them.
    pub(in crate::driver) async fn watch_workspace(&mut self) -> Result<(), DriveError> {
        if self.engine.agent.is_some() || !self.engine.hooks.listens(HookEvent::FileChanged.as_str()) {
            self.session.remembered.workspace = None;
            return Ok(());
        }
        let policy = self.engine.gate.policy(&self.session.state.permissions);
        let roots = outermost(&policy.workspace().roots);
        if self.session.remembered.workspace.as_ref().is_some_and(|watch| watch.is_of(&roots)) {
            return Ok(());
        }
        let own = policy.workspace().config_dir.clone();
        let started = tokio::task::spawn_blocking(move || WorkspaceWatch::start(roots, own)).await;
        // It fails only when the process ends.
        self.session.remembered.workspace = started.ok();
        self.warn_of_watch_limit()
    }

    fn warn_of_watch_limit(&mut self) -> Result<(), DriveError> {
        let notice = self.session.remembered.workspace.as_mut().and_then(WorkspaceWatch::take_notice);
        notice.map_or(Ok(()), |notice| self.warn(&notice))
    }

    /// What changed in the workspace since the last look.
    async fn workspace_changes(&mut self) -> Vec<(PathBuf, &'static str)> {
        let Some(mut watch) = self.session.remembered.workspace.take() else { return Vec::new() };
        let looked = tokio::task::spawn_blocking(move || {
            let changes = watch.changes();
            (watch, changes)
        });
        let Ok((watch, changes)) = looked.await else { return Vec::new() };
        self.session.remembered.workspace = Some(watch);
        changes
    }

    /// Notices changes of the workspace and of paths that hooks watch.
    pub(in crate::driver) async fn notice_watched(&mut self) -> Result<(), DriveError> {
        let mut changes = self.workspace_changes().await;
        let seen: BTreeSet<PathBuf> = changes.iter().map(|(path, _)| path.clone()).collect();
        let others = self.session.remembered.watched.changes();
        changes.extend(others.into_iter().filter(|(path, _)| !seen.contains(path)));
        self.watch_workspace().await?;
        self.warn_of_watch_limit()?;
        for (path, event) in changes {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let fields = || json!({ "file_path": path.to_string_lossy(), "event": event });
            let occasion = self.occasion(HookEvent::FileChanged, &name, fields);
            self.noticed.extend(occasion);
        }
        Ok(())
    }

    /// A call was denied.
    pub(in crate::driver) fn notice_denial(&mut self, id: &str, tool: &str, input: &Value, reason: &str) {
        let call = self.call_for_hooks(tool, input);
        let fields = || json!({ "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id, "reason": reason });
        let occasion = self.occasion(HookEvent::PermissionDenied, &call.tool, fields);
        let occasion = occasion.map(|occasion| Occasion { tool_use_id: Some(id.to_owned()), ..occasion });
        self.noticed.extend(occasion);
    }

    /// The turn ends because the model failed.
    pub(in crate::driver) async fn report_failure(&mut self, reason: &EndReason) -> Result<(), DriveError> {
        let (kind, message, status) = if let EndReason::ModelFailed { message, status, class } = reason {
            (failure_kind(*class), message.as_str(), *status)
        } else if *reason == EndReason::Completed && self.is_cut_off() {
            ("max_output_tokens", "The output limit cut the reply off, again and again.", None)
        } else {
            return Ok(());
        };
        let fields =
            || json!({ "error_type": kind, "error": message, "error_details": { "status": status } });
        let occasion = self.occasion(HookEvent::StopFailure, kind, fields);
        self.observe(occasion).await
    }

    /// True when the last reply has no end of its own: the limit for output cut it off.
    pub(in crate::driver) fn is_cut_off(&self) -> bool {
        let reply = self.session.state.turn.as_ref().and_then(|turn| turn.reply.as_ref());
        reply.is_some_and(|reply| reply.stop_reason == Some(StopReason::MaxTokens))
    }

    /// A person is needed. Nothing waits for the hooks that notify one.
    pub(crate) fn notification(&self, kind: &str, title: &str, message: &str, details: &Value) {
        let fields =
            || json!({ "notification_type": kind, "message": message, "title": title, "details": details });
        self.aside(self.occasion(HookEvent::Notification, kind, fields));
    }

    /// Calls hooks that only observe, without waiting for them.
    pub(in crate::driver) fn aside(&self, occasion: Option<Occasion>) {
        let Some(occasion) = occasion else { return };
        self.firing(occasion.event).fire_aside(occasion);
    }

    /// Takes what hooks said meanwhile.
    pub(crate) fn take_all_late(&mut self) -> Result<(), DriveError> {
        if self.engine.agent.is_some() {
            return Ok(());
        }
        for BackgroundAnswer { record, context, wake, spent } in self.engine.hooks.take_late() {
            self.record_spent(&spent)?;
            self.session.append(RecordBody::Hooked(Box::new(record)))?;
            self.session.remembered.for_next_turn.extend(context);
            if let Some(text) = wake {
                self.wake(text)?;
            }
        }
        Ok(())
    }

    /// Brings something to the model now: into the turn that runs, or by a turn of its own.
    fn wake(&mut self, text: String) -> Result<(), DriveError> {
        if self.session.remembered.wakes >= MOST_WAKES {
            return self.warn(&format!(
                "hooks have woken the model {MOST_WAKES} times; it sleeps until a prompt comes"
            ));
        }
        self.session.remembered.wakes += 1;
        if self.session.state.turn.is_some() {
            self.session.remembered.wake.push(text);
            return Ok(());
        }
        let input_id = new_id();
        self.session.remembered.own_inputs.insert(input_id.clone());
        self.admit(InputAdmitted::user(input_id, Message::user(text)))
    }

    /// A turn begins: the model reads what hooks said since the last one.
    pub(in crate::driver) fn begin_turn_of_hooks(&mut self, by_hook: bool) {
        if !by_hook {
            self.session.remembered.wakes = 0;
        }
        self.session.remembered.memory_due = true;
        let texts = std::mem::take(&mut self.session.remembered.for_next_turn);
        self.session.hook_context.extend(texts);
    }
}

fn config_source(source: RuleSource) -> &'static str {
    match source {
        RuleSource::UserSettings => "user_settings",
        RuleSource::ProjectSettings => "project_settings",
        RuleSource::LocalSettings => "local_settings",
        RuleSource::FlagSettings | RuleSource::CliArg | RuleSource::Command | RuleSource::Session => {
            "flag_settings"
        }
    }
}

/// What kind of failure it was, in the words of hooks and messages.
pub(in crate::driver) fn failure_kind(class: ModelFailureClass) -> &'static str {
    match class {
        ModelFailureClass::RateLimit => "rate_limit",
        ModelFailureClass::Quota => "billing_error",
        ModelFailureClass::Authentication | ModelFailureClass::Permission => "authentication_failed",
        ModelFailureClass::NotFound
        | ModelFailureClass::ContextTooLong
        | ModelFailureClass::InvalidRequest
        | ModelFailureClass::Configuration => "invalid_request",
        ModelFailureClass::Overloaded | ModelFailureClass::Server => "server_error",
        ModelFailureClass::Network | ModelFailureClass::Timeout | ModelFailureClass::MalformedStream => {
            "unknown"
        }
    }
}

/// The folders that are not inside of another one of them.
fn outermost(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for root in roots {
        if !kept.iter().any(|other| root.starts_with(other)) {
            kept.retain(|other| !other.starts_with(root));
            kept.push(root.clone());
        }
    }
    kept
}
