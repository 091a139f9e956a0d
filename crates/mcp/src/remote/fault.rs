//! Why a connection ended, noted once. The first part that notices the end writes it down; everything that waits for the
//! server learns of it at once, and not only when the last buffer is empty.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use crate::peer::Challenge;

/// The reason of an end without an explanation.
pub(super) const CLOSED: &str = "the server closed the connection";

/// The end of one connection.
#[derive(Debug, Default)]
pub(super) struct Fault {
    text: Mutex<Option<String>>,
    challenge: Mutex<Option<Challenge>>,
    note: Mutex<Option<String>>,
    gone: CancellationToken,
}

impl Fault {
    /// The connection ends for this reason, unless there is one already.
    pub(super) fn fail(&self, text: impl Into<String>) {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text.into());
        self.gone.cancel();
    }

    /// The reason, when there is one.
    pub(super) fn text(&self) -> Option<String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server wants credentials; kept for where the answer itself gets lost on its way.
    pub(super) fn challenge(&self, challenge: &Challenge) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge.clone());
    }

    /// The last challenge.
    pub(super) fn last_challenge(&self) -> Option<Challenge> {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something went wrong that may turn out to be the reason of the end.
    pub(super) fn note(&self, text: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// The reason, or what comes closest to one.
    pub(super) fn best_text(&self) -> String {
        let note = self.note.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.text().filter(|text| text != CLOSED).or(note).unwrap_or_else(|| CLOSED.to_owned())
    }

    /// Completes when the connection has ended.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

/// A transport that ends when its fault says so, and that notes its fault when it ends.
pub(super) struct Watched<T> {
    inner: T,
    fault: Arc<Fault>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, fault: Arc<Fault>) -> Self {
        Self { inner, fault }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let received = tokio::select! {
            biased;
            () = self.fault.gone() => None,
            received = self.inner.receive() => received,
        };
        if received.is_none() {
            self.fault.fail(CLOSED);
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.fault.fail("the connection was closed");
        self.inner.close().await
    }
}
