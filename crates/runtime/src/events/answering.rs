//! A sink's answers on their way: each question that it takes becomes a future, and a question that is resolved elsewhere
//! drops its future at once, so that the one who was asked learns before anything else happens.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures::future::BoxFuture;
use qoder_protocol::{ActionId, Answer};
use tokio::task::AbortHandle;

use super::{Asking, Receipt};

/// An answer that is being made; `None` once it is withdrawn.
type Making = Arc<Mutex<Option<BoxFuture<'static, Option<Answer>>>>>;

/// The questions that a sink is answering.
#[derive(Default)]
pub struct Answering {
    open: Mutex<HashMap<ActionId, (Making, AbortHandle)>>,
}

impl Answering {
    /// Answers with what the future comes to; nothing counts as no one having answered.
    pub fn begin(&self, asking: &Asking, answer: BoxFuture<'static, Option<Answer>>) {
        let making: Making = Arc::new(Mutex::new(Some(answer)));
        let (asking, shared) = (asking.clone(), Arc::clone(&making));
        let id = asking.question.action();
        let task = tokio::spawn(async move {
            let made = poll_fn(|context| {
                let mut making = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match making.as_mut() {
                    Some(answer) => answer.as_mut().poll(context).map(Some),
                    None => Poll::Ready(None),
                }
            });
            if let Some(answer) = made.await {
                let answer = answer.unwrap_or_else(Answer::nobody);
                // The hub informs everyone which answer counts, this sink too.
                drop(asking.answers.answer(&asking.question.tool_use_id, answer, Receipt::Taken).await);
            }
        });
        self.lock().insert(id, (making, task.abort_handle()));
    }

    /// The question is closed: no answer is needed.
    pub fn resolved(&self, action: &ActionId) {
        let Some((making, task)) = self.lock().remove(action) else { return };
        let withdrawn = making.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(withdrawn);
        task.abort();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ActionId, (Making, AbortHandle)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
