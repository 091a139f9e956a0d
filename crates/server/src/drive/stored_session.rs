//! A session that has a seat, as the runtime opens it: its log was read before, and what is appended goes to the seat.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_store::inbox::{InboxError, Ticket};
use qoder_store::lease::Holder;
use qoder_store::line::Line;
use qoder_store::{OpenSession, SessionKey, SessionStore, StoreError, StoredSession, Take};
use qoder_types::InboxEntry;
use serde_json::Value;

use super::inbox::SeatInbox;
use super::log::SeatLog;
use super::shared::Shared;

/// The session of a seat.
pub(super) struct SeatSession {
    id: String,
    shared: Arc<Shared>,
    lines: Mutex<Option<Vec<Line>>>,
}

impl std::fmt::Debug for SeatSession {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SeatSession({})", self.id)
    }
}

impl SeatSession {
    pub(super) fn new(id: String, shared: Arc<Shared>, lines: Vec<Line>) -> Self {
        Self { id, shared, lines: Mutex::new(Some(lines)) }
    }

    fn missing(&self, key: &SessionKey) -> StoreError {
        StoreError::NotFound { id: key.id().to_owned(), project: PathBuf::from(&self.id), elsewhere: None }
    }
}

impl SessionStore for SeatSession {
    fn open(
        &self,
        key: &SessionKey,
        _: Take,
        visit: &mut dyn FnMut(Line),
    ) -> Result<OpenSession, StoreError> {
        if *key != SessionKey::main(self.id.as_str()) {
            return Err(self.missing(key));
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lines = lines.ok_or_else(|| StoreError::Locked { id: self.id.clone(), holder: None })?;
        lines.into_iter().for_each(visit);
        Ok(OpenSession {
            last_seq: self.shared.appended(),
            log: Box::new(SeatLog(Arc::clone(&self.shared))),
            inbox: Box::new(SeatInbox(Arc::clone(&self.shared))),
        })
    }

    fn read(&self, key: &SessionKey, _: &mut dyn FnMut(Line)) -> Result<u64, StoreError> {
        Err(self.missing(key))
    }

    fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        Ok(Vec::new())
    }

    fn holder(&self, _: &SessionKey) -> Result<Option<Holder>, StoreError> {
        Ok(None)
    }

    fn leave(&self, key: &SessionKey, _: &InboxEntry) -> Result<Ticket, InboxError> {
        Err(InboxError::NoSession { path: key.id().into() })
    }

    fn note(&self, key: &SessionKey, _: &Value) -> Result<(), StoreError> {
        Err(self.missing(key))
    }

    fn put_blob(&self, key: &SessionKey, _: &[u8]) -> Result<String, StoreError> {
        Err(self.missing(key))
    }

    fn blob(&self, _: &SessionKey, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn write_sidecar(&self, key: &SessionKey, _: &Value) -> Result<(), StoreError> {
        Err(self.missing(key))
    }

    fn sidecar(&self, _: &SessionKey) -> Result<Option<Value>, StoreError> {
        Ok(None)
    }

    fn children(&self, _: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        Ok(Vec::new())
    }

    fn delete(&self, key: &SessionKey) -> Result<(), StoreError> {
        Err(self.missing(key))
    }
}
