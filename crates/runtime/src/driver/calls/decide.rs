//! Decisions: each call is checked, judged by the gate and put on record. A question and its answer are in the log before
//! anything follows from them, so both survive a restart.

use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::Tool;
use qoder_core::state::Call;
use qoder_policy::Ruling;
use qoder_protocol::{Answer, denial_text};
use qoder_types::record::{Answered, AskKind, Asked, Decided, PermissionsChanged, RecordBody};
use qoder_types::{
    Actor, Behavior, CallOutcome, Decision, DecisionLayer, Hooked, PermissionMode, PermissionUpdate,
    UpdateDestination,
};
use serde_json::Value;

use crate::driver::Driver;
use crate::driver::hooks::calls::{AfterHooks, Question};
use crate::error::DriveError;
use crate::events::Event;
use crate::permissions::{CallInPlace, OpenQuestion, Unattended};
use qoder_hooks::{failure_of, may_be_answered_by_hook, with_failure, with_hooks};

impl Driver<'_> {
    /// Decides about calls. One that cannot be decided about, because its tool or input makes no sense, gets an error
    /// that the model can repair.
    pub(in crate::driver) async fn decide(&mut self, ids: &[String]) -> Result<(), DriveError> {
        self.ask_again_about_changed()?;
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            let (name, input) = (call.name.clone(), call.input.clone());
            let checked = self.checked(&name, &input);
            match checked {
                Ok((_, input)) => match self.before_call(id, &name, &input).await? {
                    AfterHooks::Continue => {}
                    AfterHooks::Stop => return Ok(()),
                },
                Err(text) => {
                    self.append_result(id, &text, CallOutcome::Failed)?;
                    continue;
                }
            }
            // A hook may have changed the input; what is judged is what would run.
            let Some(call) = self.session.state.call(id) else { continue };
            let external = self.engine.toolbox.get(&name).filter(|tool| tool.runs_outside());
            if external.as_ref().is_some_and(|tool| !tool.is_gated()) {
                self.settle_external(id, None)?;
                continue;
            }
            match self.judge_with_hooks(call) {
                Ok((tool, input, ruling)) => {
                    let request = self.session.state.last_prompt.clone();
                    let ruling = self.classified(id, &*tool, &input, (&request, ruling)).await?;
                    if external.is_some() {
                        self.settle_external(id, Some(ruling.decision))?;
                    } else {
                        self.settle(id, &*tool, &input, ruling).await?;
                    }
                    if self.session.state.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some()) {
                        return Ok(());
                    }
                }
                Err(text) => self.append_result(id, &text, CallOutcome::Failed)?,
            }
        }
        Ok(())
    }

    /// The ruling about a call, with what hooks said about it.
    pub(in crate::driver) fn judge_with_hooks(
        &self,
        call: &Call,
    ) -> Result<(Arc<dyn Tool>, Value, Ruling), String> {
        let (tool, input, ruling) = self.judge(&call.name, &call.input)?;
        let moved = call.decision.is_some() && call.decided_in != self.session.state.cwd;
        Ok((tool, input, with_hooks(ruling, call.hooked.as_ref(), moved)))
    }

    pub(in crate::driver) fn checked(
        &self,
        name: &str,
        input: &Value,
    ) -> Result<(Arc<dyn Tool>, Value), String> {
        let Some(tool) = self.engine.toolbox.get(name) else {
            let known = self.engine.toolbox.names();
            return Err(format!("There is no tool named {name}. The tools are: {}.", known.join(", ")));
        };
        let input = self.engine.toolbox.check(&*tool, input).map_err(|error| error.to_string())?;
        Ok((tool, input))
    }

    fn judge(&self, name: &str, input: &Value) -> Result<(Arc<dyn Tool>, Value, Ruling), String> {
        let (tool, input) = self.checked(name, input)?;
        let ruling = self.engine.gate.decide(&*tool, &input, &self.place(name, &input))?;
        Ok((tool, input, ruling))
    }

    /// A call on its way through the gate, where the session is now.
    pub(in crate::driver) fn place(&self, name: &str, input: &Value) -> CallInPlace<'_> {
        CallInPlace {
            cwd: Path::new(&self.session.state.cwd),
            permissions: &self.session.state.permissions,
            confinement: self.engine.confinement(name, input),
        }
    }

    /// Puts the ruling on record: as a decision, or as a question when someone can answer it.
    async fn settle(
        &mut self,
        id: &str,
        tool: &dyn Tool,
        input: &Value,
        ruling: Ruling,
    ) -> Result<(), DriveError> {
        let name = &tool.definition().name;
        let Some(call) = self.session.state.call(id) else { return Ok(()) };
        let answer = call.answer.clone();
        let by_hook = call.question_hooked.as_ref().is_some_and(|hooked| hooked.verdict.is_some());
        let layer = if by_hook { DecisionLayer::Hook } else { DecisionLayer::Person };
        let Ruling { decision, suggestions, .. } = ruling;
        match (decision.behavior, answer) {
            // A changed input was judged again; a denial of the rules holds against any answer.
            (Behavior::Deny, _) | (Behavior::Allow, None) => self.record_decision(id, name, decision),
            // A hook answered, and changed the input to something that is not its to allow.
            (Behavior::Ask, Some(answer))
                if by_hook && answer.allow && !may_be_answered_by_hook(&decision) =>
            {
                let reason = format!("{}, and a hook cannot allow that", decision.reason);
                let answered_by = Some(answer.by);
                let denied = Decision { behavior: Behavior::Deny, layer, reason, answered_by, ..decision };
                self.record_decision(id, name, denied)
            }
            (Behavior::Allow | Behavior::Ask, Some(answer)) => {
                self.record_decision(id, name, answered(decision, &answer, layer))?;
                if answer.interrupt && !answer.allow {
                    self.interrupt_turn()?;
                }
                Ok(())
            }
            (Behavior::Ask, None) => {
                match self.ask_hooks(id, name, input, &decision, &suggestions).await? {
                    Question::Open => {}
                    Question::Answered | Question::Interrupted => return Ok(()),
                }
                let call = self.session.state.call(id);
                let hooked = |hooked: &Option<Hooked>| hooked.as_ref().and_then(failure_of);
                let before = call.and_then(|call| hooked(&call.hooked)).is_some();
                let failure = call.and_then(|call| hooked(&call.question_hooked));
                let decision = with_failure(decision, failure.as_deref());
                if self.engine.outlet.has_answerer() || self.engine.gate.unattended == Unattended::Park {
                    let asked = Asked {
                        tool_use_id: id.to_owned(),
                        tool_name: name.clone(),
                        kind: AskKind::Permission,
                        decision,
                        suggestions,
                    };
                    self.session.append(RecordBody::Asked(Box::new(asked)))?;
                    return Ok(());
                }
                let place = self.place(name, input);
                let question =
                    OpenQuestion { asked: decision, suggestions: &suggestions, hook_failed: before };
                let denied = self.engine.gate.nobody_answers(question, tool, input, &place);
                self.record_decision(id, name, denied)
            }
        }
    }

    /// Puts an answer on record behind what it belongs to.
    pub(in crate::driver) fn record_answer(
        &mut self,
        id: &str,
        answer: Answer,
        mut bodies: Vec<RecordBody>,
    ) -> Result<(), DriveError> {
        let updates = self.usable_updates(answer.updated_permissions.clone())?;
        bodies.push(RecordBody::Answered(Box::new(answer.into_record(id, updates.clone()))));
        self.session.append_all(bodies)?;
        self.took_updates(&updates)
    }

    /// Leaves out changes that the settings forbid or that cannot be read; says so.
    pub(in crate::driver) fn usable_updates(
        &self,
        updates: Vec<PermissionUpdate>,
    ) -> Result<Vec<PermissionUpdate>, DriveError> {
        let mut usable = Vec::new();
        for update in updates {
            match self.engine.common.updates.complaint(&update) {
                Some(problem) => {
                    let text = format!("a change of permissions is left out: {problem}");
                    self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)?;
                }
                None => usable.push(update),
            }
        }
        Ok(usable)
    }

    /// Writes changes that a settings file keeps. They hold for the session in any case; a file that cannot be written is
    /// no reason to lose the answer.
    pub(in crate::driver) fn persist(&self, updates: &[PermissionUpdate]) -> Result<(), DriveError> {
        for problem in self.engine.common.updates.persist(updates) {
            self.engine.outlet.emit(Event::Warning(&problem)).map_err(DriveError::Output)?;
        }
        Ok(())
    }

    /// Changes of permissions are on record: writes those that a file keeps and reports a new mode.
    pub(crate) fn took_updates(&mut self, updates: &[PermissionUpdate]) -> Result<(), DriveError> {
        self.persist(updates)?;
        if let Some(questions) = self.engine.questions.as_ref().filter(|_| !updates.is_empty()) {
            let policy = self.engine.gate.policy(&self.session.state.permissions);
            if questions.set_roots(&policy.workspace().roots) {
                self.engine.toolbox.servers().roots_changed();
            }
        }
        let now = self.engine.gate.mode(&self.session.state.permissions);
        if now == self.limits.permission_mode {
            return Ok(());
        }
        self.limits.permission_mode = now;
        self.emit_mode(now)
    }

    /// A mode that a person chose for this very run outranks what an earlier process recorded.
    pub(in crate::driver) fn ensure_mode(&mut self) -> Result<(), DriveError> {
        let gate = &self.engine.gate;
        let mode = gate.mode;
        let forbidden = |mode| self.engine.common.updates.forbids(mode);
        let recorded = self.session.state.permissions.mode;
        let wanted = match recorded {
            Some(recorded) if self.session.mode_is_settled => Some(recorded),
            Some(recorded) if gate.mode_is_explicit && recorded != mode => Some(mode),
            Some(recorded) if forbidden(recorded) => Some(PermissionMode::Default),
            Some(_) => recorded,
            // Planning has to know where it began.
            None if mode == PermissionMode::Plan => Some(mode),
            None => None,
        };
        self.session.mode_is_settled = true;
        if wanted != recorded
            && let Some(mode) = wanted
        {
            let update = PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
            let changed = PermissionsChanged { updates: vec![update], by: Actor::Start };
            self.session.append(RecordBody::PermissionsChanged(changed))?;
        }
        self.limits.permission_mode = self.engine.gate.mode(&self.session.state.permissions);
        Ok(())
    }

    pub(in crate::driver) fn record_decision(
        &mut self,
        id: &str,
        name: &str,
        decision: Decision,
    ) -> Result<(), DriveError> {
        let denied = (decision.behavior != Behavior::Allow).then(|| decision.reason.clone());
        let body = Decided { tool_use_id: id.to_owned(), tool_name: name.to_owned(), decision };
        let record = self.session.append(RecordBody::Decided(body))?;
        if let Some(reason) = denied {
            let input = self.session.state.call(id).map_or(Value::Null, |call| call.input.clone());
            self.notice_denial(id, name, &input, &reason);
        }
        self.emit_record(&record)
    }

    /// Answers calls whose denial is on record.
    pub(in crate::driver) fn refuse(&mut self, ids: &[String]) -> Result<(), DriveError> {
        for id in ids {
            let Some(call) = self.session.state.call(id) else { continue };
            let text = match &call.decision {
                Some(decision) => denial_text(&call.name, decision.layer, &decision.reason),
                None => denial_text(&call.name, DecisionLayer::Unattended, "no decision was made"),
            };
            self.append_result(id, &text, CallOutcome::Denied)?;
        }
        Ok(())
    }
}

/// The decision that an answer makes of an open question.
pub(in crate::driver) fn answered(asked: Decision, answer: &Answered, layer: DecisionLayer) -> Decision {
    let (behavior, reason) = if answer.allow {
        (Behavior::Allow, format!("{}; {} allowed it", asked.reason, answer.by))
    } else {
        let message = answer.message.clone().filter(|message| !message.trim().is_empty());
        (Behavior::Deny, message.unwrap_or_else(|| format!("{} denied it", answer.by)))
    };
    Decision { behavior, layer, reason, answered_by: Some(answer.by.clone()), ..asked }
}
