//! What a store can report: each error has a stable code and a hint.

use std::path::{Path, PathBuf};

use qoder_core::ports::LogStoreError;

/// Something about a stored session cannot be done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No such session here.
    #[error("No conversation found with session ID: {id}")]
    NotFound {
        /// The id that was asked for.
        id: String,
        /// The project it was looked for in.
        project: PathBuf,
        /// Another project that has it.
        elsewhere: Option<String>,
    },
    /// The id is taken.
    #[error("Session ID {id} is already in use")]
    Exists {
        /// The id.
        id: String,
    },
    /// The id is not one.
    #[error("`{id}` is not a valid session ID")]
    BadId {
        /// What was given.
        id: String,
    },
    /// The beginning of an id that several sessions have.
    #[error("`{prefix}` is the beginning of {} session IDs", ids.len())]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// The sessions.
        ids: Vec<String>,
    },
    /// Another process drives the session.
    #[error("Session {id} is in use by {}", holder_text(*holder))]
    Locked {
        /// The session.
        id: String,
        /// The other process.
        holder: Option<u32>,
    },
    /// The log is damaged before its end.
    #[error("the session log {} is damaged at line {line}: {problem}", path.display())]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A later release wrote to the log.
    #[error("the session log {} has records of a later release (schema {version}, from line {line} on)", path.display())]
    Later {
        /// The log.
        path: PathBuf,
        /// The first such line, from 1.
        line: u64,
        /// Its version of the schema.
        version: u32,
    },
    /// The system refused.
    #[error("cannot {what} {}: {problem}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The log can no longer be written.
    #[error(transparent)]
    Log(#[from] LogStoreError),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    /// The system refused to do `what` with `path`.
    #[must_use]
    pub fn io(what: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), problem: error.to_string() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "session_not_found",
            Self::Exists { .. } => "session_exists",
            Self::BadId { .. } => "session_bad_id",
            Self::Ambiguous { .. } => "session_ambiguous_id",
            Self::Locked { .. } => "session_locked",
            Self::Corrupt { .. } => "session_corrupt",
            Self::Later { .. } => "session_later_release",
            Self::Io { .. } => "session_io",
            Self::Log(LogStoreError::Fenced { .. }) => "session_fenced",
            Self::Log(LogStoreError::Failed { .. } | LogStoreError::Ended { .. }) => "session_store",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { elsewhere: Some(project), .. } => {
                format!("it belongs to {project}; sessions are resumed from the directory they were started in")
            }
            Self::NotFound { .. } => "`qodercli sessions list` shows the sessions of this project".to_owned(),
            Self::Exists { id } => format!("continue it with --resume {id}, or leave --session-id out"),
            Self::BadId { .. } => {
                "a session ID is a UUID such as 123e4567-e89b-42d3-a456-426614174000, or its first characters, at least 4"
                    .to_owned()
            }
            Self::Ambiguous { ids, .. } => {
                let shown: Vec<&str> = ids.iter().take(5).map(String::as_str).collect();
                let more = if ids.len() > shown.len() { ", …" } else { "" };
                format!("give more of it: {}{more}", shown.join(", "))
            }
            Self::Locked { .. } => {
                "wait until it ends, stop that process, or use --fork-session to work on a copy".to_owned()
            }
            Self::Corrupt { .. } => {
                "nothing was changed; `qodercli sessions repair ID` saves what is readable as a new session".to_owned()
            }
            Self::Later { .. } => {
                "nothing was changed; continue it with the release that wrote it, or use --fork-session to continue a copy of \
                 its conversation"
                    .to_owned()
            }
            Self::Io { .. } => {
                "check that the directory exists, is writable and the disk has room; QODER_CONFIG_DIR moves it".to_owned()
            }
            Self::Log(LogStoreError::Fenced { .. }) => {
                "another process took the session over; nothing already written is lost".to_owned()
            }
            Self::Log(LogStoreError::Failed { .. } | LogStoreError::Ended { .. }) => {
                "check the disk and any limit on file sizes (`ulimit -f`); nothing already written is lost, and --resume \
                 continues from there"
                    .to_owned()
            }
        }
    }
}
