//! Errors of the runtime, each with a stable code, a hint for people, and the exit code of the command line.

use std::path::PathBuf;

use qoder_config::trust::TrustError;
use qoder_core::ports::LogStoreError;
use qoder_store::StoreError;
use qoder_types::AskKind;

/// Something about a session cannot be done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
    /// The store cannot do it.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// The directory has no session that could be continued.
    #[error("No conversation found to continue in {project}")]
    NoneToContinue {
        /// The project.
        project: PathBuf,
    },
    /// The session has no turn to resume.
    #[error("session {id} has no unfinished turn and no finished one either")]
    NothingToResume {
        /// The session.
        id: String,
    },
    /// The conversation has no such entry to continue from.
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
        /// The entry to continue from.
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
    /// The log can no longer be written.
    #[error(transparent)]
    Store(#[from] LogStoreError),
}

impl From<TrustError> for SessionError {
    fn from(error: TrustError) -> Self {
        Self::Io { what: error.what, path: error.path, problem: error.problem }
    }
}

impl SessionError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Storage(error) => error.code(),
            Self::NoneToContinue { .. } => "session_none_to_continue",
            Self::NothingToResume { .. } => "session_nothing_to_resume",
            Self::NoSuchEntry { .. } => "session_no_such_entry",
            Self::DropsMore { .. } => "session_drops_more",
            Self::NoPlaceForCheckpoints => "session_no_place_for_checkpoints",
            Self::Io { .. } => "session_io",
            Self::Store(error) => StoreError::from(error.clone()).code(),
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Storage(error) => error.hint(),
            Self::NoneToContinue { .. } => "start one with `qodercli -p \"…\"`".to_owned(),
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
            Self::Store(error) => StoreError::from(error.clone()).hint(),
        }
    }
}

/// Why a turn could not be driven to its end.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The session cannot continue.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The reader of the messages is gone. The turn stays open and can be resumed.
    #[error("the output was closed: {0}")]
    Output(std::io::Error),
    /// Calls in the log are pending until they get an answer. The turn stays open and can be resumed.
    #[error("{}", waiting_text(.0))]
    Waiting(Vec<WaitingCall>),
    /// The drive broke off by a fault in this program.
    #[error("internal error: {0}. This is a bug; please report it")]
    Internal(String),
    /// A signal ends the process. The turn stays open and can be resumed.
    #[error("Interrupted by {0} before the turn was finished")]
    Ended(&'static str),
}

/// A call in the log that is pending until it gets an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The session.
    pub session_id: String,
    /// The agent that made the call, when it is not the main one.
    pub agent_id: Option<String>,
    /// The call.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// What is wanted: permission, or the result of a call that runs outside the runtime.
    pub kind: AskKind,
    /// Why it asks.
    pub reason: String,
}

fn waiting_text(calls: &[WaitingCall]) -> String {
    let told = calls.iter().map(|call| {
        let by = call.agent_id.as_ref().map(|id| format!(" of agent {id}")).unwrap_or_default();
        let wanted = match call.kind {
            AskKind::Permission => "an answer",
            AskKind::External => "its result",
        };
        format!("{} ({}){by} waits for {wanted}: {}", call.tool_name, call.tool_use_id, call.reason)
    });
    told.collect::<Vec<_>>().join("; ")
}

impl From<StoreError> for DriveError {
    fn from(error: StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl From<LogStoreError> for DriveError {
    fn from(error: LogStoreError) -> Self {
        Self::Session(SessionError::Store(error))
    }
}

/// Why the arguments of a call are not accepted, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// They are not JSON.
    #[error("The arguments of {tool} are not valid JSON: {start}\nSend one complete JSON object.")]
    NotJson {
        /// The tool.
        tool: String,
        /// How they begin.
        start: String,
    },
    /// No arguments can be checked.
    #[error("{tool} has an invalid input schema: {problem}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong with its schema.
        problem: String,
    },
    /// They do not match the schema.
    #[error(
        "The arguments of {tool} do not fit its schema:\n- {}\nIts fields are: {}.",
        problems.join("\n- "),
        fields.join(", ")
    )]
    Mismatch {
        /// The tool.
        tool: String,
        /// What does not match.
        problems: Vec<String>,
        /// The fields that the tool has.
        fields: Vec<String>,
    },
}

impl ArgumentsError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "arguments_not_json",
            Self::Schema { .. } => "arguments_schema",
            Self::Mismatch { .. } => "arguments_mismatch",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotJson { .. } | Self::Mismatch { .. } => {
                "nothing: the model reads the text and sends the call again".to_owned()
            }
            Self::Schema { tool, .. } => format!("correct the input schema of {tool} where it is defined"),
        }
    }
}
