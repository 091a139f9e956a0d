//! The log of a session that has a seat: appending hands records over, and the barrier completes when the seat has committed
//! them.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStore, LogStoreError};
use qoder_types::Record;
use serde_json::Value;

use super::shared::Shared;

/// Appends to the log of a session, or of an agent that it started. Who drops it gives the log of an agent free.
pub(super) struct SeatLog {
    pub(super) shared: Arc<Shared>,
    pub(super) agent: Option<String>,
}

impl Drop for SeatLog {
    fn drop(&mut self) {
        if let Some(agent) = &self.agent {
            self.shared.threads(|threads| threads.close(agent));
        }
    }
}

impl LogStore for SeatLog {
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError> {
        match &self.agent {
            None => self.shared.append(records),
            Some(agent) => self.shared.append_to(agent, records),
        }
    }

    fn note(&mut self, _: &Value) -> Result<(), LogStoreError> {
        // Notes are titles that models find; a server makes none.
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogStoreError> {
        // The driver syncs when it has nothing more to do; a caller that needs the outcome awaits the barrier.
        // An agent that ends is no reason to rest: its parent continues.
        drop(self.shared.want_commit(self.agent.is_none()));
        Ok(())
    }

    fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        let (appended, mut committed) = self.shared.want_commit(false);
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
