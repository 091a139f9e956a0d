//! A handle to a session that is being driven: prompts, answers, interrupts, requests and subscriptions. Requests are
//! served between two steps, also while the model speaks or a tool runs.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use qoder_core::ports::{Model, ModelFacts};
use qoder_protocol::{ActionId, Answer, InterruptReceipt, Question, RequestError, SessionState, SessionView};
use qoder_types::Actor;
use qoder_types::record::InputAdmitted;
use tokio::sync::oneshot;

use super::drive::Finished;
use super::requests::{Request, RequestContext};
use super::stop::Stopper;
use super::subscribe::Subscription;
use crate::driver::{DriverLink, LateAnswer};
use crate::engine::Engine;
use crate::error::DriveError;
use crate::events::{AnswerError, AttachedSink, Receipt, Sink, Wants};
use crate::permissions::ask_tool;

/// What a session comes to, for any number of fronts that wait for it. It does not keep the session alive.
pub type Finishing = Shared<BoxFuture<'static, Arc<Finished>>>;

/// Puts questions to a tool; what could not be read of its answers is named.
pub type PermissionTool =
    Arc<dyn Fn(Arc<Question>) -> BoxFuture<'static, Option<(Answer, Vec<String>)>> + Send + Sync>;

/// A handle to a session. The session ends when every clone is gone and nothing is left to do.
#[derive(Clone)]
pub struct SessionHandle {
    pub(super) driver: DriverLink,
    pub(super) engine: Arc<Engine>,
    pub(super) session_id: String,
    pub(super) context: Arc<RequestContext>,
    pub(super) stop: Stopper,
    pub(super) finished: Finishing,
    /// Dropped with the last clone, by which the drive learns of it.
    pub(super) _held: Arc<oneshot::Sender<()>>,
}

impl SessionHandle {
    /// The session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Submits a user's message. It starts a turn, or waits for the one that runs; the same id again is the same message.
    ///
    /// # Errors
    /// When no model would take it, or the session has ended.
    pub fn submit(&self, input: InputAdmitted) -> Result<(), RequestError> {
        input.check()?;
        self.driver.submit(input)
    }

    /// Answers a question: with allow or deny, or with the result of a call that runs outside the runtime. The first
    /// answer counts, and is durable when this returns; every other one learns which did.
    ///
    /// # Errors
    /// When another answer was first, the question is not pending, or it wants another kind of answer.
    pub async fn answer(&self, action: &ActionId, answer: Answer) -> Result<(), AnswerError> {
        let outcome = self.engine.common.hub.answer(action, answer.clone(), Receipt::Durable).await;
        if !matches!(outcome, Err(AnswerError::NotPending | AnswerError::Withdrawn)) {
            return outcome;
        }
        // The question may be on record without being open: its turn, or its agent, is not driven at this moment.
        let action = action.clone();
        let late =
            self.driver.run_with_receipt(Receipt::Durable, move |driver| driver.answer_late(&action, answer));
        match late.await {
            Ok(LateAnswer::Unknown) | Err(_) => outcome,
            Ok(late) => late.counts(),
        }
    }

    /// Has a request served and waits for its answer.
    ///
    /// # Errors
    /// When it cannot be served, or the session has ended.
    pub async fn request<R: Request>(&self, request: R) -> Result<R::Answer, RequestError> {
        request.serve(&self.context).await
    }

    /// Stops the turn that runs, if one does. Inputs that wait keep their place.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn interrupt(&self, by: Actor) -> Result<InterruptReceipt, RequestError> {
        self.request(super::requests::Interrupt { by }).await
    }

    /// A sink that is attached can answer questions from now on, or no longer.
    pub fn attendance_changed(&self) {
        self.engine.common.hub.attendance_changed();
    }

    /// Attaches a sink that takes events as they happen, before the effect that they announce.
    #[must_use]
    pub fn attach(&self, sink: Arc<dyn Sink>) -> AttachedSink {
        self.engine.common.hub.attach(sink)
    }

    /// Subscribes: the messages of every record after number `after`, then those that follow, without gap or repeat.
    /// Without `after`, only what follows.
    #[must_use]
    pub fn subscribe(&self, after: Option<u64>, wants: Wants) -> Subscription {
        let subscription = Subscription::new(
            &self.engine.common.hub,
            self.context.location(),
            (&self.session_id, after),
            wants,
        );
        if let Some(elicitations) = self.context.elicitations() {
            subscription.hear_of(elicitations);
        }
        subscription
    }

    /// What the session is doing.
    #[must_use]
    pub fn view(&self) -> SessionView {
        let questions = self.engine.common.hub.open_questions();
        let state = match (questions.is_empty(), self.stop.runs()) {
            (false, _) => SessionState::RequiresAction,
            (true, true) => SessionState::Running,
            (true, false) => SessionState::Idle,
        };
        SessionView { state, questions }
    }

    /// The model that answers.
    #[must_use]
    pub fn model(&self) -> ModelFacts {
        self.engine.model.facts()
    }

    /// The names of the tools that the model sees.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.engine.toolbox.names()
    }

    /// Stops it from outside, without keeping it alive.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Moves running commands to the background; it does not keep the session alive. Answers with how many moved.
    #[must_use]
    pub fn mover(&self) -> Arc<dyn Fn() -> usize + Send + Sync> {
        let shared = Arc::clone(&self.engine.shared);
        Arc::new(move || shared.move_to_background(None))
    }

    /// The tool of an MCP server that answers questions for a person; it does not keep the session alive.
    #[must_use]
    pub fn permission_tool(&self, tool: &str) -> PermissionTool {
        let (servers, tool) = (Arc::downgrade(self.engine.toolbox.servers()), tool.to_owned());
        Arc::new(move |question| {
            let (servers, tool) = (servers.upgrade(), tool.clone());
            async move { Some(ask_tool(&*servers?, &tool, &question).await) }.boxed()
        })
    }

    /// Completes when the session has ended and everything of it is written.
    pub fn finished(&self) -> Finishing {
        self.finished.clone()
    }

    /// Ends the session and waits for its end.
    pub async fn close(self) -> Arc<Finished> {
        self.stop.close();
        let finished = self.finished.clone();
        drop(self);
        finished.await
    }
}

/// A finishing that waits for a task.
pub(super) fn finishing(task: tokio::task::JoinHandle<Finished>, session_id: String) -> Finishing {
    async move {
        let finished = task.await.unwrap_or_else(|error| Finished {
            session_id,
            state: qoder_core::State::default(),
            last: None,
            error: std::sync::Mutex::new(Some(DriveError::Internal(error.to_string()))),
        });
        Arc::new(finished)
    }
    .boxed()
    .shared()
}
