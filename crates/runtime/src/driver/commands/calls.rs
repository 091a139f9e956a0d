//! Calls that a command makes before its turn begins: command lines whose output it wants and files it includes. They
//! pass the hooks and the gate like calls of the model, are asked about and put on record like them; only the model does
//! not see them, because it is not asked yet.

use std::sync::Arc;

use qoder_core::ports::Tool;
use qoder_policy::Ruling;
use qoder_protocol::{Answer, Question};
use qoder_types::record::{
    AskKind, Asked, Decided, PermissionDenial, PermissionsChanged, RecordBody, ToolStarted,
};
use qoder_types::{Behavior, CallOutcome, Decision, DecisionLayer, Hooked, RuleValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::driver::calls::asking;
use crate::driver::calls::decide::answered;
use crate::driver::calls::tools::{Ready, run_one};
use crate::driver::commands::Refusal;
use crate::driver::hooks::Waited;
use crate::driver::hooks::calls::ByHooks;
use crate::error::DriveError;
use crate::permissions::OpenQuestion;
use qoder_config::hooks::HookEvent;
use qoder_hooks::{Occasion, failure_of, may_be_answered_by_hook, with_failure, with_hooks};

/// A call that a command makes.
pub(in crate::driver) struct CallOfCommand {
    /// The id of the input with a number behind it.
    pub(in crate::driver) id: String,
    pub(in crate::driver) tool: &'static str,
    pub(in crate::driver) input: Value,
    /// What the person wrote.
    pub(in crate::driver) request: String,
    /// What the command allows.
    pub(in crate::driver) rules: Vec<RuleValue>,
    /// True when the host or person may be asked about it.
    pub(in crate::driver) may_ask: bool,
    /// The user wrote the call itself: their word is the answer to what would be asked. A denial holds all the same.
    pub(in crate::driver) is_typed: bool,
}

impl CallOfCommand {
    fn refused(&self, problem: String) -> Permit {
        let denial = PermissionDenial {
            tool_name: self.tool.to_owned(),
            tool_use_id: self.id.clone(),
            tool_input: self.input.clone(),
        };
        Permit::Refused(Refusal { problem, denial: Some(Box::new(denial)) })
    }
}

/// What hooks, rules, the mode and people say about a call.
pub(in crate::driver) enum Permit {
    /// It may run, with this input.
    Granted(Arc<dyn Tool>, Value),
    /// It may not.
    Refused(Refusal),
    /// A person interrupted.
    Interrupted,
}

impl Driver<'_> {
    /// Takes a call of a command to the hooks and to the gate.
    pub(in crate::driver) async fn permit(&mut self, call: &CallOfCommand) -> Result<Permit, DriveError> {
        let (_, input) = match self.checked(call.tool, &call.input) {
            Ok(checked) => checked,
            Err(problem) => return Ok(Permit::Refused(problem.into())),
        };
        let fields = || json!({ "tool_name": call.tool, "tool_input": input, "tool_use_id": call.id });
        let occasion = self.occasion(HookEvent::PreToolUse, call.tool, fields);
        let occasion = occasion.map(|occasion| Occasion { tool_use_id: Some(call.id.clone()), ..occasion });
        let hooked = match self.wait_for_hooks(occasion).await? {
            Waited::Nobody => None,
            Waited::Fired(fired) => {
                self.session.append(RecordBody::Hooked(Box::new(fired.record.clone())))?;
                Some(fired.record)
            }
            Waited::Interrupted => return Ok(Permit::Interrupted),
        };
        if let Some(reason) = hooked.as_ref().and_then(|hooked| hooked.stop.clone()) {
            return Ok(call.refused(reason));
        }
        let changed = hooked.as_ref().and_then(|hooked| hooked.updated_input.clone());
        match self.judge_for(call, changed.as_ref().unwrap_or(&input), hooked.as_ref()) {
            Ok((tool, input, ruling)) => {
                let ruling = self.classified(&call.id, &*tool, &input, (&call.request, ruling)).await?;
                self.settle_for(call, (tool, input, ruling), hooked.as_ref()).await
            }
            Err(problem) => Ok(call.refused(problem)),
        }
    }

    fn judge_for(
        &self,
        call: &CallOfCommand,
        input: &Value,
        hooked: Option<&Hooked>,
    ) -> Result<(Arc<dyn Tool>, Value, Ruling), String> {
        let (tool, input) = self.checked(call.tool, input)?;
        let place = self.place(call.tool, &input);
        let ruling = self.engine.gate.decide_allowing(&call.rules, &*tool, &input, &place)?;
        Ok((tool, input, with_hooks(ruling, hooked, false)))
    }

    /// Puts the ruling on record, after asking where someone can answer.
    async fn settle_for(
        &mut self,
        call: &CallOfCommand,
        (tool, input, ruling): (Arc<dyn Tool>, Value, Ruling),
        hooked: Option<&Hooked>,
    ) -> Result<Permit, DriveError> {
        let Ruling { mut decision, suggestions, .. } = ruling;
        if call.is_typed && decision.behavior == Behavior::Ask {
            (decision.behavior, decision.layer) = (Behavior::Allow, DecisionLayer::Person);
            decision.reason = "the user typed it".to_owned();
        }
        match decision.behavior {
            Behavior::Allow => {
                self.record_for(call, decision)?;
                Ok(Permit::Granted(tool, input))
            }
            Behavior::Deny => {
                let reason = decision.reason.clone();
                self.record_for(call, decision)?;
                Ok(call.refused(reason))
            }
            Behavior::Ask => {
                let mut asked = Asked {
                    tool_use_id: call.id.clone(),
                    tool_name: call.tool.to_owned(),
                    kind: AskKind::Permission,
                    decision,
                    suggestions,
                };
                if call.may_ask {
                    match self.answer_of_hooks(&asked, &input).await? {
                        ByHooks::Open(failure) => {
                            asked.decision = with_failure(asked.decision, failure.as_deref());
                        }
                        ByHooks::Answer(record, answer) => {
                            self.session.append(RecordBody::Hooked(record))?;
                            self.session.append(RecordBody::Asked(Box::new(asked.clone())))?;
                            let decided = (asked.decision, DecisionLayer::Hook);
                            return self.answered_for(call, input, decided, *answer);
                        }
                        ByHooks::Interrupted => return Ok(Permit::Interrupted),
                    }
                    if self.engine.outlet.has_answerer() {
                        return self.ask_for(call, input, asked).await;
                    }
                }
                let place = self.place(call.tool, &input);
                let hook_failed = hooked.is_some_and(|hooked| failure_of(hooked).is_some());
                let question =
                    OpenQuestion { asked: asked.decision, suggestions: &asked.suggestions, hook_failed };
                let denied = self.engine.gate.nobody_answers(question, &*tool, &input, &place);
                let reason = denied.reason.clone();
                self.record_for(call, denied)?;
                Ok(call.refused(reason))
            }
        }
    }

    async fn ask_for(
        &mut self,
        call: &CallOfCommand,
        input: Value,
        asked: Asked,
    ) -> Result<Permit, DriveError> {
        let question = Question {
            tool_use_id: call.id.clone(),
            tool_name: asked.tool_name.clone(),
            kind: AskKind::Permission,
            input: input.clone(),
            decision: asked.decision.clone(),
            suggestions: asked.suggestions.clone(),
            agent_id: None,
            place: self.engine.place(&asked.tool_name, &input, &self.session.state.cwd),
        };
        let decision = asked.decision.clone();
        self.session.append(RecordBody::Asked(Box::new(asked)))?;
        let decided = (decision, DecisionLayer::Person);
        let mut open = self.open_question(question);
        self.notify_of_permission(call.tool, &call.id);
        match self.wait_for_answer(&mut open, &call.id).await? {
            asking::Waited::Answer(arrived) => {
                let answered = self.answered_for(call, input, decided, arrived.answer.clone());
                let barrier = self.barrier_of(arrived.receipt);
                open.accept(*arrived, barrier)?;
                answered
            }
            asking::Waited::Unattended => self.answered_for(call, input, decided, Answer::nobody()),
            asking::Waited::Interrupted => Ok(Permit::Interrupted),
        }
    }

    /// Puts an answer on record and follows it. What would run is judged once more: the answer may have changed it, and the
    /// rules may have changed while the question was open. A denial of the rules holds against any answer.
    fn answered_for(
        &mut self,
        call: &CallOfCommand,
        input: Value,
        (asked, layer): (Decision, DecisionLayer),
        answer: Answer,
    ) -> Result<Permit, DriveError> {
        let updates = self.usable_updates(answer.updated_permissions.clone())?;
        let answer = answer.into_record(call.id.as_str(), updates.clone());
        let decision = answered(asked, &answer, layer);
        let (allow, reason, by) = (answer.allow, decision.reason.clone(), answer.by.clone());
        let input = answer.updated_input.clone().unwrap_or(input);
        let mut bodies = vec![RecordBody::Answered(Box::new(answer))];
        if !updates.is_empty() {
            bodies.push(RecordBody::PermissionsChanged(PermissionsChanged {
                updates: updates.clone(),
                by: by.clone(),
            }));
        }
        self.session.append_all(bodies)?;
        self.took_updates(&updates)?;
        if !allow {
            self.record_for(call, decision)?;
            return Ok(call.refused(reason));
        }
        let (tool, input, ruling) = match self.judge_for(call, &input, None) {
            Ok(judged) => judged,
            Err(problem) => return Ok(call.refused(problem)),
        };
        let open = ruling.decision.behavior == Behavior::Ask;
        let beyond_hooks = layer == DecisionLayer::Hook && open && !may_be_answered_by_hook(&ruling.decision);
        if ruling.decision.behavior == Behavior::Deny || beyond_hooks {
            let mut denied = ruling.decision;
            if beyond_hooks {
                denied.behavior = Behavior::Deny;
                denied.layer = layer;
                denied.reason = format!("{}, and a hook cannot allow that", denied.reason);
                denied.answered_by = Some(by);
            }
            let reason = denied.reason.clone();
            self.record_for(call, denied)?;
            return Ok(call.refused(reason));
        }
        self.record_for(call, decision)?;
        Ok(Permit::Granted(tool, input))
    }

    fn record_for(&mut self, call: &CallOfCommand, decision: Decision) -> Result<(), DriveError> {
        let denied = (decision.behavior != Behavior::Allow).then(|| decision.reason.clone());
        let decided = Decided { tool_use_id: call.id.clone(), tool_name: call.tool.to_owned(), decision };
        self.session.append(RecordBody::Decided(decided))?;
        if let Some(reason) = denied {
            self.notice_denial(&call.id, call.tool, &call.input, &reason);
        }
        Ok(())
    }

    /// Runs a call that may run, and answers with what it said; nothing when a person interrupted.
    pub(in crate::driver) async fn run_for_command(
        &mut self,
        id: &str,
        tool: Arc<dyn Tool>,
        input: Value,
    ) -> Result<Option<String>, DriveError> {
        let name = tool.definition().name.clone();
        self.session.append(RecordBody::ToolStarted(ToolStarted {
            tool_use_id: id.to_owned(),
            tool_name: name.clone(),
            replay: tool.replay(),
        }))?;
        self.session.barrier().await?;
        let (output, mut pieces) = mpsc::channel(1);
        let context = self.context(id, &output);
        let after = self.after_call(id, &name, &input, &context.spent);
        let ready = Ready { id: id.to_owned(), tool, input };
        // The tool learns of an interrupt through its context and ends by itself.
        let mut running = Box::pin(run_one(ready, context, after, Vec::new()));
        let mut ran = loop {
            tokio::select! {
                biased;
                ran = &mut running => break ran,
                Some((id, text)) = pieces.recv() => {
                    self.emit_call_output(&id, &text)?;
                }
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        };
        while let Ok((id, text)) = pieces.try_recv() {
            self.emit_call_output(&id, &text)?;
        }
        drop(output);
        self.forward_task_events()?;
        self.record_spent(&ran.spent)?;
        self.record_kept()?;
        if let Some(fired) = ran.fired.map_err(DriveError::Output)? {
            let record = self.revise(&mut ran.outcome, fired);
            self.session.append(record)?;
        }
        let interrupted = ran.outcome.outcome == CallOutcome::Interrupted || self.stopping.is_wanted();
        Ok((!interrupted).then(|| ran.outcome.content.to_text()))
    }
}
