//! What can go wrong, each with a stable code for programs and a hint for people. An error of an option names the
//! option as it is written in [`QoderAgentOptions`](crate::QoderAgentOptions).

use qoder_runtime::error::{DriveError, SessionError};
use qoder_runtime::sessions::OpenError;
use qoder_runtime::setup::{OptionNames, SetupError};
use qoder_runtime::store::StoreError;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option cannot be used.
    #[error("{option}: {problem}")]
    Option {
        /// The option, with the entry where there is one.
        option: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The token shall come from a variable that is not set.
    #[error("auth: the environment variable {variable} is not set")]
    AuthAccessTokenEnvVar {
        /// The variable.
        variable: String,
    },
    /// The runtime behind this session cannot do it.
    #[error("{what} is not supported {}", if *.in_process { "by the engine in process" } else { "by this qodercli" })]
    Unsupported {
        /// The option or method.
        what: String,
        /// True when the engine runs in this process.
        in_process: bool,
    },
    /// Settings, model or directories cannot be used.
    #[error("{}", setup_text(.0))]
    Setup(#[from] SetupError),
    /// The session cannot be opened or written.
    #[error("{}", own_names(&.0.to_string()))]
    Session(#[from] SessionError),
    /// The session could not be driven to its end.
    #[error(transparent)]
    Drive(DriveError),
    /// A tool or server definition is wrong.
    #[error("the server `{server}`: {problem}")]
    ToolServer {
        /// The server.
        server: String,
        /// What is wrong.
        problem: String,
    },
    /// A method was called before `connect`, or after `disconnect`.
    #[error("the client is not connected")]
    NotConnected,
    /// A client that is connected was to be connected again.
    #[error("the client is connected already")]
    AlreadyConnected,
    /// The session has ended.
    #[error("the session has ended")]
    Closed,
    /// There is no program at `cli_path`.
    #[error("cli_path: {path} cannot be started: {problem}")]
    CliNotFound {
        /// The path.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// The program ended when it should not have.
    #[error("qodercli ended {}{}", ended_text(*.exit_code, *.signal), stderr_text(.stderr))]
    QoderCliProcess {
        /// Its exit code.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// SDK and program do not fit together.
    #[error("this SDK is {sdk}, the program is {cli}")]
    ProtocolVersionMismatch {
        /// Version and protocol of the SDK.
        sdk: String,
        /// Version and protocol of the program.
        cli: String,
    },
    /// The program refused a control request.
    #[error("{request}: {message}")]
    ControlRequest {
        /// The request.
        request: String,
        /// The program's words.
        message: String,
    },
    /// A control request took longer than `control_request_timeout_ms`.
    #[error("{request} was not answered within {after_ms} ms")]
    ControlRequestTimeout {
        /// The request.
        request: String,
        /// The limit.
        after_ms: u64,
    },
    /// `resolve_model` took longer than `resolve_model_timeout_ms`.
    #[error("ModelPolicyTimeoutError: resolve_model gave no answer within {after_ms} ms")]
    ModelPolicyTimeout {
        /// The limit.
        after_ms: u64,
    },
    /// A session store cannot be read, or has not what is needed.
    #[error("{problem}")]
    SessionStore {
        /// What was tried, and what came of it.
        problem: String,
    },
    /// The program wrote something that is not the protocol, or an answer has another shape than documented.
    #[error("{0}")]
    Protocol(String),
    /// The system refused.
    #[error("cannot {what}: {problem}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        problem: String,
    },
}

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn option(
        option: impl Into<String>,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Option { option: option.into(), problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), in_process: true }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Option { .. } => "invalid_option",
            Self::AuthAccessTokenEnvVar { .. } => "auth_access_token_env_var",
            Self::Unsupported { .. } => "unsupported",
            Self::Setup(_) => "setup",
            Self::Session(error) => error.code(),
            Self::Drive(DriveError::Session(error)) => error.code(),
            Self::Drive(DriveError::Output(_)) => "output_closed",
            Self::Drive(DriveError::Waiting(_)) => "waiting_for_answer",
            Self::Drive(DriveError::Ended(_)) => "process_ended",
            Self::Drive(DriveError::Internal(_)) => "internal",
            Self::ToolServer { .. } => "tool_server",
            Self::NotConnected => "not_connected",
            Self::AlreadyConnected => "already_connected",
            Self::Closed => "session_closed",
            Self::CliNotFound { .. } => "cli_not_found",
            Self::QoderCliProcess { .. } => "QODER_CLI_PROCESS_ERROR",
            Self::ProtocolVersionMismatch { .. } => "protocol_version_mismatch",
            Self::ControlRequest { .. } => "control_request",
            Self::ControlRequestTimeout { .. } => "control_request_timeout",
            Self::ModelPolicyTimeout { .. } => "model_policy_timeout",
            Self::SessionStore { .. } => "session_store",
            Self::Protocol(_) => "protocol",
            Self::Io { .. } => "io",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Option { hint, .. } => hint.clone(),
            Self::AuthAccessTokenEnvVar { .. } => {
                "set it in the environment or in options.env, or use access_token(…)".to_owned()
            }
            Self::Unsupported { in_process: true, .. } => {
                "leave it out, or drive an external qodercli that has it with cli_path".to_owned()
            }
            Self::Unsupported { in_process: false, .. } => "use a newer qodercli".to_owned(),
            Self::Setup(SetupError::Option { .. }) => {
                "the documentation of QoderAgentOptions says what each option takes".to_owned()
            }
            Self::Setup(error) => own_names(&error.hint()),
            Self::Session(error) | Self::Drive(DriveError::Session(error)) => own_names(&session_hint(error)),
            Self::Drive(DriveError::Output(_)) => "read the stream to its end".to_owned(),
            Self::Drive(DriveError::Waiting(_)) => {
                "resume the session with can_use_tool, which answers such questions".to_owned()
            }
            Self::Drive(DriveError::Ended(_) | DriveError::Internal(_)) => {
                "resume the session to continue the turn".to_owned()
            }
            Self::ToolServer { .. } => "correct the definition; nothing was started".to_owned(),
            Self::NotConnected => "call connect() first".to_owned(),
            Self::AlreadyConnected => "call disconnect() first".to_owned(),
            Self::Closed => "start another one, with resume to continue where this one ended".to_owned(),
            Self::CliNotFound { .. } => "give the path of the qodercli program".to_owned(),
            Self::QoderCliProcess { .. } => "its last words on stderr say why".to_owned(),
            Self::ProtocolVersionMismatch { .. } => {
                "use an SDK and a program of the same version (major and minor)".to_owned()
            }
            Self::ControlRequest { .. } => "the message says what the program did not accept".to_owned(),
            Self::ControlRequestTimeout { .. } => {
                "raise control_request_timeout_ms, or set it to 0 for no limit".to_owned()
            }
            Self::ModelPolicyTimeout { .. } => {
                "answer from memory, or raise resolve_model_timeout_ms".to_owned()
            }
            Self::SessionStore { .. } => "check the store; the local log has what it lacks".to_owned(),
            Self::Protocol(_) => "check that cli_path is a qodercli and no other program".to_owned(),
            Self::Io { .. } => "check the path, its permissions and the disk".to_owned(),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Setup(error) => error.into(),
            OpenError::NoPrompt => Self::option("prompt", "it is missing", "say what the model shall do"),
            OpenError::Session(error) => error.into(),
            OpenError::Begin { error, .. } => error.into(),
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Session(error) => Self::Session(error),
            other @ (DriveError::Output(_)
            | DriveError::Waiting(_)
            | DriveError::Ended(_)
            | DriveError::Internal(_)) => Self::Drive(other),
        }
    }
}

