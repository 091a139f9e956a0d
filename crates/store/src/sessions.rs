//! [`SessionStore`] in files: the sessions of one project's folder, each a JSONL log with a folder beside it.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use qoder_types::InboxEntry;
use serde_json::Value;

use crate::catalog;
use crate::error::StoreError;
use crate::inbox::{self, Inbox, InboxError, Ticket, is_plain_id};
use crate::jsonl::line::Line;
use crate::jsonl::{Durability, JsonlStore, blob, scan, sidecar};
use crate::layout::SessionPaths;
use crate::lease::{self, Holder};
use crate::port::{OpenSession, SessionKey, SessionStore, StoredSession, Take};

/// The sessions of a project, in files.
#[derive(Debug, Clone)]
pub struct JsonlSessions {
    folder: PathBuf,
    durability: Durability,
}

impl JsonlSessions {
    /// The sessions in a project's folder.
    #[must_use]
    pub fn new(folder: PathBuf, durability: Durability) -> Self {
        Self { folder, durability }
    }

    /// The files of a session, or of an agent.
    pub fn paths(&self, key: &SessionKey) -> Result<SessionPaths, StoreError> {
        let bad = key.agents.iter().chain([&key.session]).find(|id| !is_plain_id(id));
        if let Some(id) = bad {
            return Err(StoreError::BadId { id: id.clone() });
        }
        let main = SessionPaths::new(&self.folder, &key.session);
        Ok(key.agents.iter().fold(main, |above, agent| above.agent(agent)))
    }

    fn existing(&self, key: &SessionKey) -> Result<SessionPaths, StoreError> {
        let paths = self.paths(key)?;
        if paths.log.is_file() {
            return Ok(paths);
        }
        let (id, project) = (key.id().to_owned(), self.folder.clone());
        Err(StoreError::NotFound { id, project, elsewhere: None })
    }
}

impl SessionStore for JsonlSessions {
    fn open(
        &self,
        key: &SessionKey,
        take: Take,
        visit: &mut dyn FnMut(Line),
    ) -> Result<OpenSession, StoreError> {
        let paths = self.paths(key)?;
        let mut last_seq = 0;
        let visit = |line: Line| {
            if let Line::Record(record) = &line {
                last_seq = record.seq;
            }
            visit(line);
        };
        let log = match take {
            Take::IfFree => JsonlStore::open(&paths, key.id(), self.durability, visit)?,
            Take::Over => JsonlStore::take_over(&paths, key.id(), self.durability, visit)?,
        };
        let log = match key.agents.last() {
            Some(agent) => log.of_agent(&key.session, agent),
            None => log,
        };
        Ok(OpenSession { log: Box::new(log), inbox: Box::new(Inbox::open(&paths)), last_seq })
    }

    fn read(&self, key: &SessionKey, visit: &mut dyn FnMut(Line)) -> Result<u64, StoreError> {
        Ok(scan(&self.existing(key)?, visit)?.last_seq)
    }

    fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let sessions = catalog::in_folder(&self.folder).map(|session| StoredSession {
            holder: lease::holder(&session.paths),
            id: session.id,
            modified: session.modified,
            title: session.title,
            first_prompt: session.first_prompt,
        });
        Ok(sessions.collect())
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<Holder>, StoreError> {
        Ok(lease::holder(&self.paths(key)?))
    }

    fn leave(&self, key: &SessionKey, entry: &InboxEntry) -> Result<Ticket, InboxError> {
        let paths = self.paths(key).map_err(|_| InboxError::BadId { id: key.id().to_owned() })?;
        inbox::leave(&paths, entry)
    }

    fn note(&self, key: &SessionKey, line: &Value) -> Result<(), StoreError> {
        let paths = self.existing(key)?;
        let fault = |error: std::io::Error| StoreError::io("write", &paths.log, &error);
        let mut log = OpenOptions::new().append(true).mode(0o600).open(&paths.log).map_err(fault)?;
        log.write_all(format!("{line}\n").as_bytes()).map_err(fault)
    }

    fn put_blob(&self, key: &SessionKey, content: &[u8]) -> Result<String, StoreError> {
        let blobs = self.paths(key)?.blobs();
        blob::put(&blobs, content).map_err(|error| StoreError::io("write", &blobs, &error))
    }

    fn blob(&self, key: &SessionKey, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if !is_plain_id(name) {
            return Ok(None);
        }
        let path = self.paths(key)?.blobs().join(name);
        match std::fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &path, &error)),
        }
    }

    fn write_sidecar(&self, key: &SessionKey, sidecar: &Value) -> Result<(), StoreError> {
        let path = self.paths(key)?.sidecar();
        sidecar::write(&path, sidecar).map_err(|error| StoreError::io("write", &path, &error))
    }

    fn sidecar(&self, key: &SessionKey) -> Result<Option<Value>, StoreError> {
        Ok(sidecar::read(&self.paths(key)?.sidecar()))
    }

    fn children(&self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        let ids = self.paths(key)?.agent_ids().into_iter().filter(|id| is_plain_id(id));
        Ok(ids.map(|id| key.agent(id)).collect())
    }

    fn files(&self, key: &SessionKey) -> Option<SessionPaths> {
        self.paths(key).ok()
    }

    fn delete(&self, key: &SessionKey) -> Result<(), StoreError> {
        catalog::delete(&self.existing(key)?, key.id())
    }
}
