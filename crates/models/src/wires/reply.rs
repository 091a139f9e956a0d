//! What a protocol makes of a response: the decoder of its events, the complete reply, and where its pieces go.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::ModelEvent;
use qoder_types::{ContentBlock, ModelFailure, StopReason, Usage};

/// A complete reply before it is priced and timed.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) usage: Usage,
    pub(crate) request_id: Option<String>,
    /// What is odd about how it came, for people.
    pub(crate) note: Option<&'static str>,
}

/// Reads the events of one response.
pub(crate) trait Decoder: Send {
    /// Takes the `data` of one event. `Ok(true)` when the reply is complete.
    fn event(&mut self, data: String) -> Result<bool, ModelFailure>;
    /// True when the reply counts as complete although the connection ended without a last event.
    fn may_end(&self) -> bool {
        false
    }
    /// True when everything was said although no event says so: the last one came, or the response ended behind it.
    /// `is_ended` says that the server ended it; a connection that was only closed may have been cut.
    fn is_said(&mut self, is_ended: bool) -> bool {
        let _ = is_ended;
        false
    }
    /// The reply. Only called when it is complete.
    fn finish(self: Box<Self>) -> Decoded;
}

/// Takes events on their way to the reader.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<VecDeque<ModelEvent>>>);

impl Sink {
    /// Adds an event.
    pub(crate) fn push(&self, event: ModelEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
    }

    /// Adds a piece of the reply.
    pub(crate) fn partial(&self, json: String) {
        self.push(ModelEvent::Partial(json));
    }

    /// Takes the oldest event out.
    pub(crate) fn pop(&self) -> Option<ModelEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
