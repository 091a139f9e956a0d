//! The driver: asks what happens next, does it, and appends what happened. It keeps nothing that is not in the
//! session's records, so it may die between any two of them.

mod arrivals;
mod calls;
mod checkpoints;
mod clock;
mod commands;
mod context_usage;
mod hooks;
mod link;
mod messages;
mod model;
mod pieces;
mod servers;
mod stopping;
mod tasks;

use std::sync::PoisonError;

use qoder_core::next::{EndReason, turn_end};
use qoder_core::ports::Model;
use qoder_core::recover::{CloseReason, close};
use qoder_core::render::RenderOptions;
use qoder_core::{Limits, Step, next};
use qoder_protocol::messages::StreamMessage;
use qoder_types::record::{Epoch, Interrupted, RecordBody, TurnEnded, UserOrigin};
use qoder_types::{
    Actor, CallOutcome, ContentBlock, Message, MessageContent, Record, Role, ToolResultContent,
};

use crate::checkpoints::KeptFiles;
use crate::engine::Engine;
use crate::engine::interrupt::Interrupt;
use crate::error::DriveError;
use crate::events::{Barrier, Event, Receipt};
use crate::session::Session;
use qoder_hooks::Occasion;

use arrivals::Arrivals;
pub(crate) use calls::asking::LateAnswer;
use clock::TurnClock;
pub use commands::is_command;
pub use context_usage::ContextUsage;
pub(crate) use link::{Arrival, DriverLink, Inbox};
pub use messages::CAPABILITIES;
use stopping::Stopping;
use tasks::waiting::WaitingAgents;

/// Drives one session.
pub struct Driver<'a> {
    engine: &'a Engine,
    pub(crate) session: &'a mut Session,
    stopping: Stopping,
    limits: Limits,
    options: RenderOptions,
    clock: TurnClock,
    arrivals: Arrivals,
    /// The prompt to repeat on the stream once the turn is announced.
    echo: Option<Record>,
    /// Files that tools have read since the last reply.
    read_files: Vec<std::path::PathBuf>,
    /// What happened during a step that hooks may want to know.
    noticed: Vec<Occasion>,
    /// Files that calls have kept before they changed them, and that are not on record yet.
    kept: KeptFiles,
    /// True while hooks look at a prompt or the program answers a command by itself: there is no turn, and an interrupt is
    /// for what is being done.
    promoting: bool,
    /// True while an unfinished turn is closed: its late results belong to no turn that the host knows.
    quiet: bool,
    /// Calls whose agents wait.
    waiting: WaitingAgents,
}

impl<'a> Driver<'a> {
    /// A driver for `session`; `interrupt` stops the turn it runs.
    pub fn new(engine: &'a Engine, session: &'a mut Session, interrupt: Interrupt) -> Self {
        let options = RenderOptions {
            session_id: session.id.clone(),
            thinking: engine.style.thinking,
            effort: engine.style.effort.read().unwrap_or_else(PoisonError::into_inner).clone(),
            temperature: engine.style.temperature,
            max_output_tokens: engine.style.max_output_tokens,
            partial: engine.outlet.wants().partial,
            purpose: engine.style.purpose,
        };
        let limits = engine.limits();
        Self {
            engine,
            session,
            stopping: Stopping::new(interrupt),
            limits,
            options,
            clock: TurnClock::new(),
            arrivals: Arrivals::default(),
            echo: None,
            read_files: Vec::new(),
            noticed: Vec::new(),
            kept: KeptFiles::default(),
            promoting: false,
            quiet: false,
            waiting: WaitingAgents::default(),
        }
    }

    /// Takes inputs from `inbox` into the log and obeys commands as they arrive, also while a turn runs.
    #[must_use]
    pub(crate) fn with_inbox(mut self, inbox: Inbox) -> Self {
        self.arrivals.attach(inbox);
        self
    }

    /// Gives the inbox back.
    pub(crate) fn into_inbox(self) -> Option<Inbox> {
        self.arrivals.detach()
    }

    /// Drives until the session is idle; answers with the last turn's end. `None` means there was nothing to do. However
    /// it ends, what is on record by then survives a loss of power.
    pub async fn run(&mut self) -> Result<Option<TurnEnded>, DriveError> {
        let ended = self.run_until_idle().await;
        let synced = self.session.sync();
        // The first fault is the one to tell.
        let ended = ended?;
        synced?;
        Ok(ended)
    }

