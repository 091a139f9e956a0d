//! Questions: on record before they are put to anyone, answered by arrival. Every question of a step is open at once, so
//! that an answer may come for any of them, from any answerer; they are put to answerers one after another.

use std::sync::Arc;

use qoder_core::state::Call;
use qoder_protocol::{ActionId, Answer, Question, Resolution};
use qoder_types::AskKind;
use qoder_types::record::Answered;
use serde_json::json;
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::error::{DriveError, WaitingCall};
use crate::events::emit_state;
use crate::events::{AnswerError, ArrivedAnswer, Barrier, Outlet};
use crate::permissions::Unattended;
use qoder_protocol::SessionState;

/// Questions that are open. Dropping it withdraws what has no answer.
pub(in crate::driver) struct OpenQuestions {
    outlet: Arc<dyn Outlet>,
    arrivals: mpsc::UnboundedReceiver<ArrivedAnswer>,
    open: Vec<String>,
}

/// What waiting for an answer came to.
pub(in crate::driver) enum Waited {
    /// An answer; it counts once it is on record.
    Answer(Box<ArrivedAnswer>),
    /// No answerer is attached.
    Unattended,
    /// The turn was interrupted.
    Interrupted,
}

/// What became of an answer to a question that is not open.
pub(crate) enum LateAnswer {
    /// It is on record.
    Accepted,
    /// This one was first.
    Lost(Box<Answered>),
    /// It does not fit the question.
    Refused(AnswerError),
    /// There is no such question.
    Unknown,
}

impl LateAnswer {
    /// Whether the answer counts.
    pub(crate) fn counts(self) -> Result<(), AnswerError> {
        match self {
            Self::Accepted => Ok(()),
            Self::Lost(first) => Err(AnswerError::Lost(Box::new(of_record(*first)))),
            Self::Refused(error) => Err(error),
            Self::Unknown => Err(AnswerError::NotPending),
        }
    }
}

fn of_record(first: Answered) -> Answer {
    Answer {
        allow: first.allow,
        message: first.message,
        updated_input: first.updated_input,
        updated_permissions: first.updated_permissions,
        interrupt: first.interrupt,
        result: first.result,
        by: first.by,
    }
}

impl OpenQuestions {
    fn new(outlet: &Arc<dyn Outlet>, questions: Vec<Question>) -> Self {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let open = questions.iter().map(|question| question.tool_use_id.clone()).collect();
        outlet.open(questions, &sender);
        Self { outlet: Arc::clone(outlet), arrivals, open }
    }

    /// The answer is on record: informs the answerer, and everyone who was asked.
    pub(in crate::driver) fn accept(
        &mut self,
        arrived: ArrivedAnswer,
        barrier: Barrier,
    ) -> Result<(), DriveError> {
        self.open.retain(|id| *id != arrived.tool_use_id);
        let resolution = Resolution::Answered(arrived.answer.clone());
        let told = self.outlet.resolve(ActionId::main(arrived.tool_use_id.as_str()), resolution);
        arrived.accepted(barrier)?;
        told.map_err(DriveError::Output)
    }
}

impl Drop for OpenQuestions {
    fn drop(&mut self) {
        for id in &self.open {
            // A sink that is gone is met again by the next event of the turn.
            let _ = self.outlet.resolve(ActionId::main(id.as_str()), Resolution::Withdrawn);
        }
        self.arrivals.close();
        while let Ok(late) = self.arrivals.try_recv() {
            self.outlet.refuse(ActionId::main(late.tool_use_id.as_str()), late);
        }
    }
}

