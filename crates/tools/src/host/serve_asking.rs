//! Questions of a tool in the tool host that only the caller can answer. The tool's thread waits; the others do not.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use qoder_types::Observation;

use super::lines::Sender;
use super::message::FromHost;
use super::serve::lock;

/// How long the caller may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the caller said.
pub(crate) enum Answer {
    Observed(Option<Box<Observation>>),
    Hidden(bool),
}

/// The questions that are open.
pub(crate) struct Asking {
    sender: Sender,
    next: AtomicU64,
    open: Mutex<HashMap<u64, mpsc::Sender<Answer>>>,
}

impl Asking {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender, next: AtomicU64::new(0), open: Mutex::default() }
    }

    pub(crate) fn answer(&self, question: u64, answer: Answer) {
        if let Some(waiting) = lock(&self.open).remove(&question) {
            // It may have given up.
            let _ = waiting.send(answer);
        }
    }

    /// What the session last saw of a file.
    pub(crate) fn observed(&self, call: u64, path: &Path) -> Option<Observation> {
        let path = path.to_path_buf();
        match self.ask(|question| FromHost::Observe { question, call, path })? {
            Answer::Observed(observation) => observation.map(|seen| *seen),
            Answer::Hidden(_) => None,
        }
    }

    /// Whether a search must pass over a place; it does when no one says.
    pub(crate) fn is_hidden(&self, call: u64, path: &Path) -> bool {
        let path = path.to_path_buf();
        match self.ask(|question| FromHost::IsHidden { question, call, path }) {
            Some(Answer::Hidden(is_hidden)) => is_hidden,
            Some(Answer::Observed(_)) | None => true,
        }
    }

    fn ask(&self, message: impl FnOnce(u64) -> FromHost) -> Option<Answer> {
        let question = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = mpsc::channel();
        lock(&self.open).insert(question, sender);
        self.sender.send(&message(question));
        let said = tokio::task::block_in_place(|| answer.recv_timeout(PATIENCE).ok());
        lock(&self.open).remove(&question);
        said
    }
}
