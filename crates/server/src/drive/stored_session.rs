//! A session that has a seat, as the runtime opens it: its log was read before, and what is appended goes to the seat.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_store::inbox::{InboxError, Ticket};
use qoder_store::lease::Holder;
use qoder_store::line::Line;
use qoder_store::{OpenSession, SessionKey, SessionStore, StoreError, StoredSession, Take};
use qoder_types::InboxEntry;
use serde_json::Value;

use super::inbox::{NoInbox, SeatInbox};
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

    /// The agent that a key names; none for the session itself. Agents of the server start no others.
    fn agent<'a>(&self, key: &'a SessionKey) -> Result<Option<&'a str>, StoreError> {
        match key.agents.as_slice() {
            [] if key.session == self.id => Ok(None),
            [agent] if key.session == self.id => Ok(Some(agent)),
            _ => Err(self.missing(key)),
        }
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
        if let Some(agent) = self.agent(key)? {
            let opened = self.shared.threads(|threads| threads.open(agent));
            let locked = || StoreError::Locked { id: agent.to_owned(), holder: None };
            let (lines, last_seq) = opened.ok_or_else(locked)?;
            lines.into_iter().for_each(visit);
            let log = SeatLog { shared: Arc::clone(&self.shared), agent: Some(agent.to_owned()) };
            return Ok(OpenSession { last_seq, log: Box::new(log), inbox: Box::new(NoInbox) });
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lines = lines.ok_or_else(|| StoreError::Locked { id: self.id.clone(), holder: None })?;
        lines.into_iter().for_each(visit);
        Ok(OpenSession {
            last_seq: self.shared.appended(),
            log: Box::new(SeatLog { shared: Arc::clone(&self.shared), agent: None }),
            inbox: Box::new(SeatInbox(Arc::clone(&self.shared))),
        })
    }

    fn read(&self, key: &SessionKey, visit: &mut dyn FnMut(Line)) -> Result<u64, StoreError> {
        let agent = self.agent(key)?.ok_or_else(|| self.missing(key))?;
        let found = self.shared.threads(|threads| threads.lines(agent));
        let (lines, last_seq) = found.ok_or_else(|| self.missing(key))?;
        lines.into_iter().for_each(visit);
        Ok(last_seq)
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

    fn write_sidecar(&self, key: &SessionKey, sidecar: &Value) -> Result<(), StoreError> {
        let agent = self.agent(key)?.ok_or_else(|| self.missing(key))?;
        self.shared.threads(|threads| threads.write_sidecar(agent, sidecar)).map_err(|_| self.missing(key))
    }

    fn sidecar(&self, key: &SessionKey) -> Result<Option<Value>, StoreError> {
        let agent = self.agent(key)?;
        Ok(agent.and_then(|agent| self.shared.threads(|threads| threads.sidecar(agent))))
    }

    fn children(&self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        if self.agent(key)?.is_some() {
            return Ok(Vec::new());
        }
        let agents = self.shared.threads(|threads| threads.agents());
        Ok(agents.into_iter().map(|agent| key.agent(agent)).collect())
    }

    fn delete(&self, key: &SessionKey) -> Result<(), StoreError> {
        Err(self.missing(key))
    }
}
