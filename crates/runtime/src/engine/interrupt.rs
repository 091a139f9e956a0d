//! A person's wish to stop the running turn, and the end of the process. Cloned freely; each clone can ask, wait and trigger. A new turn starts
//! with a new one, so an old wish never stops it.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use tokio::sync::watch;

pub use qoder_core::ports::Cancelled;

/// The wish to stop.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<watch::Sender<bool>>);

/// That the process is about to end, and by which signal: what runs stops, and its turn stays open to be resumed. One for
/// a session and all its agents.
#[derive(Debug, Clone, Default)]
pub struct Ending(Arc<OnceLock<&'static str>>);

impl Ending {
    /// The process ends by this signal. The first one counts.
    pub fn begin(&self, signal: &'static str) {
        // A second signal changes nothing.
        let _ = self.0.set(signal);
    }

    /// The signal by which the process ends.
    #[must_use]
    pub fn signal(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Interrupt {
    /// Asks the turn to stop.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// True once it was asked.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when it is asked.
    pub fn cancelled(&self) -> Cancelled {
        let mut receiver = self.0.subscribe();
        async move {
            // The sender lives in `self`; if every clone is gone no interrupt can come.
            if receiver.wait_for(|asked| *asked).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
        .shared()
    }
}
