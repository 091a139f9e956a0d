//! A session that this process drives, on a thread and a runtime of its own. Whatever a front asks of it runs there, so that
//! what a request starts belongs to the session and not to the front.

use std::sync::Arc;

use qoder_protocol::control::HostRequest;
use qoder_protocol::{
    ActionId, Answer, AnswerError, BoxFuture, ElicitationAnswer, EventStream, InterruptReceipt, Leave,
    RequestError, SessionClient, SessionView, Wants,
};
use qoder_runtime::sessions::SessionHandle;
use qoder_types::Actor;
use qoder_types::record::InputAdmitted;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::exit::{Exit, Fault};

/// A thread with a runtime, on which sessions are driven.
pub struct SessionThread {
    runtime: Handle,
    /// Dropped with this, by which the thread ends.
    _stop: oneshot::Sender<()>,
}

impl SessionThread {
    /// Starts it.
    pub fn start() -> Result<Self, Fault> {
        let fault = |error: std::io::Error| Fault {
            exit: Exit::General,
            message: format!("no thread for the session can be started: {error}"),
            hint: String::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || {
                // Either way it ends: by a word or by the sender being gone.
                let _ = runtime.block_on(stopped);
                // A walk of a tree must not hold the exit up.
                runtime.shutdown_background();
            })
            .map_err(fault)?;
        Ok(Self { runtime: handle, _stop: stop })
    }

    /// The runtime.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

/// A session that is driven on another thread.
pub struct DrivenSession {
    session: Arc<SessionHandle>,
    runtime: Handle,
}

impl DrivenSession {
    /// A session whose runtime this is.
    pub fn new(session: SessionHandle, runtime: Handle) -> Self {
        Self { session: Arc::new(session), runtime }
    }

    /// Runs something with the session, where it is driven.
    fn there<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<SessionHandle>) -> F,
        lost: T,
    ) -> BoxFuture<'static, T> {
        let task = self.runtime.spawn(work(Arc::clone(&self.session)));
        Box::pin(async move { task.await.unwrap_or(lost) })
    }
}

impl SessionClient for DrivenSession {
    fn session_id(&self) -> &str {
        SessionClient::session_id(&*self.session)
    }

    fn submit(&self, input: InputAdmitted) -> BoxFuture<'_, Result<(), RequestError>> {
        SessionClient::submit(&*self.session, input)
    }

    fn answer(&self, action: ActionId, answer: Answer) -> BoxFuture<'_, Result<(), AnswerError>> {
        let work = |session: Arc<SessionHandle>| async move {
            SessionClient::answer(&*session, action, answer).await
        };
        self.there(work, Err(AnswerError::Withdrawn))
    }

    fn answer_elicitation(
        &self,
        elicitation_id: String,
        answer: ElicitationAnswer,
    ) -> BoxFuture<'_, Result<(), RequestError>> {
        self.session.answer_elicitation(elicitation_id, answer)
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'_, Result<Value, RequestError>> {
        let work =
            |session: Arc<SessionHandle>| async move { SessionClient::request(&*session, request).await };
        self.there(work, Err(RequestError::Ended))
    }

    fn subscribe(&self, after: Option<u64>, wants: Wants) -> Box<dyn EventStream> {
        SessionClient::subscribe(&*self.session, after, wants)
    }

    fn subscribe_agent(&self, agent_id: &str) -> Option<Box<dyn EventStream>> {
        self.session.subscribe_agent(agent_id)
    }

    fn view(&self) -> BoxFuture<'_, Result<SessionView, RequestError>> {
        SessionClient::view(&*self.session)
    }

    fn interrupt(&self, by: Actor) -> BoxFuture<'_, Result<InterruptReceipt, RequestError>> {
        let work = |session: Arc<SessionHandle>| async move { SessionClient::interrupt(&*session, by).await };
        self.there(work, Err(RequestError::Ended))
    }

    fn close(&self, leave: Leave) -> BoxFuture<'_, ()> {
        SessionClient::close(&*self.session, leave)
    }
}