/// A text of the engine with the names that options have here.
fn own_names(text: &str) -> String {
    OptionNames::SnakeCase.reword(text).into_owned()
}

/// The flags of the command line are options here.
fn setup_text(error: &SetupError) -> String {
    match error {
        SetupError::Option { option: "--add-dir", problem } => format!("add_dirs: {problem}"),
        SetupError::Option { option: "--json-schema", problem } => format!("output_format: {problem}"),
        SetupError::Option { option: "toolConfig", problem } => format!("tool_config: {problem}"),
        SetupError::Option { option, problem } => {
            format!("{}: {problem}", option.trim_start_matches('-').replace('-', "_"))
        }
        SetupError::Model(error) => own_names(&format!("model: {error}")),
        SetupError::Settings(error) => own_names(&format!("settings: {error}")),
    }
}

/// What a program can do, where the command line would say something else.
fn session_hint(error: &SessionError) -> String {
    match error {
        SessionError::Storage(StoreError::NotFound { elsewhere: None, .. })
        | SessionError::NoneToContinue { .. } => "list_sessions() shows the sessions of a project".to_owned(),
        SessionError::Storage(StoreError::Exists { .. }) => {
            "continue it with resume, or leave session_id out".to_owned()
        }
        SessionError::Storage(StoreError::Locked { .. }) => {
            "wait until it ends, or work on a copy with fork_session".to_owned()
        }
        SessionError::Storage(
            StoreError::NotFound { elsewhere: Some(_), .. }
            | StoreError::BadId { .. }
            | StoreError::Ambiguous { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Later { .. }
            | StoreError::Io { .. }
            | StoreError::Log(_),
        )
        | SessionError::NothingToResume { .. }
        | SessionError::NoSuchEntry { .. }
        | SessionError::DropsMore { .. }
        | SessionError::NoPlaceForCheckpoints
        | SessionError::Io { .. }
        | SessionError::Store(_) => error.hint(),
    }
}

fn ended_text(exit_code: Option<i32>, signal: Option<i32>) -> String {
    match (exit_code, signal) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "without a reason".to_owned(),
    }
}

fn stderr_text(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().rev().take(5).collect();
    let text = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_command_line_is_named_as_it_is_written_here() {
        let error = Error::Setup(SetupError::Option { option: "--permission-mode", problem: "x".to_owned() });
        assert_eq!(error.to_string(), "permission_mode: x");
        let error = Error::Setup(SetupError::Option { option: "--add-dir", problem: "x".to_owned() });
        assert_eq!(error.to_string(), "add_dirs: x");
    }

    #[test]
    fn errors_of_a_session_name_options_as_they_are_written_here() {
        // Clients look for this text as it is.
        let error = Error::Session(SessionError::DropsMore { at: "a".to_owned(), turn: "b".to_owned() });
        assert!(error.to_string().starts_with("Resume rejected by --resume-drops-turn:"), "{error}");
        let error = Error::Session(SessionError::NoPlaceForCheckpoints);
        assert!(error.to_string().contains("`persist_session`"), "{error}");
    }

    #[test]
    fn the_end_of_a_program_has_its_last_words() {
        let stderr = "1\n2\n3\n4\n5\n6\n".to_owned();
        let error = Error::QoderCliProcess { exit_code: Some(42), signal: None, stderr };
        assert_eq!(error.to_string(), "qodercli ended with exit code 42: 2\n3\n4\n5\n6");
    }
}
