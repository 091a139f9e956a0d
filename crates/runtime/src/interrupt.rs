//! A person's wish to stop the running turn. Cloned freely; each clone can ask, wait and trigger. A new turn starts
//! with a new one, so an old wish never stops it.

use std::sync::Arc;

use futures::FutureExt;
use qoder_core::ports::Cancelled;
use tokio::sync::watch;

/// The wish to stop.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<watch::Sender<bool>>);

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
            // The sender lives in `self`; if every clone is gone nobody can ask any more.
            if receiver.wait_for(|asked| *asked).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
        .shared()
    }
}
