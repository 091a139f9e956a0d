//! Hooks around the turn: what they get, waiting for them, and what follows for prompts, for the end of a turn and for
//! the events that are only observed. Hooks around calls have a file of their own.

pub(super) mod calls;
mod definitions;
pub(super) mod events;
mod worktrees;

use std::sync::Arc;
use std::time::Duration;

use qoder_core::next::{EndReason, turn_end};
use qoder_core::ports::{Model, Spent};
use qoder_types::record::{
    InputAdmitted, InputWithdrawn, PermissionsChanged, RecordBody, TurnEnded, UserOrigin,
};
use qoder_types::{Actor, HookVerdict, Message, Usage};
use serde_json::{Map, Value, json};

use crate::driver::Driver;
use crate::driver::commands::Brought;
use crate::error::DriveError;
use crate::events::Event;
use crate::events::hook_outlet::SessionHookOutlet;
use qoder_config::hooks::HookEvent;
use qoder_hooks::{Fired, Firing, Occasion};

/// How often hooks may keep one turn from ending.
const MOST_STOP_BLOCKS: u32 = 8;
/// How long hooks may hold up the end of a session, or of a call that a person interrupted.
pub(in crate::driver) const PARTING_TIME: Duration = Duration::from_secs(5);

/// What waiting for hooks came to.
pub(in crate::driver) enum Waited {
    /// No hook is concerned.
    Nobody,
    /// They answered.
    Fired(Box<Fired>),
    /// A person interrupted; the hooks were withdrawn.
    Interrupted,
}

