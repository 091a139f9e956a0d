//! The log of a session that has a seat: appending hands records over, and the barrier completes when the seat has committed
//! them.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::Record;
use serde_json::Value;

use super::shared::Shared;

/// Appends to the log of a session.
pub(super) struct SeatLog(pub(super) Arc<Shared>);

impl LogStore for SeatLog {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        self.0.append(records)
    }

    fn note(&mut self, _: &Value) -> Result<(), LogStoreError> {
        // Notes are titles that models find; a server makes none.
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        // The driver syncs when it has nothing more to do; a caller that needs the outcome awaits the barrier.
        drop(self.0.want_commit(true));
        Ok(())
    }

    fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        let (appended, mut committed) = self.0.want_commit(false);
        async move {
            let reached = committed.wait_for(|now| now.seq >= appended || now.error.is_some()).await;
            match reached {
                Ok(now) if now.seq >= appended => Ok(()),
                Ok(now) => Err(now.error.clone().unwrap_or(closed())),
                Err(_) => Err(closed()),
            }
        }
        .boxed()
    }
}

fn closed() -> LogStoreError {
    LogStoreError::Ended { place: "of the session".to_owned() }
}
