//! Stopping a session from outside: its turn, or all of it. A stopper does not keep the session alive, so that a watcher of
//! signals may hold one.

use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::Cancelled;

use crate::engine::interrupt::{Ending, Interrupt};

/// Stops a session.
#[derive(Clone)]
pub struct Stopper {
    turn: Arc<Mutex<Turn>>,
    closing: Interrupt,
    ending: Ending,
}

/// What an interrupt met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// A turn that runs.
    Turn,
    /// No turn yet.
    Idle,
    /// It was wanted before.
    Again,
}

#[derive(Default)]
struct Turn {
    interrupt: Interrupt,
    runs: bool,
}

impl Stopper {
    pub(super) fn new(ending: Ending) -> Self {
        Self { turn: Arc::default(), closing: Interrupt::default(), ending }
    }

    /// Stops the turn that runs, or the one that is about to.
    pub fn interrupt(&self) -> Stopped {
        let turn = self.lock();
        let again = turn.interrupt.is_triggered();
        turn.interrupt.trigger();
        match (turn.runs, again) {
            (_, true) => Stopped::Again,
            (true, false) => Stopped::Turn,
            (false, false) => Stopped::Idle,
        }
    }

    /// Ends the session: its turn is stopped and gets its result, then nothing follows.
    pub fn close(&self) {
        self.closing.trigger();
        self.lock().interrupt.trigger();
    }

    /// The process ends by this signal: what runs stops, and its turn stays open to be resumed.
    pub fn end(&self, signal: &'static str) {
        self.ending.begin(signal);
        self.close();
    }

    /// True while a turn runs.
    pub(super) fn runs(&self) -> bool {
        self.lock().runs
    }

    /// Completes when the session shall end.
    pub(super) fn closed(&self) -> Cancelled {
        self.closing.cancelled()
    }

    /// Nothing runs; whatever comes next has this interrupt of its own.
    pub(super) fn rest(&self) -> Interrupt {
        let mut turn = self.lock();
        *turn = Turn::default();
        turn.interrupt.clone()
    }

    /// A turn begins.
    pub(super) fn begin(&self) {
        self.lock().runs = true;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
