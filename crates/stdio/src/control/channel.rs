//! Requests to the program that started us, and its answers. Each request has an id of ours and is answered once, is
//! withdrawn when its caller no longer waits, and fails when the other side can answer no more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::control::{ControlLine, ControlResponse, RuntimeRequest};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::output::JsonLines;

/// What an answer says, or why none came.
pub type Answered = Result<Value, String>;

/// The way to the program that started us.
pub struct Channel {
    output: Arc<JsonLines>,
    numbers: AtomicU64,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    open: bool,
    requests: HashMap<String, oneshot::Sender<Answered>>,
}

impl Channel {
    /// Speaks through `output`.
    pub fn new(output: Arc<JsonLines>) -> Arc<Self> {
        let waiting = Waiting { open: true, requests: HashMap::new() };
        Arc::new(Self { output, numbers: AtomicU64::new(0), waiting: Mutex::new(waiting) })
    }

    /// Where lines go.
    pub fn output(&self) -> &JsonLines {
        &self.output
    }

    /// True while answers can arrive.
    pub fn is_open(&self) -> bool {
        self.lock().open
    }

    /// Asks for something. The request is on its way when this returns; dropping the future withdraws it.
    pub fn request(self: &Arc<Self>, request: RuntimeRequest) -> BoxFuture<'static, Answered> {
        let id = self.new_id();
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if !waiting.open {
                return std::future::ready(Err(closed())).boxed();
            }
            waiting.requests.insert(id.clone(), sender);
        }
        let guard = Withdraw { channel: Arc::clone(self), id: Some(id.clone()) };
        let line = ControlLine::ControlRequest { request_id: id, request };
        if let Err(error) = self.output.control(&line) {
            return std::future::ready(Err(format!("the request could not be sent: {error}"))).boxed();
        }
        async move {
            let mut guard = guard;
            let answer = receiver.await.unwrap_or_else(|_| Err(closed()));
            guard.id = None;
            answer
        }
        .boxed()
    }

    /// Asks without waiting for an answer.
    pub fn notify(&self, request: RuntimeRequest) {
        let line = ControlLine::ControlRequest { request_id: self.new_id(), request };
        // As in `respond`.
        let _ = self.output.control(&line);
    }

    fn new_id(&self) -> String {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        format!("cli_{number}_{:08x}", uuid::Uuid::new_v4().as_fields().0)
    }

    /// Takes an answer; one without a pending request is ignored.
    pub fn resolve(&self, id: &str, answer: Answered) {
        if let Some(sender) = self.lock().requests.remove(id) {
            // The caller may have stopped waiting at this very moment.
            let _ = sender.send(answer);
        }
    }

    /// No further answer can come: everything that waits fails.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.open = false;
        for (_, sender) in waiting.requests.drain() {
            let _ = sender.send(Err(closed()));
        }
    }

    /// Answers a request of the other side.
    pub fn respond(&self, id: &str, answer: Answered) {
        let request_id = id.to_owned();
        let response = match answer {
            Ok(response) => {
                // A long answer loses the middle of its texts; a lost one would leave the other side waiting.
                let response = self.output.bounded(response);
                ControlResponse::Success { request_id, response }
            }
            Err(error) => {
                let error = self.output.bounded(Value::String(error));
                let error = error.as_str().unwrap_or_default().to_owned();
                ControlResponse::Error { request_id, error }
            }
        };
        // A closed output is met again, and reported, by the turn.
        let _ = self.output.control(&ControlLine::<RuntimeRequest>::ControlResponse { response });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> String {
    "the program that started us has closed its side; no one can answer".to_owned()
}

/// Withdraws a request that is given up.
struct Withdraw {
    channel: Arc<Channel>,
    id: Option<String>,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        if self.channel.lock().requests.remove(&id).is_some() {
            let line = ControlLine::<RuntimeRequest>::ControlCancelRequest { request_id: id };
            // As in `respond`.
            let _ = self.channel.output.control(&line);
        }
    }
}