impl Driver<'_> {
    /// Calls hooks of an event.
    pub(in crate::driver) fn firing(&self, event: HookEvent) -> Firing {
        let agent = self.engine.agent.as_ref();
        let context = self.engine.hooks.has_agents(event).then(|| Arc::new(self.context_of_hook()));
        let session_id = agent.map_or_else(|| self.session.id.clone(), |agent| agent.session_id.clone());
        let outlet = SessionHookOutlet { outlet: self.engine.outlet.clone(), session_id: session_id.clone() };
        Firing {
            spent: context.as_ref().map_or_else(Spent::default, |context| Arc::clone(&context.spent)),
            context,
            hooks: self.engine.hooks.clone(),
            outlet: Arc::new(outlet),
            redactor: self.session.redactor().clone(),
            session_id,
        }
    }

    /// Something for hooks of `event`, when some listen: the fields that every event has, and `fields`.
    pub(in crate::driver) fn occasion(
        &self,
        event: HookEvent,
        subject: &str,
        fields: impl FnOnce() -> Value,
    ) -> Option<Occasion> {
        if !self.engine.hooks.listens(event.as_str()) {
            return None;
        }
        let own_log = self.session.log_path().map(|log| log.to_string_lossy().into_owned());
        let mut input = Map::new();
        let (session_id, transcript) = match &self.engine.agent {
            Some(agent) => (agent.session_id.clone(), agent.transcript_path.clone()),
            None => (self.session.id.clone(), own_log.clone().unwrap_or_default()),
        };
        let mode = self.engine.gate.mode(&self.session.state.permissions);
        input.insert("hook_event_name".to_owned(), json!(event.as_str()));
        input.insert("session_id".to_owned(), json!(session_id));
        input.insert("transcript_path".to_owned(), json!(transcript));
        input.insert("cwd".to_owned(), json!(self.session.state.cwd));
        input.insert("permission_mode".to_owned(), json!(mode.as_str()));
        if let Some(agent) = &self.engine.agent {
            input.insert("agent_id".to_owned(), json!(agent.agent_id));
            input.insert("agent_type".to_owned(), json!(agent.agent_type));
            if event == HookEvent::SubagentStop {
                input.insert("agent_transcript_path".to_owned(), json!(own_log.unwrap_or_default()));
            }
        }
        if let Value::Object(fields) = fields() {
            input.extend(fields);
        }
        Some(Occasion { event, subject: subject.to_owned(), tool_use_id: None, input, at_most: None })
    }

    /// Waits for hooks; what arrives meanwhile is taken.
    pub(in crate::driver) async fn wait_for_hooks(
        &mut self,
        occasion: Option<Occasion>,
    ) -> Result<Waited, DriveError> {
        let Some(occasion) = occasion else { return Ok(Waited::Nobody) };
        let firing = self.firing(occasion.event);
        let spent = Arc::clone(&firing.spent);
        let waited = self.wait_for(firing, occasion).await;
        self.record_spent(&spent)?;
        waited
    }

    async fn wait_for(&mut self, firing: Firing, occasion: Occasion) -> Result<Waited, DriveError> {
        let mut fired = Box::pin(firing.fire(occasion));
        let mut cancelled = self.stopping.wanted();
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(Waited::Interrupted),
                fired = &mut fired => {
                    let fired = fired.map_err(DriveError::Output)?;
                    return Ok(fired.map_or(Waited::Nobody, |fired| Waited::Fired(Box::new(fired))));
                }
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        }
    }

    /// Calls hooks that only observe. What they add reaches the model before its next reply.
    pub(in crate::driver) async fn observe(&mut self, occasion: Option<Occasion>) -> Result<(), DriveError> {
        let event = occasion.as_ref().map(|occasion| occasion.event);
        match self.wait_for_hooks(occasion).await? {
            Waited::Fired(fired) => {
                self.session.hook_context.extend(fired.joined.context);
                self.session.append(RecordBody::Hooked(Box::new(fired.record)))?;
                if let Some(event) = event {
                    self.remember(event, fired.joined.more)?;
                }
            }
            // An interrupt is met by the next step of the turn.
            Waited::Nobody | Waited::Interrupted => {}
        }
        Ok(())
    }

    /// Calls the hooks of what was noticed during a step.
    pub(in crate::driver) async fn observe_noticed(&mut self) -> Result<(), DriveError> {
        if self.engine.hooks.listens(HookEvent::FileChanged.as_str()) {
            Box::pin(self.notice_watched()).await?;
        }
        for occasion in std::mem::take(&mut self.noticed) {
            self.observe(Some(occasion)).await?;
        }
        Ok(())
    }

    /// This process begins with the session, or with the task of an agent.
    pub(in crate::driver) async fn begin(&mut self) -> Result<(), DriveError> {
        self.session.has_begun = true;
        self.begin_memory();
        let occasion = match &self.engine.agent {
            Some(agent) => self.occasion(HookEvent::SubagentStart, &agent.agent_type, || json!({})),
            None => {
                let setup = self.occasion(HookEvent::Setup, "init", || json!({ "trigger": "init" }));
                self.observe(setup.filter(|_| self.session.is_first_of_folder())).await?;
                self.session_start(if self.session.is_resumed { "resume" } else { "startup" })
            }
        };
        self.observe(occasion).await?;
        self.report_instructions("session_start").await
    }

    /// True when hooks are called for the session before anything is asked in it: one may begin it by itself.
    pub(crate) fn wants_to_begin(&self) -> bool {
        self.engine.agent.is_none() && self.engine.hooks.listens(HookEvent::SessionStart.as_str())
    }

    /// Begins with the session alone; what follows from that is driven like everything else.
    pub(crate) async fn begin_early(&mut self) -> Result<(), DriveError> {
        self.refresh_hooks().await?;
        self.begin().await
    }

    pub(in crate::driver) fn session_start(&self, source: &str) -> Option<Occasion> {
        self.occasion(
            HookEvent::SessionStart,
            source,
            || json!({ "source": source, "model": self.engine.model.facts().name }),
        )
    }

    /// Ends this process's part of the session: hooks are called, and what still runs in the background is stopped with its
    /// end on record. For the main session; an agent ends with its turn.
    ///
    /// # Errors
    /// When the log or the host takes nothing more.
    pub async fn end_session(&mut self) -> Result<(), DriveError> {
        let begun = std::mem::take(&mut self.session.has_begun);
        let told = if begun { self.report_session_end("other").await } else { Ok(()) };
        // Whatever became of the hooks, no task may outlive the session.
        let ended = self.end_tasks().await;
        self.engine.hooks.end(PARTING_TIME).await;
        let late = self.take_all_late();
        self.engine.toolbox.servers().close().await;
        ended.and(told).and(late)
    }

    pub(in crate::driver) async fn report_session_end(&mut self, reason: &str) -> Result<(), DriveError> {
        let occasion = self.occasion(HookEvent::SessionEnd, reason, || json!({ "reason": reason }));
        let Some(occasion) = occasion else { return Ok(()) };
        self.observe(Some(Occasion { at_most: Some(PARTING_TIME), ..occasion })).await
    }

    /// Gives the model the context of hooks. False when there is nothing.
    pub(in crate::driver) fn bring_hook_context(&mut self) -> Result<bool, DriveError> {
        let texts = std::mem::take(&mut self.session.hook_context);
        if texts.is_empty() {
            return Ok(false);
        }
        self.notice(&texts.join("\n\n"))?;
        Ok(true)
    }

    /// Starts the turn of the oldest waiting input, if the hooks let it. Answers with the turn's end when they do not.
    pub(in crate::driver) async fn promote(&mut self) -> Result<Option<TurnEnded>, DriveError> {
        self.refresh_hooks().await?;
        let Some(input) = self.next_input() else { return Ok(None) };
        // What hooks say themselves is no prompt of a person.
        let by_hook = self.session.remembered.own_inputs.remove(&input.input_id);
        let prompt = || json!({ "prompt": input.message.content.to_text() });
        let occasion = if by_hook { None } else { self.occasion(HookEvent::UserPromptSubmit, "", prompt) };
        self.begin_turn_of_hooks(by_hook);
        self.promoting = true;
        let waited = self.wait_for_hooks(occasion).await;
        self.promoting = false;
        let waited = waited?;
        // The sender may have withdrawn it meanwhile.
        if !self.session.state.inputs.iter().any(|waiting| waiting.input_id == input.input_id) {
            return Ok(None);
        }
        let fired = match waited {
            Waited::Nobody => None,
            Waited::Fired(fired) => Some(*fired),
            // What no hook has seen does not reach the model.
            Waited::Interrupted if self.ended_by().is_some() => return Ok(None),
            Waited::Interrupted => {
                return self.refuse_prompt(input, "interrupt", Vec::new(), &EndReason::AbortedStreaming);
            }
        };
        let Some(Fired { joined, record }) = fired else {
            return self.open_expanded(input, Vec::new(), None).await;
        };
        let blocked = (joined.verdict == Some(HookVerdict::Deny)).then(|| {
            joined.reason.clone().unwrap_or_else(|| "A hook did not let the prompt through.".to_owned())
        });
        let refused = joined.stop.clone().or(blocked);
        let record = RecordBody::Hooked(Box::new(record));
        if let Some(reason) = refused {
            let by = format!("hook {}", joined.by.as_deref().unwrap_or("UserPromptSubmit"));
            return self.refuse_prompt(input, &by, vec![record], &EndReason::HookStopped(reason));
        }
        self.remember(HookEvent::UserPromptSubmit, joined.more)?;
        self.open_expanded(input, vec![record], joined.context).await
    }

    /// The input whose turn it is: what a hook began the session with, else the oldest.
    fn next_input(&mut self) -> Option<InputAdmitted> {
        let inputs = &self.session.state.inputs;
        let first = self.session.remembered.first_input.take();
        let first = first.and_then(|id| inputs.iter().find(|input| input.input_id == id));
        first.or_else(|| inputs.front()).cloned()
    }

    pub(in crate::driver) fn open_turn(
        &mut self,
        input: InputAdmitted,
        mut bodies: Vec<RecordBody>,
        context: Option<String>,
        brought: Brought,
    ) -> Result<(), DriveError> {
        let told = self.system_notices();
        let mut entry = self.session.user_entry(UserOrigin::Prompt, input.message);
        if let Some(last) = told.last() {
            entry.parent_uuid = Some(last.uuid.clone());
        }
        bodies.extend(told.into_iter().map(|notice| RecordBody::User(Box::new(notice))));
        entry.uuid.clone_from(&input.input_id);
        entry.input_id = Some(input.input_id);
        (entry.typed, entry.turn_rules) = (brought.typed, brought.turn_rules);
        entry.turn_model = brought.model;
        let place = bodies.len();
        let uuid = entry.uuid.clone();
        bodies.push(RecordBody::User(Box::new(entry)));
        if let Some(context) = context {
            let mut notice = self.session.user_entry(UserOrigin::Notice, Message::user(context));
            notice.parent_uuid = Some(uuid);
            bodies.push(RecordBody::User(Box::new(notice)));
        }
        if !brought.updates.is_empty() {
            let (updates, by) = (brought.updates.clone(), Actor::Named("command".to_owned()));
            bodies.push(RecordBody::PermissionsChanged(PermissionsChanged { updates, by }));
        }
        // What hooks said about a prompt and the prompt itself are kept together or not at all.
        let mut records = self.session.append_all(bodies)?;
        self.took_updates(&brought.updates)?;
        self.engine.common.spending.begin_turn(&Usage::default());
        self.clock.restart();
        self.begin_clock();
        self.echo = self.engine.front.replay_user_messages.then(|| records.remove(place));
        Ok(())
    }

    /// The turn of a prompt that does not reach the model is over at once.
    pub(in crate::driver) fn refuse_prompt(
        &mut self,
        input: InputAdmitted,
        by: &str,
        bodies: Vec<RecordBody>,
        reason: &EndReason,
    ) -> Result<Option<TurnEnded>, DriveError> {
        let end = turn_end(&self.session.state, &self.limits, reason, 0);
        self.refuse_with(input, by, bodies, end)
    }

    pub(in crate::driver) fn refuse_with(
        &mut self,
        input: InputAdmitted,
        by: &str,
        mut bodies: Vec<RecordBody>,
        end: TurnEnded,
    ) -> Result<Option<TurnEnded>, DriveError> {
        let withdrawn = InputWithdrawn { input_id: input.input_id, by: by.into() };
        bodies.push(RecordBody::InputWithdrawn(withdrawn));
        bodies.push(RecordBody::TurnEnded(Box::new(end.clone())));
        self.session.append_all(bodies)?;
        self.session.sync()?;
        self.emit_init()?;
        self.emit_result()?;
        Ok(Some(end))
    }

    /// Ends the turn, unless hooks want the model to continue.
    pub(in crate::driver) async fn end_unless_held(
        &mut self,
        reason: &EndReason,
    ) -> Result<Option<TurnEnded>, DriveError> {
        let is_done = *reason == EndReason::Completed && !self.is_cut_off();
        if is_done && self.is_held().await? {
            return Ok(None);
        }
        self.report_failure(reason).await?;
        let end = self.end(reason)?;
        if std::mem::take(&mut self.session.remembered.clear_context) {
            let by = Actor::Hook("at the end of a turn".to_owned());
            self.session.append(RecordBody::Cut(Box::new(qoder_types::record::Cut {
                at: None,
                messages: 0,
                results: Vec::new(),
                by,
            })))?;
        }
        Ok(Some(end))
    }

    /// True when the turn does not end now: hooks hold it, or something else came up while they were asked.
    async fn is_held(&mut self) -> Result<bool, DriveError> {
        let (event, subject) = match &self.engine.agent {
            Some(agent) => (HookEvent::SubagentStop, agent.agent_type.clone()),
            None => (HookEvent::Stop, String::new()),
        };
        let wake = std::mem::take(&mut self.session.remembered.wake);
        if !wake.is_empty() {
            self.notice(&wake.join("\n\n"))?;
            return Ok(true);
        }
        let Some(turn) = &self.session.state.turn else { return Ok(false) };
        let blocks = turn.stop_blocks;
        let fields = || json!({ "stop_hook_active": blocks > 0, "last_assistant_message": turn.last_text });
        let Some(occasion) = self.occasion(event, &subject, fields) else { return Ok(false) };
        if blocks >= MOST_STOP_BLOCKS {
            let text = format!("hooks have kept the turn from ending {MOST_STOP_BLOCKS} times; it ends now");
            self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)?;
            return Ok(false);
        }
        let Fired { joined, mut record } = match self.wait_for_hooks(Some(occasion)).await? {
            Waited::Fired(fired) => *fired,
            Waited::Nobody => return Ok(false),
            Waited::Interrupted => {
                self.interrupt_turn()?;
                return Ok(true);
            }
        };
        self.session.remembered.clear_context |= joined.more.clear_context;
        if joined.stop.is_some() {
            self.session.append(RecordBody::Hooked(Box::new(record)))?;
            return Ok(true);
        }
        let blocked = (joined.verdict == Some(HookVerdict::Deny)).then(|| {
            joined.reason.clone().unwrap_or_else(|| "A hook wants you to go on with the task.".to_owned())
        });
        let texts: Vec<String> = blocked.into_iter().chain(joined.context).collect();
        if texts.is_empty() {
            self.session.append(RecordBody::Hooked(Box::new(record)))?;
            return Ok(false);
        }
        // A context alone holds the turn too: the model is to make use of it.
        record.verdict = Some(HookVerdict::Deny);
        let entry = self.session.user_entry(UserOrigin::Notice, Message::user(texts.join("\n\n")));
        self.session
            .append_all(vec![RecordBody::Hooked(Box::new(record)), RecordBody::User(Box::new(entry))])?;
        Ok(true)
    }
}
