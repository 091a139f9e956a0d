//! Checkpoints of files: what each file was before the tools changed it, kept once a file and message, so that a session
//! can go back to a message. What is to be changed is on the disk before it is changed; what cannot be kept is not
//! changed. Subagents keep into the checkpoints of the session that started them.

mod index;
mod rewind;
mod space;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::{BeforeChange, KeepBefore};
use qoder_types::record::FileKept;

use index::{Before, CheckpointIndex, Folder, Line, blob_name};
use space::Space;

pub use rewind::{RewindError, RewindReport, RewindRequest, RewindScope, rewind};

/// The setting that switches checkpoints on.
pub(crate) const ENABLED: &str = "general.fileCheckpointing.enabled";
/// The setting that bounds them.
pub(crate) const MOST_BYTES: &str = "general.fileCheckpointing.maxBytes";
/// What a line of the index takes, counted generously.
const LINE_BYTES: u64 = 512;

/// Why a file cannot be kept, or kept ones cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CheckpointError {
    /// There is no room.
    #[error(
        "the store of checkpoints {} is full: {taken} of {most} bytes are taken and {bytes} more are needed. Raise {MOST_BYTES}, or delete sessions that are no longer needed",
        folder.display()
    )]
    Full {
        /// The session's checkpoints.
        folder: PathBuf,
        /// The bound.
        most: u64,
        /// What is taken.
        taken: u64,
        /// What was to be kept.
        bytes: u64,
    },
    /// The system refused.
    #[error("cannot {what} the store of checkpoints {}: {problem}", folder.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The session's checkpoints.
        folder: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// It is not what was written.
    #[error("the store of checkpoints {} is damaged: {problem}", folder.display())]
    Damaged {
        /// The session's checkpoints.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// No message is being worked on.
    #[error("there is no message to which the change belongs")]
    NoMessage,
}

impl CheckpointError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } => "checkpoint_store_full",
            Self::Io { .. } => "checkpoint_io",
            Self::Damaged { .. } => "checkpoint_damaged",
            Self::NoMessage => "checkpoint_no_message",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Full { .. } => "`qodercli sessions list --all` shows the sessions that there are",
            Self::Io { .. } => "check that the folder is writable and the disk has room",
            Self::Damaged { .. } => "nothing was changed; remove the folder to begin anew",
            Self::NoMessage => "send a message first",
        }
    }
}

/// Files that were kept and are not on record in the log yet.
pub type KeptFiles = Arc<Mutex<Vec<FileKept>>>;

/// Keeps the files of a session and its subagents.
#[derive(Debug)]
pub struct Checkpoints {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    space: Space,
    /// The session's folder and the message that is being worked on.
    wanted: Option<(PathBuf, String)>,
    /// Open once something was kept; closed by any error, so that the next use finds out what is on the disk.
    index: Option<CheckpointIndex>,
}

impl Checkpoints {
    /// Checkpoints in the sessions of a configuration root, which take at most `most` bytes together.
    #[must_use]
    pub fn new(config_root: &Path, most: u64) -> Self {
        let inner = Inner { space: Space::new(config_root, most), wanted: None, index: None };
        Self { inner: Mutex::new(inner) }
    }

    /// A message is being worked on in the session with this side folder. Nothing happens when that is known.
    ///
    /// # Errors
    /// When it cannot be put on record; no file can be changed then.
    pub fn message(&self, side: &Path, uuid: &str) -> Result<(), CheckpointError> {
        let mut inner = self.lock();
        if inner.wanted.as_ref().is_some_and(|(folder, message)| folder == side && message == uuid) {
            return Ok(());
        }
        inner.wanted = Some((side.to_path_buf(), uuid.to_owned()));
        inner.index().map(|_| ())
    }

    /// Keeps a file before the call `tool_use_id` changes it, unless that was done for this message. What is kept now is
    /// to be put on record.
    ///
    /// # Errors
    /// When it cannot be kept; it must not be changed then.
    pub fn keep(
        &self,
        tool_use_id: &str,
        change: &BeforeChange<'_>,
    ) -> Result<Option<FileKept>, CheckpointError> {
        let mut inner = self.lock();
        let kept = inner.keep(tool_use_id, change);
        if kept.is_err() {
            inner.index = None;
        }
        kept
    }

    /// Keeps for a call; what was kept goes to `kept`.
    #[must_use]
    pub fn keeper(self: &Arc<Self>, tool_use_id: &str, kept: &KeptFiles) -> KeepBefore {
        let (checkpoints, call, all) = (Arc::clone(self), tool_use_id.to_owned(), Arc::clone(kept));
        Arc::new(move |change| {
            let kept = checkpoints.keep(&call, change).map_err(|error| error.to_string())?;
            all.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
            Ok(())
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The index, with the present message as its last one.
    fn index(&mut self) -> Result<&mut CheckpointIndex, CheckpointError> {
        let Some((side, message)) = &self.wanted else { return Err(CheckpointError::NoMessage) };
        let folder = Folder::of_session(side);
        let open = self.index.take().filter(|index| index.folder.path() == folder.path());
        let mut index = match open {
            Some(index) => index,
            None => CheckpointIndex::open(&folder)?,
        };
        if index.message.as_ref() != Some(message) {
            index.append(&[Line::Message { uuid: message.clone() }])?;
        }
        Ok(self.index.insert(index))
    }

    fn keep(
        &mut self,
        tool_use_id: &str,
        change: &BeforeChange<'_>,
    ) -> Result<Option<FileKept>, CheckpointError> {
        let index = self.index()?;
        let written = Line::Written { path: change.path.to_path_buf(), sha256: blob_name(change.becomes) };
        if index.has(change.path) {
            index.note(&[written])?;
            return Ok(None);
        }
        let folder = index.folder.clone();
        self.space.take(&folder, needed(&folder, change.file.map(|(bytes, _)| bytes)))?;
        let index = self.index()?;
        let before = match change.file {
            None => Before::Absent,
            Some((bytes, mode)) => Before::File { sha256: index.keep(bytes)?, mode },
        };
        let (sha256, mode) = match &before {
            Before::File { sha256, mode } => (Some(sha256.clone()), Some(*mode)),
            Before::Absent | Before::NotKept => (None, None),
        };
        let message = index.message.clone().unwrap_or_default();
        index.append(&[Line::File { path: change.path.to_path_buf(), before }, written])?;
        let path = change.path.to_string_lossy().into_owned();
        Ok(Some(FileKept { tool_use_id: tool_use_id.to_owned(), message, path, sha256, mode }))
    }
}

/// The room that keeping a content takes: none for one that is there.
fn needed(folder: &Folder, content: Option<&[u8]>) -> u64 {
    let new = content.filter(|content| !folder.blobs().join(blob_name(content)).exists());
    LINE_BYTES + new.map_or(0, |content| content.len() as u64)
}
