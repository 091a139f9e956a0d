//! How callbacks and tools learn that their answer is no longer needed. A token is cheap to clone; it can be asked or
//! waited for. Work that a callback started elsewhere sees it too, also after the callback itself was dropped.

use futures::FutureExt;
use qoder_runtime::{Cancelled, Interrupt};

/// Says when the work it was given to shall stop.
///
/// ```
/// # use qoder_agent_sdk::CancellationToken;
/// let token = CancellationToken::never();
/// assert!(!token.is_cancelled());
/// ```
#[derive(Clone)]
pub struct CancellationToken(Cancelled);

impl CancellationToken {
    /// A token that is never cancelled.
    #[must_use]
    pub fn never() -> Self {
        Self(std::future::pending().boxed().shared())
    }

    /// True once the work shall stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // A shared future completes only when it is polled.
        self.0.clone().now_or_never().is_some()
    }

    /// Completes when the work shall stop.
    pub async fn cancelled(&self) {
        self.0.clone().await;
    }
}

impl From<Cancelled> for CancellationToken {
    fn from(cancelled: Cancelled) -> Self {
        Self(cancelled)
    }
}

impl std::fmt::Debug for CancellationToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Cancels its token when it is dropped before it was disarmed: a callback whose future is dropped has been withdrawn.
pub(crate) struct CancelOnDrop {
    interrupt: Interrupt,
    armed: bool,
}

impl CancelOnDrop {
    pub(crate) fn new() -> (Self, CancellationToken) {
        let interrupt = Interrupt::default();
        let token = CancellationToken(interrupt.cancelled());
        (Self { interrupt, armed: true }, token)
    }

    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.interrupt.trigger();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_callback_cancels_its_token() {
        let (guard, token) = CancelOnDrop::new();
        assert!(!token.is_cancelled());
        drop(guard);
        assert!(token.is_cancelled());
    }

    #[test]
    fn a_finished_callback_does_not() {
        let (guard, token) = CancelOnDrop::new();
        guard.disarm();
        assert!(!token.is_cancelled());
    }
}