impl Driver<'_> {
    /// Puts questions that are on record to the answerers. True when the session has to wait for an answer that comes
    /// later.
    pub(in crate::driver) async fn ask_about(&mut self, ids: &[String]) -> Result<bool, DriveError> {
        if self.stopping.is_wanted() {
            self.interrupt_turn()?;
            return Ok(false);
        }
        let questions: Vec<Question> = ids.iter().filter_map(|id| self.question(id)).collect();
        let mut open = OpenQuestions::new(&self.engine.outlet, questions);
        if !self.engine.outlet.has_answerer() {
            self.take_left_answers(&mut open).await?;
            return Ok(!self.is_interrupted() && self.waits_for(ids));
        }
        let mut parks = false;
        for id in ids {
            while self.session.state.call(id).is_some_and(|call| call.waiting_ask().is_some()) {
                match self.wait_for_answer(&mut open, id).await? {
                    Waited::Answer(arrived) => self.take_answer(&mut open, *arrived)?,
                    Waited::Unattended if self.parks(id) => {
                        parks = true;
                        break;
                    }
                    Waited::Unattended => self.record_answer(id, Answer::nobody(), Vec::new())?,
                    Waited::Interrupted => return Ok(false),
                }
            }
        }
        Ok(parks && self.waits_for(ids))
    }

    /// Takes the answers that other processes have left for these questions.
    async fn take_left_answers(&mut self, open: &mut OpenQuestions) -> Result<(), DriveError> {
        let mut taken = self.engine.outlet.take_left_answers();
        let mut cancelled = self.stopping.wanted();
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return self.interrupt_turn(),
                Some(arrived) = open.arrivals.recv() => {
                    if let Some(arrived) = self.fitting(open, arrived) {
                        self.take_answer(open, arrived)?;
                    }
                }
                () = &mut taken => return Ok(()),
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        }
    }

    fn take_answer(&mut self, open: &mut OpenQuestions, arrived: ArrivedAnswer) -> Result<(), DriveError> {
        self.record_answer(&arrived.tool_use_id, arrived.answer.clone(), Vec::new())?;
        let barrier = self.barrier_of(arrived.receipt);
        open.accept(arrived, barrier)
    }

    /// The answer, if it fits an open question; otherwise its sender learns why not.
    fn fitting(&self, open: &OpenQuestions, arrived: ArrivedAnswer) -> Option<ArrivedAnswer> {
        if !open.open.contains(&arrived.tool_use_id) {
            self.engine.outlet.refuse(ActionId::main(arrived.tool_use_id.as_str()), arrived);
            return None;
        }
        // The call of a command is not one of the conversation; it waits for permission.
        let call = self.session.state.call(&arrived.tool_use_id);
        let kind = call.and_then(Call::waiting_ask).map(|asked| asked.kind).unwrap_or_default();
        match AnswerError::of_misfit(&arrived.answer, kind) {
            Some(error) => {
                arrived.refused(error);
                None
            }
            None => Some(arrived),
        }
    }

    /// True when a call waits in the log where no answerer is attached.
    fn parks(&self, id: &str) -> bool {
        let asked = self.session.state.call(id).and_then(|call| call.asked.as_ref());
        self.engine.gate.unattended == Unattended::Park
            || asked.is_some_and(|asked| asked.kind == AskKind::External)
    }

    fn is_interrupted(&self) -> bool {
        self.session.state.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some())
    }

    fn question(&self, id: &str) -> Option<Question> {
        let call = self.session.state.call(id)?;
        let asked = call.waiting_ask()?.clone();
        let place = self.engine.place(&asked.tool_name, &call.input, &self.session.state.cwd);
        Some(Question {
            tool_use_id: id.to_owned(),
            tool_name: asked.tool_name,
            kind: asked.kind,
            input: call.input.clone(),
            decision: asked.decision,
            suggestions: asked.suggestions,
            agent_id: None,
            place,
        })
    }

    /// Opens one question that is on record.
    pub(in crate::driver) fn open_question(&self, question: Question) -> OpenQuestions {
        OpenQuestions::new(&self.engine.outlet, vec![question])
    }

    /// True when one of these calls still has no answer.
    pub(in crate::driver) fn waits_for(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| self.session.state.call(id).is_some_and(|call| call.waiting_ask().is_some()))
    }

    /// What an answer is missing for.
    pub(in crate::driver) fn waiting(&self, ids: &[String]) -> Vec<WaitingCall> {
        let asked = ids.iter().filter_map(|id| self.session.state.call(id)?.waiting_ask());
        asked
            .map(|asked| WaitingCall {
                session_id: self.session.id.clone(),
                agent_id: None,
                tool_use_id: asked.tool_use_id.clone(),
                tool_name: asked.tool_name.clone(),
                kind: asked.kind,
                reason: asked.decision.reason.clone(),
            })
            .collect()
    }

    /// Puts the question about `id` and waits without a limit of time for an answer to it or to another open one.
    pub(in crate::driver) async fn wait_for_answer(
        &mut self,
        open: &mut OpenQuestions,
        id: &str,
    ) -> Result<Waited, DriveError> {
        emit_state(&*self.engine.outlet, &self.session.id, SessionState::RequiresAction)?;
        let asked = self.session.state.call(id).and_then(Call::waiting_ask);
        if let Some(asked) = asked.filter(|asked| asked.kind == AskKind::Permission) {
            self.notify_of_permission(&asked.tool_name, id);
        }
        self.engine.outlet.ask(ActionId::main(id)).map_err(DriveError::Output)?;
        let mut cancelled = self.stopping.wanted();
        let mut unattended = self.engine.outlet.unattended();
        let waited = loop {
            tokio::select! {
                biased;
                () = &mut cancelled => {
                    self.interrupt_turn()?;
                    break Waited::Interrupted;
                }
                Some(arrived) = open.arrivals.recv() => {
                    if let Some(arrived) = self.fitting(open, arrived) {
                        break Waited::Answer(Box::new(arrived));
                    }
                }
                () = &mut unattended => break Waited::Unattended,
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        };
        emit_state(&*self.engine.outlet, &self.session.id, SessionState::Running)?;
        Ok(waited)
    }

    /// Takes the answer to a question that is on record and not open, because its turn is not driven at this moment.
    pub(crate) fn answer_late(
        &mut self,
        action: &ActionId,
        answer: Answer,
    ) -> Result<LateAnswer, DriveError> {
        let id = action.tool_use_id.as_str();
        let own = action.agent_id.is_none().then(|| self.session.state.call(id)).flatten();
        let Some((call, asked)) = own.and_then(|call| Some((call, call.asked.as_ref()?))) else {
            return self.answer_parked(action, answer);
        };
        if let Some(first) = &call.answer {
            return Ok(LateAnswer::Lost(Box::new(first.clone())));
        }
        if let Some(error) = AnswerError::of_misfit(&answer, asked.kind) {
            return Ok(LateAnswer::Refused(error));
        }
        self.record_answer(id, answer, Vec::new())?;
        Ok(LateAnswer::Accepted)
    }

    /// Reports to hooks that a person is needed.
    pub(in crate::driver) fn notify_of_permission(&self, tool_name: &str, tool_use_id: &str) {
        let message = format!("Permission is needed to use {tool_name}");
        let details = json!({ "tool_name": tool_name, "tool_use_id": tool_use_id });
        self.notification("permission_prompt", "Permission needed", &message, &details);
    }
}
