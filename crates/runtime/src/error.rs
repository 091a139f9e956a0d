//! Errors of the runtime, each with a stable code, a hint for people, and the exit code of the command line.

use std::path::{Path, PathBuf};

use qoder_core::ports::LogStoreError;

/// Something about a session cannot be done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
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
    /// There is no session to continue.
    #[error("No conversation found to continue in {project}")]
    NoneToContinue {
        /// The project.
        project: PathBuf,
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
    /// Nothing to go on with.
    #[error("session {id} has no unfinished turn and no finished one either")]
    NothingToResume {
        /// The session.
        id: String,
    },
    /// The conversation has no such entry to go on from.
    #[error("the conversation of session {id} has no entry {at}")]
    NoSuchEntry {
        /// The session.
        id: String,
        /// The entry.
        at: String,
    },
    /// Going on from an entry would leave out more than was said.
    #[error(
        "Resume rejected by --resume-drops-turn: after {at} the conversation has more than the turn of {turn}"
    )]
    DropsMore {
        /// The entry to go on from.
        at: String,
        /// The prompt of the turn that may be left out.
        turn: String,
    },
    /// Checkpoints belong to a session that is kept.
    #[error("file checkpoints cannot be combined with --no-session-persistence")]
    NoPlaceForCheckpoints,
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
    /// The log cannot be written any more.
    #[error(transparent)]
    Store(#[from] LogStoreError),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl SessionError {
    pub(crate) fn io(what: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), problem: error.to_string() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "session_not_found",
            Self::NoneToContinue { .. } => "session_none_to_continue",
            Self::Exists { .. } => "session_exists",
            Self::BadId { .. } => "session_bad_id",
            Self::Ambiguous { .. } => "session_ambiguous_id",
            Self::Locked { .. } => "session_locked",
            Self::Corrupt { .. } => "session_corrupt",
            Self::NothingToResume { .. } => "session_nothing_to_resume",
            Self::NoSuchEntry { .. } => "session_no_such_entry",
            Self::DropsMore { .. } => "session_drops_more",
            Self::NoPlaceForCheckpoints => "session_no_place_for_checkpoints",
            Self::Io { .. } => "session_io",
            Self::Store(_) => "session_store",
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
            Self::NoneToContinue { .. } => "start one with `qodercli -p \"…\"`".to_owned(),
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
            Self::NothingToResume { id } => format!("give a prompt: qodercli -p \"…\" --session-id {id}"),
            Self::NoSuchEntry { .. } => {
                "take the uuid of a message; one that a summary replaced, or that was left out before, cannot be gone on from"
                    .to_owned()
            }
            Self::DropsMore { .. } => {
                "nothing was changed; take an entry of that turn or the last one before it".to_owned()
            }
            Self::NoPlaceForCheckpoints => {
                "checkpoints are kept beside the session's log; leave one of them out".to_owned()
            }
            Self::Io { .. } => {
                "check that the directory exists, is writable and the disk has room; QODER_CONFIG_DIR moves it".to_owned()
            }
            Self::Store(_) => {
                "check the disk; nothing already written is lost, and --resume goes on from there".to_owned()
            }
        }
    }
}

/// Why a turn could not be driven to its end.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The session cannot go on.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Whoever reads the messages is gone. The turn stays open and can be resumed.
    #[error("the output was closed: {0}")]
    Output(std::io::Error),
    /// Calls wait in the log for somebody's answer. The turn stays open and can be resumed.
    #[error("{}", waiting_text(.0))]
    Waiting(Vec<WaitingCall>),
}

/// A call that waits in the log for somebody's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The session.
    pub session_id: String,
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Why it asks.
    pub reason: String,
}

fn waiting_text(calls: &[WaitingCall]) -> String {
    let told = calls.iter().map(|call| {
        format!("{} ({}) waits for an answer: {}", call.tool_name, call.tool_use_id, call.reason)
    });
    told.collect::<Vec<_>>().join("; ")
}

impl From<LogStoreError> for DriveError {
    fn from(error: LogStoreError) -> Self {
        Self::Session(SessionError::Store(error))
    }
}
