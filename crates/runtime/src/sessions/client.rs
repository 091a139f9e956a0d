//! A handle as a front sees any session: see [`SessionClient`].

use futures::FutureExt;
use qoder_protocol::control::HostRequest;
use qoder_protocol::{
    ActionId, Answer, AnswerError, BoxFuture, ElicitationAnswer, EventStream, InterruptReceipt, Leave,
    RequestError, SessionClient, SessionEvent, SessionView, Wants,
};
use qoder_types::Actor;
use qoder_types::record::InputAdmitted;
use serde_json::Value;

use super::handle::{Finishing, SessionHandle};
use super::log_events::LogEvents;
use super::subscribe::Subscription;
use crate::session::agent_logs;

/// Why a turn stays open when its front goes: the same word that a terminal that is closed leaves.
const LEFT_OPEN: &str = "SIGHUP";

impl SessionClient for SessionHandle {
    fn session_id(&self) -> &str {
        SessionHandle::session_id(self)
    }

    fn submit(&self, input: InputAdmitted) -> BoxFuture<'_, Result<(), RequestError>> {
        std::future::ready(SessionHandle::submit(self, input)).boxed()
    }

    fn answer(&self, action: ActionId, answer: Answer) -> BoxFuture<'_, Result<(), AnswerError>> {
        async move { SessionHandle::answer(self, &action, answer).await }.boxed()
    }

    fn answer_elicitation(
        &self,
        elicitation_id: String,
        answer: ElicitationAnswer,
    ) -> BoxFuture<'_, Result<(), RequestError>> {
        let answered = match self.context.elicitations() {
            Some(open) => open.answer(&elicitation_id, answer),
            None => Err(RequestError::refused("questions of servers are answered by another front")),
        };
        std::future::ready(answered).boxed()
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'_, Result<Value, RequestError>> {
        async move { self.context.serve(request).await }.boxed()
    }

    fn subscribe(&self, after: Option<u64>, wants: Wants) -> Box<dyn EventStream> {
        let subscription = SessionHandle::subscribe(self, after, wants);
        Box::new(Events { subscription, finished: self.finished(), is_over: false })
    }

    fn subscribe_agent(&self, agent_id: &str) -> Option<Box<dyn EventStream>> {
        let logs = agent_logs(self.context.location()).ok()?;
        let log = logs.into_iter().find(|log| log.agent_id == agent_id)?;
        Some(Box::new(LogEvents::open(&log.location.files()?, agent_id).ok()?))
    }

    fn view(&self) -> BoxFuture<'_, Result<SessionView, RequestError>> {
        std::future::ready(Ok(SessionHandle::view(self))).boxed()
    }

    fn interrupt(&self, by: Actor) -> BoxFuture<'_, Result<InterruptReceipt, RequestError>> {
        async move { SessionHandle::interrupt(self, by).await }.boxed()
    }

    fn close(&self, leave: Leave) -> BoxFuture<'_, ()> {
        let stop = self.stopper();
        match leave {
            Leave::EndTurn => stop.close(),
            Leave::KeepTurnOpen => stop.end(LEFT_OPEN),
        }
        let finished = self.finished();
        async move { drop(finished.await) }.boxed()
    }
}

/// A subscription that ends with its session.
struct Events {
    subscription: Subscription,
    finished: Finishing,
    is_over: bool,
}

impl Events {
    fn end(&mut self, problem: Option<String>) -> SessionEvent {
        self.is_over = true;
        SessionEvent::Ended { problem }
    }
}

impl EventStream for Events {
    fn next(&mut self) -> BoxFuture<'_, SessionEvent> {
        async move {
            if self.is_over {
                return std::future::pending().await;
            }
            let finished = self.finished.clone();
            tokio::select! {
                biased;
                event = self.subscription.next() => event,
                finished = finished => match self.subscription.try_next() {
                    Some(event) => event,
                    None => self.end(finished.problem()),
                },
            }
        }
        .boxed()
    }

    fn try_next(&mut self) -> Option<SessionEvent> {
        if self.is_over {
            return None;
        }
        if let Some(event) = self.subscription.try_next() {
            return Some(event);
        }
        let problem = self.finished.peek()?.problem();
        Some(self.end(problem))
    }
}
