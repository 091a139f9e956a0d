//! Why something cannot be left in an inbox, or its outcome not be written.

use std::path::{Path, PathBuf};

use crate::private_folder::FolderError;

/// An inbox cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InboxError {
    /// There is no such session.
    #[error("there is no session at {}", path.display())]
    NoSession {
        /// Where its log would be.
        path: PathBuf,
    },
    /// Another user could have made or changed the folder.
    #[error("the inbox {} is not safe to use: {problem}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The entry's id cannot be a name.
    #[error("`{id}` is not a valid entry ID")]
    BadId {
        /// The id.
        id: String,
    },
    /// The entry is too large.
    #[error("the entry has {size} bytes; the limit is {most}")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The most that it may have.
        most: u64,
    },
    /// Too much waits already.
    #[error("{most} entries wait in the inbox already")]
    Full {
        /// The most that may wait.
        most: usize,
    },
    /// The entry cannot be written as JSON.
    #[error("the entry cannot be written: {problem}")]
    Unwritable {
        /// Why.
        problem: String,
    },
    /// The system refused.
    #[error("cannot use the inbox {}: {problem}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

impl InboxError {
    pub(super) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), problem: error.to_string() }
    }

    pub(super) fn folder(path: &Path, error: FolderError) -> Self {
        match error {
            FolderError::Unsafe(problem) => Self::Unsafe { path: path.to_path_buf(), problem },
            FolderError::Io(error) => Self::io(path, &error),
        }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSession { .. } => "inbox_no_session",
            Self::Unsafe { .. } => "inbox_unsafe",
            Self::BadId { .. } => "inbox_bad_id",
            Self::TooLarge { .. } => "inbox_too_large",
            Self::Full { .. } => "inbox_full",
            Self::Unwritable { .. } => "inbox_unwritable",
            Self::Io { .. } => "inbox_io",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSession { .. } => "`qodercli sessions list --all` shows the sessions",
            Self::Unsafe { .. } => "remove it, or make it a folder of your own with mode 0700",
            Self::BadId { .. } => "use 1 to 128 letters, digits, `-` and `_`; a UUID is best",
            Self::TooLarge { .. } => "put long content into a file and send its path",
            Self::Full { .. } => "wait until the process that drives the session has taken them",
            Self::Unwritable { .. } => "this is a bug; please report it",
            Self::Io { .. } => "check that the directory is writable and the disk has room",
        }
    }
}
