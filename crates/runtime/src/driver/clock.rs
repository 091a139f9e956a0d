//! The clock of a turn: how long it has run, and how long it may when the main conversation runs as an agent with a time
//! limit. The turn that reaches the limit is interrupted like one that a person interrupts; its result says why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use qoder_types::record::TurnEnded;
use tokio::task::JoinHandle;

use crate::engine::interrupt::Interrupt;

/// The clock of the turn that runs.
pub(super) struct TurnClock {
    started: Instant,
    limit: Option<Limit>,
}

/// A limit that is running. Dropping it stops it.
struct Limit {
    most: Duration,
    is_up: Arc<AtomicBool>,
    waiting: JoinHandle<()>,
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.waiting.abort();
    }
}

impl TurnClock {
    /// A clock that starts now, without a limit.
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), limit: None }
    }

    /// A turn begins, or continues in this process: its limit counts from now.
    pub(super) fn begin(&mut self, most: Option<Duration>, interrupt: &Interrupt) {
        self.limit = most.map(|most| {
            let is_up = Arc::new(AtomicBool::new(false));
            let (told, interrupt) = (Arc::clone(&is_up), interrupt.clone());
            let waiting = tokio::spawn(async move {
                tokio::time::sleep(most).await;
                told.store(true, Ordering::SeqCst);
                interrupt.trigger();
            });
            Limit { most, is_up, waiting }
        });
    }

    /// The time of the turn counts from now.
    pub(super) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// How long the turn has run.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A turn has ended: its result says so when that was for the time.
    pub(super) fn end(&mut self, end: &mut TurnEnded) {
        let Some(limit) = self.limit.take() else { return };
        if end.is_error && limit.is_up.load(Ordering::SeqCst) {
            let minutes = limit.most.as_secs_f64() / 60.0;
            end.errors = vec![format!("The time limit of the agent was reached ({minutes} minutes a turn).")];
        }
    }
}
