//! One request: its timer, which progress and open questions to a person reset, its withdrawal when its caller no longer
//! waits, and the rounds in which the newest revision lets a server ask back inside of its answer.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_core::ports::Cancelled;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    InputRequiredResult, InputResponses, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::failure;
use super::handler::{Handler, Watcher};
use crate::PeerError;
use crate::peer::CallProgress;

/// How often a server may ask back before it must answer.
const MOST_QUESTIONS_BACK: usize = 10;
/// How long to wait before asking again when the server asked nothing back.
const PAUSE_WITHOUT_QUESTION: Duration = Duration::from_millis(100);

/// Who asks.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: Arc<Handler>,
}

/// How long and for whom.
#[derive(Clone)]
pub(super) struct Terms {
    /// Without progress.
    pub(super) patience: Duration,
    pub(super) cancelled: Option<Cancelled>,
    pub(super) progress: Arc<dyn Fn(CallProgress) + Send + Sync>,
}

impl Terms {
    /// Without interrupts and without progress.
    pub(super) fn within(patience: Duration) -> Self {
        Self { patience, cancelled: None, progress: Arc::new(|_| {}) }
    }
}

impl Asker {
    /// Sends the request and waits for its answer.
    pub(super) async fn ask(&self, request: ClientRequest, terms: &Terms) -> Result<ServerResult, PeerError> {
        let fault = &self.handler.fault;
        let interrupted = match &terms.cancelled {
            Some(cancelled) => cancelled.clone().left_future(),
            None => std::future::pending().right_future(),
        };
        tokio::pin!(interrupted);
        let sent = tokio::select! {
            biased;
            () = &mut interrupted => return Err(interruption()),
            () = fault.gone() => return Err(failure::gone(fault)),
            sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()) => sent,
        };
        let mut handle = sent.map_err(|error| failure::of_request(error, fault))?;
        let tick = Arc::new(Notify::new());
        let mut running = Running::new(self, handle.id.clone(), handle.progress_token.clone());
        let watcher = Watcher { tell: Arc::clone(&terms.progress), tick: Arc::clone(&tick) };
        self.handler.watch(handle.progress_token.clone(), &watcher);
        let mut deadline = Instant::now() + terms.patience;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    running.answered();
                    return match answer {
                        Ok(answer) => answer.map_err(|error| failure::of_request(error, fault)),
                        Err(_) => Err(failure::gone(fault)),
                    };
                }
                () = &mut interrupted => return Err(interruption()),
                () = fault.gone() => {
                    running.answered();
                    return Err(failure::gone(fault));
                }
                () = tick.notified() => deadline = Instant::now() + terms.patience,
                () = tokio::time::sleep_until(deadline) => {
                    if !self.handler.is_asking() {
                        return Err(PeerError::Failed(format!(
                            "the server neither answered nor reported progress within {} s",
                            terms.patience.as_secs_f64()
                        )));
                    }
                    // The server waits for a person, and so do we.
                    deadline = Instant::now() + terms.patience;
                }
            }
        }
    }

    /// As [`ask`](Self::ask), and answers what the server asks inside of its answers. `again` makes the next request.
    pub(super) async fn ask_in_rounds(
        &self,
        again: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest + Send,
        terms: &Terms,
    ) -> Result<ServerResult, PeerError> {
        let (mut responses, mut state) = (None, None);
        for _ in 0..MOST_QUESTIONS_BACK {
            match self.ask(again(responses.take(), state.take()), terms).await? {
                ServerResult::InputRequiredResult(required) => {
                    (responses, state) = self.fulfil(required).await?;
                }
                answer => return Ok(answer),
            }
        }
        Err(PeerError::Failed(format!("the server asked back {MOST_QUESTIONS_BACK} times without an answer")))
    }

    async fn fulfil(
        &self,
        required: InputRequiredResult,
    ) -> Result<(Option<InputResponses>, Option<String>), PeerError> {
        let requests = required.input_requests.unwrap_or_default();
        if requests.is_empty() {
            tokio::time::sleep(PAUSE_WITHOUT_QUESTION).await;
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            responses.insert(key, self.handler.fulfil(request).await.map_err(PeerError::Failed)?);
        }
        Ok(((!responses.is_empty()).then_some(responses), required.request_state))
    }
}

fn interruption() -> PeerError {
    PeerError::Failed("the call was interrupted".to_owned())
}

/// A request that is under way. Dropping it before its answer has come sends the server a cancellation.
struct Running {
    peer: Peer<RoleClient>,
    handler: Arc<Handler>,
    token: ProgressToken,
    id: Option<RequestId>,
}

impl Running {
    fn new(asker: &Asker, id: RequestId, token: ProgressToken) -> Self {
        Self { peer: asker.peer.clone(), handler: Arc::clone(&asker.handler), token, id: Some(id) }
    }

    fn answered(&mut self) {
        self.id = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handler.forget(&self.token);
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let reason = Some("the call was interrupted".to_owned());
        let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
        let peer = self.peer.clone();
        runtime.spawn(async move {
            // Nothing depends on whether it arrives.
            let _ = peer.send_notification(ClientNotification::CancelledNotification(notification)).await;
        });
    }
}
