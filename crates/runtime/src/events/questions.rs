//! Open questions and the way of answers to them. A driver opens a question and waits; any answerer that knows the call
//! may answer, in this process or through the inbox. The first answer counts; every other answerer learns which did.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::LogStoreError;
use qoder_protocol::{ActionId, Answer, AnswerError, Question, Resolution};
use tokio::sync::{mpsc, oneshot};

/// How many closed questions are remembered for those who answer late.
const MOST_REMEMBERED: usize = 256;

/// Completes when what was handed over to the log is durable.
pub(crate) type Barrier = BoxFuture<'static, Result<(), LogStoreError>>;

/// An answer that arrived for an open question.
#[derive(Debug)]
pub struct ArrivedAnswer {
    /// The call.
    pub tool_use_id: String,
    /// The answer.
    pub answer: Answer,
    /// When the answerer learns that it counts.
    pub receipt: Receipt,
    reply: oneshot::Sender<Result<(), AnswerError>>,
}

/// When an answerer learns that its answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// Once it is in the hands of the log.
    Taken,
    /// Once it is durable.
    Durable,
}

impl ArrivedAnswer {
    /// Informs the answerer that the answer counts and is on record, once the barrier of its receipt has completed.
    pub(crate) fn accepted(self, mut barrier: Barrier) -> Result<(), LogStoreError> {
        // The answerer may have stopped waiting.
        let confirm = |reply: oneshot::Sender<_>| drop(reply.send(Ok(())));
        match (&mut barrier).now_or_never() {
            Some(durable) => durable.map(|()| confirm(self.reply)),
            None => {
                // Dropped, the sender says that nothing was confirmed.
                tokio::spawn(barrier.map(move |durable| durable.map(|()| confirm(self.reply))));
                Ok(())
            }
        }
    }
}

/// A question on its way to an answerer, with the way back.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The question.
    pub question: Arc<Question>,
    /// Where answers go.
    pub answers: AnswerSender,
}

/// Where answers to questions go.
#[derive(Debug, Clone)]
pub struct AnswerSender(mpsc::UnboundedSender<ArrivedAnswer>);

impl AnswerSender {
    /// Answers a call. The future says whether the answer counts; the caller need not wait for it.
    pub fn answer(
        &self,
        tool_use_id: &str,
        answer: Answer,
        receipt: Receipt,
    ) -> BoxFuture<'static, Result<(), AnswerError>> {
        let (reply, replied) = oneshot::channel();
        let arrived = ArrivedAnswer { tool_use_id: tool_use_id.to_owned(), answer, receipt, reply };
        match self.0.send(arrived) {
            Ok(()) => async move { replied.await.unwrap_or(Err(AnswerError::Withdrawn)) }.boxed(),
            Err(_) => std::future::ready(Err(AnswerError::Withdrawn)).boxed(),
        }
    }
}

/// The questions of a session and its agents.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: HashMap<ActionId, Asking>,
    /// Those of the open ones that were put to answerers.
    put: HashSet<ActionId>,
    closed: VecDeque<(ActionId, Resolution)>,
}

impl Questions {
    pub(super) fn open(&mut self, question: Question, arrivals: &mpsc::UnboundedSender<ArrivedAnswer>) {
        let id = question.action();
        self.closed.retain(|(closed, _)| *closed != id);
        let answers = AnswerSender(arrivals.clone());
        self.open.insert(id, Asking { question: Arc::new(question), answers });
    }

    pub(super) fn get(&self, action: &ActionId) -> Option<Asking> {
        self.open.get(action).cloned()
    }

    /// The question that an answer is for. One that names no agent may be for the only agent with that call.
    pub(super) fn find(&self, action: &ActionId) -> Result<Asking, AnswerError> {
        if let Some(asking) = self.get(action) {
            return Ok(asking);
        }
        if action.agent_id.is_some() {
            return Err(self.refusal(action));
        }
        let mut same = self.open.iter().filter(|(open, _)| open.tool_use_id == action.tool_use_id);
        match (same.next(), same.next()) {
            (Some((_, asking)), None) => Ok(asking.clone()),
            (Some(_), Some(_)) => Err(AnswerError::Ambiguous),
            (None, _) => Err(self.refusal(action)),
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Question>> {
        let mut all: Vec<_> = self.open.values().map(|asking| Arc::clone(&asking.question)).collect();
        all.sort_by(|left, right| left.tool_use_id.cmp(&right.tool_use_id));
        all
    }

    /// Those that were put to answerers.
    pub(super) fn all_put(&self) -> Vec<Arc<Question>> {
        let mut all = self.all();
        all.retain(|question| self.put.contains(&question.action()));
        all
    }

    /// The question, which is put to answerers now.
    pub(super) fn put(&mut self, action: &ActionId) -> Option<Asking> {
        let asking = self.get(action)?;
        self.put.insert(action.clone());
        Some(asking)
    }

    /// Closes a question. True when sinks have to hear of it: one that was never put and got no answer concerns none of them.
    pub(super) fn close(&mut self, action: &ActionId, resolution: Resolution) -> bool {
        if self.open.remove(action).is_none() {
            return false;
        }
        let is_heard = self.put.remove(action) || matches!(resolution, Resolution::Answered(_));
        if self.closed.len() == MOST_REMEMBERED {
            self.closed.pop_front();
        }
        self.closed.push_back((action.clone(), resolution));
        is_heard
    }

    /// Why an answer to a call that is not open does not count.
    pub(super) fn refusal(&self, action: &ActionId) -> AnswerError {
        let is_meant = |closed: &ActionId| {
            closed == action || action.agent_id.is_none() && closed.tool_use_id == action.tool_use_id
        };
        match self.closed.iter().rev().find(|(closed, _)| is_meant(closed)) {
            Some((_, Resolution::Answered(answer))) => AnswerError::Lost(Box::new(answer.clone())),
            Some((_, Resolution::Withdrawn)) => AnswerError::Withdrawn,
            None => AnswerError::NotPending,
        }
    }
}

impl ArrivedAnswer {
    /// Returns to the answerer why the answer does not count.
    pub(crate) fn refused(self, error: AnswerError) {
        // The answerer may have stopped waiting.
        let _ = self.reply.send(Err(error));
    }
}
