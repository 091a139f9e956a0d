//! How long a turn may take when the main conversation runs as an agent with a time limit. The turn that reaches it is
//! interrupted like one that a person interrupts; its result says why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use qoder_types::record::TurnEnded;
use tokio::task::JoinHandle;

use super::Driver;

/// The time of the turn that runs. Dropping it stops the clock.
pub(super) struct TurnTime {
    most: Duration,
    is_up: Arc<AtomicBool>,
    clock: JoinHandle<()>,
}

impl Drop for TurnTime {
    fn drop(&mut self) {
        self.clock.abort();
    }
}

impl Driver<'_> {
    /// A turn begins, or continues in this process.
    pub(super) fn begin_time(&mut self) {
        self.time = self.engine.bounds.time_limit.map(|most| {
            let is_up = Arc::new(AtomicBool::new(false));
            let (told, interrupt) = (Arc::clone(&is_up), self.interrupt.clone());
            let clock = tokio::spawn(async move {
                tokio::time::sleep(most).await;
                told.store(true, Ordering::SeqCst);
                interrupt.trigger();
            });
            TurnTime { most, is_up, clock }
        });
    }

    /// A turn has ended: says so when it was for the time.
    pub(super) fn end_time(&mut self, end: &mut TurnEnded) {
        let Some(time) = self.time.take() else { return };
        if end.is_error && time.is_up.load(Ordering::SeqCst) {
            let minutes = time.most.as_secs_f64() / 60.0;
            end.errors = vec![format!("The time limit of the agent was reached ({minutes} minutes a turn).")];
        }
    }
}
