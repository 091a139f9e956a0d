//! The program around this front: its streams, its signals, and what it reports in its own words.

use futures::future::BoxFuture;
use qoder_runtime::sessions::SessionHandle;

use crate::console::Console;

/// The program around this front.
pub trait Program: Console {
    /// The session is open and about to be driven.
    fn opened(&self, session: &SessionHandle);

    /// A user message was not taken. Its sender waits for a result.
    fn refused(&self, problem: String, session_id: &str);
}

/// A signal that stops something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: the turn shall stop.
    Interrupt,
    /// The program ends by this one.
    End(&'static str),
}

/// The signals that stop something, as they come.
pub trait Signals: Send {
    /// The next one.
    fn next(&mut self) -> BoxFuture<'_, Signal>;
}
