//! A store that keeps nothing: for sessions that shall leave no trace on disk. The state in memory is the session.
//! Appending always succeeds, so a session on it behaves as any other until the process ends.

use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::Record;

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct MemoryStore;

impl LogStore for MemoryStore {
    fn append(&mut self, _records: &[Record]) -> Result<(), LogStoreError> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        Ok(())
    }
}
