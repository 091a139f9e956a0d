//! Where one session is kept: in files, in memory only, or in any store. Opening it takes its lease and reads what is there.

use std::path::PathBuf;
use std::sync::Arc;

use qoder_core::ports::LogStore;

use crate::error::StoreError;
use crate::inbox::{Inbox, SessionInbox};
use crate::jsonl::line::Line;
use crate::jsonl::{Durability, JsonlStore};
use crate::layout::SessionPaths;
use crate::memory::MemorySessions;
use crate::port::{SessionKey, SessionStore, Take};

/// Where a session is kept.
#[derive(Debug)]
pub enum Keep {
    /// In files.
    Files {
        /// The files.
        paths: SessionPaths,
        /// When a record counts as kept.
        durability: Durability,
    },
    /// In memory, until the process ends; tool outputs go to this folder.
    Nowhere {
        /// A private temporary folder.
        outputs: PathBuf,
    },
    /// In a store; tool outputs go to this folder.
    Store {
        /// The store.
        store: Arc<dyn SessionStore>,
        /// The session's name there.
        key: SessionKey,
        /// A private folder.
        outputs: PathBuf,
    },
}

/// A session that was opened, with where the things beside its log go.
pub struct KeptSession {
    /// Takes records.
    pub log: Box<dyn LogStore>,
    /// What others leave for the session.
    pub inbox: Box<dyn SessionInbox>,
    /// Tool outputs that are too long for the model.
    pub outputs: PathBuf,
    /// True when nothing of the session outlives its drive, its outputs included.
    pub is_forgotten: bool,
    /// Its files; `None` when it has none.
    pub files: Option<SessionPaths>,
}

impl std::fmt::Debug for KeptSession {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KeptSession").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Keep {
    /// Opens the session `id`, creating it if it is not there; `main` is the main session when it is an agent's. Every
    /// line that is in it goes to `visit`.
    pub fn open(
        self,
        id: &str,
        main: Option<&str>,
        mut visit: impl FnMut(Line),
    ) -> Result<KeptSession, StoreError> {
        match self {
            Self::Files { paths, durability } => {
                let log = JsonlStore::open(&paths, id, durability, visit)?;
                let log = match main {
                    Some(main) => log.of_agent(main, id),
                    None => log,
                };
                let (inbox, outputs) = (Box::new(Inbox::open(&paths)), paths.outputs());
                Ok(KeptSession {
                    log: Box::new(log),
                    inbox,
                    outputs,
                    is_forgotten: false,
                    files: Some(paths),
                })
            }
            Self::Nowhere { outputs } => {
                let opened =
                    MemorySessions::default().open(&SessionKey::main(id), Take::IfFree, &mut visit)?;
                Ok(KeptSession {
                    log: opened.log,
                    inbox: opened.inbox,
                    outputs,
                    is_forgotten: true,
                    files: None,
                })
            }
            Self::Store { store, key, outputs } => {
                let opened = store.open(&key, Take::IfFree, &mut visit)?;
                Ok(KeptSession {
                    log: opened.log,
                    inbox: opened.inbox,
                    outputs,
                    is_forgotten: false,
                    files: None,
                })
            }
        }
    }
}
