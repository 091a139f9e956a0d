//! Runs one model call: attempts, waits, the fallback model, and the stream of events the engine reads.
//!
//! The work is a future that is polled by the stream itself and never spawned, so dropping the stream stops all of it,
//! and it only continues when the reader has taken what is there.

mod retry;
mod side;
mod switched;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::Stream;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use qoder_core::ports::{Model, ModelEvent, ModelFacts, ModelRequest};
use qoder_types::{ModelFailure, ModelReply, StopReason};

use self::retry::deserves_fallback;
use crate::failure::AttemptFailure;
use crate::settings::Price;
use crate::wires::reply::{Decoded, Sink};

use crate::settings::catalog::cost;
pub(crate) use retry::{Attempts, RetryPolicy, Verdict};
pub use side::{ModelByName, side_model};
pub use switched::SwitchedModel;

/// Something that can be asked once. Retries are not its business.
pub(crate) trait Endpoint: Send + Sync {
    /// What is known about it.
    fn facts(&self) -> ModelFacts;
    /// Its price.
    fn price(&self) -> Option<Price>;
    /// Asks once.
    fn attempt<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a Sink,
    ) -> BoxFuture<'a, Result<Decoded, AttemptFailure>>;
}

/// A model with its retries and perhaps a second one behind it.
pub(crate) struct RoutedModel {
    pub(crate) main: Arc<dyn Endpoint>,
    pub(crate) fallback: Option<Arc<dyn Endpoint>>,
    pub(crate) policy: RetryPolicy,
}

impl Model for RoutedModel {
    fn facts(&self) -> ModelFacts {
        self.main.facts()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelFailure>> {
        let sink = Sink::default();
        let work = run(Arc::clone(&self.main), self.fallback.clone(), self.policy, request, sink.clone());
        Box::pin(EventStream { work: Some(Box::pin(work)), last: None, sink })
    }
}

async fn run(
    main: Arc<dyn Endpoint>,
    fallback: Option<Arc<dyn Endpoint>>,
    policy: RetryPolicy,
    request: ModelRequest,
    sink: Sink,
) -> Result<ModelReply, ModelFailure> {
    let started = Instant::now();
    let first = if fallback.is_some() { policy.with_fallback() } else { policy };
    let (decoded, endpoint) = match with_retries(&*main, first, &request, &sink).await {
        Ok(decoded) => (decoded, main),
        Err(failure) => {
            let Some(second) = fallback.filter(|_| deserves_fallback(&failure)) else {
                return Err(failure);
            };
            sink.push(ModelEvent::Fallback { from: main.facts().name, to: second.facts().name, failure });
            (with_retries(&*second, policy, &request, &sink).await?, second)
        }
    };
    Ok(ModelReply {
        cost_usd: cost(endpoint.price(), &decoded.usage),
        provider: endpoint.facts().provider,
        id: decoded.id,
        model: decoded.model,
        content: decoded.content,
        stop_reason: decoded.stop_reason.unwrap_or(StopReason::EndTurn),
        usage: decoded.usage,
        request_id: decoded.request_id,
        duration_api_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

async fn with_retries(
    endpoint: &dyn Endpoint,
    policy: RetryPolicy,
    request: &ModelRequest,
    sink: &Sink,
) -> Result<Decoded, ModelFailure> {
    let mut attempts = Attempts::default();
    loop {
        let failed = match endpoint.attempt(request, sink).await {
            Ok(decoded) => return Ok(decoded),
            Err(failed) => failed,
        };
        let failure = failed.failure.clone();
        match policy.verdict(&mut attempts, failed) {
            Verdict::GiveUp(failure) => return Err(failure),
            Verdict::Wait(delay, max_retries) => {
                sink.push(ModelEvent::Retry {
                    attempt: attempts.count,
                    max_retries,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    failure,
                });
                tokio::time::sleep(delay).await;
            }
        }
    }
}

/// Polls the work and hands out what it produced.
struct EventStream {
    work: Option<BoxFuture<'static, Result<ModelReply, ModelFailure>>>,
    last: Option<Result<ModelEvent, ModelFailure>>,
    sink: Sink,
}

impl Stream for EventStream {
    type Item = Result<ModelEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(event) = this.sink.pop() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(work) = &mut this.work
            && let Poll::Ready(result) = work.as_mut().poll(context)
        {
            this.work = None;
            this.last = Some(result.map(|reply| ModelEvent::Reply(Box::new(reply))));
        }
        // The work may have produced events in this very poll; they come before the end.
        if let Some(event) = this.sink.pop() {
            return Poll::Ready(Some(Ok(event)));
        }
        match this.last.take() {
            Some(last) => Poll::Ready(Some(last)),
            None if this.work.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