    async fn run_until_idle(&mut self) -> Result<Option<TurnEnded>, DriveError> {
        self.session.recover()?;
        self.engine.shared.adopt(self.session.state.tasks.values());
        let mut ended = None;
        let mut announced = false;
        self.ensure_mode()?;
        self.recall_spending();
        self.report_lost_elicitations()?;
        self.refresh_hooks().await?;
        Box::pin(self.watch_workspace()).await?;
        self.take_up_turn();
        self.resume_parked_agents().await?;
        loop {
            if let Some(signal) = self.ended_by().filter(|_| self.session.state.is_unfinished()) {
                self.interrupt_turn()?;
                self.forward_task_events()?;
                return Err(DriveError::Ended(signal));
            }
            if !self.session.has_begun && self.session.state.is_unfinished() {
                self.begin().await?;
            }
            self.before_step()?;
            let step = next(&self.session.state, &self.limits);
            if !announced && step != Step::Idle && step != Step::Promote {
                self.announce_turn().await?;
                announced = true;
            }
            match step {
                Step::Idle => {
                    if !self.wait_for_agents().await? {
                        return self.idle(ended);
                    }
                    announced = false;
                }
                Step::Promote => {
                    if let Some(refused) = self.promote().await? {
                        ended = Some(refused);
                        if self.stopping.is_wanted() {
                            return Ok(ended);
                        }
                    }
                    announced = false;
                }
                Step::Close(ids, reason) => self.close(&ids, reason)?,
                Step::Decide(ids) => self.decide(&ids).await?,
                Step::Ask(ids) => {
                    if self.ask_about(&ids).await? {
                        return Err(DriveError::Waiting(self.waiting(&ids)));
                    }
                }
                Step::Refuse(ids) => self.refuse(&ids)?,
                Step::Deliver(ids) => self.deliver(&ids)?,
                Step::Run(ids) => self.run_unparked(&ids).await?,
                Step::Notice(text) => self.notice(text)?,
                Step::AppendTaskNotices(ids) => self.append_task_notices(&ids)?,
                Step::Compact => self.compact().await?,
                Step::CallModel if self.bring_memory()? || self.bring_hook_context()? => {}
                Step::CallModel => {
                    // Model and tools may have changed since the turn began.
                    self.ensure_epoch()?;
                    self.call_model().await?;
                }
                Step::End(reason) => {
                    let Some(end) = self.end_unless_held(&reason).await? else { continue };
                    ended = Some(end);
                    // The interrupt was for this turn; inputs that wait behind it get a turn of their own.
                    if self.stopping.is_wanted() {
                        self.forward_task_events()?;
                        return Ok(ended);
                    }
                }
            }
            self.observe_noticed().await?;
            self.forward_task_events()?;
            self.take_arrived()?;
            self.keep_pace().await?;
        }
    }

    /// Emits the `init` message of a turn, and its prompt where that is wanted.
    async fn announce_turn(&mut self) -> Result<(), DriveError> {
        self.learn_commands().await;
        self.ensure_epoch()?;
        self.emit_init()?;
        match self.echo.take() {
            Some(prompt) => self.emit_record(&prompt),
            None => Ok(()),
        }
    }

    /// A turn that continues has spent something before.
    fn recall_spending(&self) {
        if self.engine.agent.is_none() {
            self.engine.common.spending.continue_from(self.session.state.total_cost_usd);
        }
        if let (Some(turn), None) = (&self.session.state.turn, &self.engine.agent) {
            self.engine.common.spending.begin_turn(&turn.usage);
        }
    }

    /// What a receipt waits for.
    pub(crate) fn barrier_of(&mut self, receipt: Receipt) -> Barrier {
        match receipt {
            Receipt::Taken => Box::pin(std::future::ready(Ok(()))),
            Receipt::Durable => self.session.barrier(),
        }
    }

    /// What must hold before the next step is computed.
    fn before_step(&mut self) -> Result<(), DriveError> {
        self.follow_turn_model()?;
        self.renew_limits();
        self.mark_message()
    }

    /// What bounds the turn.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the session is driven with.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// The model that the next call asks.
    #[must_use]
    pub fn model_name(&self) -> String {
        self.engine.model.facts().name
    }

    /// The session, for commands.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Closes an unfinished turn because a new prompt is about to be taken: every open call gets its outcome.
    pub fn close_unfinished_turn(&mut self) -> Result<(), DriveError> {
        self.session.recover()?;
        self.quiet = true;
        let closed = self.close_quietly();
        self.quiet = false;
        closed
    }

    fn close_quietly(&mut self) -> Result<(), DriveError> {
        let limits = self.limits.clone();
        if !matches!(next(&self.session.state, &limits), Step::End(_) | Step::Idle | Step::Promote) {
            self.session.append(RecordBody::Interrupted(Interrupted { by: Actor::Resume }))?;
        }
        loop {
            match next(&self.session.state, &limits) {
                Step::Close(ids, reason) => self.close(&ids, reason)?,
                Step::Notice(text) => self.notice(text)?,
                Step::End(reason) => {
                    let end = turn_end(&self.session.state, &limits, &reason, 0);
                    self.session.append(RecordBody::TurnEnded(Box::new(end)))?;
                }
                Step::Idle
                | Step::Promote
                | Step::Decide(_)
                | Step::Ask(_)
                | Step::Refuse(_)
                | Step::Deliver(_)
                | Step::Run(_)
                | Step::AppendTaskNotices(_)
                | Step::Compact
                | Step::CallModel => return Ok(()),
            }
        }
    }

