//! Where one session is kept: a store, the session's name there, and the folder for tool outputs. The session of an agent is
//! kept in the same store, below the session that started it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::error::StoreError;
use crate::jsonl::Durability;
use crate::jsonl::line::Line;
use crate::layout::SessionPaths;
use crate::memory::MemorySessions;
use crate::port::{OpenSession, SessionKey, SessionStore, Take};
use crate::sessions::JsonlSessions;

/// Where a session is kept.
#[derive(Debug, Clone)]
pub struct SessionLocation {
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    outputs: PathBuf,
}

impl SessionLocation {
    /// In a store; tool outputs that are too long for the model go to `outputs`, a private folder.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, key: SessionKey, outputs: PathBuf) -> Self {
        Self { store, key, outputs }
    }

    /// In the files of a main session.
    #[must_use]
    pub fn in_files(paths: &SessionPaths, durability: Durability) -> Self {
        let folder = paths.log.parent().map(Path::to_path_buf).unwrap_or_default();
        let id = paths.side.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let store = Arc::new(JsonlSessions::new(folder, durability));
        Self::new(store, SessionKey::main(id), paths.outputs())
    }

    /// In memory, until the process ends; tool outputs go to `outputs`, a private temporary folder.
    #[must_use]
    pub fn in_memory(id: impl Into<String>, outputs: PathBuf) -> Self {
        Self::new(Arc::new(MemorySessions::default()), SessionKey::main(id), outputs)
    }

    /// The session's name in its store.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Where tool outputs go that are too long for the model.
    #[must_use]
    pub fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// Its files; `None` when it has none.
    #[must_use]
    pub fn files(&self) -> Option<SessionPaths> {
        self.store.files(&self.key)
    }

    /// True when it can be opened again after the process has ended.
    #[must_use]
    pub fn outlives_process(&self) -> bool {
        self.store.outlives_process()
    }

    /// Where an agent is kept that this session, or agent, starts.
    #[must_use]
    pub fn agent(&self, id: impl Into<String>) -> Self {
        let key = self.key.agent(id);
        let files = self.store.files(&key);
        let outputs = files.map_or_else(|| self.outputs.join(key.id()), |files| files.outputs());
        Self { store: Arc::clone(&self.store), key, outputs }
    }

    /// The agents that this session, or agent, has started, in the order of their ids.
    pub fn agents(&self) -> Result<Vec<Self>, StoreError> {
        let agents = self.store.children(&self.key)?;
        Ok(agents.iter().map(|key| self.agent(key.id())).collect())
    }

    /// Opens it for appending, creating it if it is not there. Every line that is in it goes to `visit`.
    pub fn open(&self, mut visit: impl FnMut(Line)) -> Result<OpenSession, StoreError> {
        self.store.open(&self.key, Take::IfFree, &mut visit)
    }

    /// Reads it without taking its lease; answers with the number of the last record.
    pub fn read(&self, mut visit: impl FnMut(Line)) -> Result<u64, StoreError> {
        self.store.read(&self.key, &mut visit)
    }

    /// Keeps what is known of an agent beside its log.
    pub fn write_sidecar(&self, sidecar: &Value) -> Result<(), StoreError> {
        self.store.write_sidecar(&self.key, sidecar)
    }

    /// What is known of an agent beside its log; `None` when that is missing or cannot be read.
    pub fn sidecar(&self) -> Result<Option<Value>, StoreError> {
        self.store.sidecar(&self.key)
    }
}
