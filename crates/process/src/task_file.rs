//! The output file of a background task: filled by streams, watched by readers that wait for more.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::output::OutputFile;

/// The file of a task, shared by the streams that fill it and by those who want to know how far it is.
#[derive(Debug, Clone)]
pub struct TaskFile {
    path: Arc<Path>,
    file: Arc<Mutex<(OutputFile, Option<String>)>>,
    taken: Arc<watch::Sender<u64>>,
}

impl TaskFile {
    /// Nothing came yet.
    #[must_use]
    pub fn new(file: OutputFile) -> Self {
        let path = file.path().into();
        Self { path, file: Arc::new(Mutex::new((file, None))), taken: Arc::new(watch::Sender::new(0)) }
    }

    /// Takes in `bytes`. What the system does not let us keep is lost, and the task continues: only the loss is noted.
    pub fn append(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        {
            let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            let (file, problem) = &mut *guard;
            // After a gap the file would mislead.
            if problem.is_none() {
                *problem = file.append(bytes).err().map(|error| error.to_string());
            }
        }
        self.taken.send_modify(|taken| *taken += bytes.len() as u64);
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes came, kept or not.
    #[must_use]
    pub fn taken(&self) -> u64 {
        *self.taken.borrow()
    }

    /// Completes when more than `known` bytes have come.
    pub async fn more_than(&self, known: u64) {
        // The sender is ours, so waiting cannot fail.
        let _ = self.taken.subscribe().wait_for(|taken| *taken > known).await;
    }

    /// Why output was lost, when it was.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_loses_output_and_says_so() {
        let file = TaskFile::new(OutputFile::on_full_disk());
        file.append(b"one");
        file.append(b"two");
        assert_eq!(file.taken(), 6);
        assert!(file.problem().unwrap().contains("No space left"), "{:?}", file.problem());
    }
}