    /// Another model has another window, and one that is chosen for each call may change with each.
    fn renew_limits(&mut self) {
        let permission_mode = self.limits.permission_mode;
        self.limits = Limits { permission_mode, ..self.engine.limits() };
    }

    /// Declares a new epoch when the fixed part of the prompt is not what this process would send.
    fn ensure_epoch(&mut self) -> Result<(), DriveError> {
        let model = self.engine.model.facts().name;
        let system = &self.engine.system;
        // Who wants an empty prompt wants nothing of servers either.
        let said = (!system.blocks.is_empty()).then(|| self.engine.toolbox.instructions()).flatten();
        let reason = match &self.session.state.epoch {
            None => "session start",
            Some(epoch) if epoch.source != system.source => "system prompt changed",
            Some(epoch) if !self.engine.toolbox.advertises(&epoch.tools) => "tool list changed",
            Some(epoch) if epoch.system.get(system.blocks.len()..).unwrap_or_default() != said.as_slice() => {
                "server instructions changed"
            }
            Some(epoch) if epoch.model != model => "model changed",
            Some(_) => return Ok(()),
        };
        self.ask_again_about_changed()?;
        let system = &self.engine.system;
        let number = self.session.state.epoch.as_ref().map_or(0, |epoch| epoch.number) + 1;
        self.session.append(RecordBody::Epoch(Epoch {
            number,
            reason: reason.to_owned(),
            model,
            system: system.blocks.iter().cloned().chain(said).collect(),
            tools: self.engine.toolbox.definitions(),
            source: system.source.clone(),
        }))?;
        Ok(())
    }

    fn notice(&mut self, text: &str) -> Result<(), DriveError> {
        let entry = self.session.user_entry(UserOrigin::Notice, Message::user(text));
        self.session.append(RecordBody::User(Box::new(entry)))?;
        Ok(())
    }

    fn close(&mut self, ids: &[String], reason: CloseReason) -> Result<(), DriveError> {
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            let closing = close(call, reason);
            self.append_result(id, &closing.text, closing.outcome)?;
        }
        Ok(())
    }

    /// Appends and announces a result that no tool produced.
    fn append_result(&mut self, id: &str, text: &str, outcome: CallOutcome) -> Result<(), DriveError> {
        let (report, tasks) = self.end_agent_of(id)?;
        let text = report.map_or_else(|| text.to_owned(), |report| format!("{text} {report}"));
        let mut content = ToolResultContent::Text(text);
        self.add_call_context(id, &mut content);
        let block = ContentBlock::ToolResult { tool_use_id: id.to_owned(), content, is_error: true };
        let message = Message { role: Role::User, content: MessageContent::Blocks(vec![block]) };
        let mut entry = self.session.user_entry(UserOrigin::ToolResult, message);
        entry.outcome = Some(outcome);
        entry.tasks = tasks;
        let record = self.session.append(RecordBody::User(Box::new(entry)))?;
        self.emit_record(&record)
    }

    fn interrupt_turn(&mut self) -> Result<(), DriveError> {
        let ended_by = self.ended_by();
        // A call that was cut off has put it on record already.
        let is_known = self.session.state.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some());
        if is_known {
            return Ok(());
        }
        let Some(by) = self.stopping.take_record(ended_by) else { return Ok(()) };
        self.session.append(RecordBody::Interrupted(Interrupted { by }))?;
        Ok(())
    }

    /// A turn begins, or continues in this process.
    fn begin_clock(&mut self) {
        self.clock.begin(self.engine.bounds.time_limit, self.stopping.interrupt());
    }

    /// The signal by which the process ends, once the turn was asked to stop for it.
    fn ended_by(&self) -> Option<&'static str> {
        self.engine.common.ending.signal().filter(|_| self.stopping.is_wanted())
    }

    fn end(&mut self, reason: &EndReason) -> Result<TurnEnded, DriveError> {
        let duration = self.clock.elapsed_ms();
        let mut end = turn_end(&self.session.state, &self.limits, reason, duration);
        self.clock.end(&mut end);
        self.session.append(RecordBody::TurnEnded(Box::new(end.clone())))?;
        self.session.sync()?;
        self.follow_turn_model()?;
        self.emit_failed_call(reason)?;
        self.emit_result()?;
        Ok(end)
    }

    fn emit(&self, message: &StreamMessage) -> Result<(), DriveError> {
        if self.quiet {
            return Ok(());
        }
        self.engine.outlet.emit(Event::Message(message)).map_err(DriveError::Output)
    }
}
