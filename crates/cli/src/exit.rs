//! Exit codes and the form of errors: one line that names the thing, one that says what to do. The codes are
//! documented in `docs/exit-codes.md`.

use std::process::ExitCode;

use qoder_core::OptionNames;
use qoder_runtime::error::{DriveError, SessionError, WaitingCall};
use qoder_runtime::sessions::OpenError;
use qoder_runtime::setup::SetupError;
use qoder_runtime::store::StoreError;
use qoder_types::AskKind;
use qoder_types::record::{TerminalReason, TurnEnded, TurnSubtype};

/// Why the program ends, for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Success = 0,
    /// The turn ended in an error, or something else went wrong.
    General = 1,
    /// The key is missing, wrong or expired.
    Authentication = 41,
    /// Arguments or input cannot be used.
    Input = 42,
    /// The sandbox cannot enforce what is asked for.
    Sandbox = 44,
    /// Settings or the model's configuration cannot be used.
    Configuration = 52,
    /// The turn limit was reached.
    MaxTurns = 53,
    /// A call in the session is pending until it gets an answer.
    Waiting = 54,
    /// The session is locked, unknown, damaged or cannot be written.
    Session = 55,
    /// A person or a signal interrupted.
    Interrupted = 130,
    /// The output was closed.
    OutputClosed = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A fault with its exit code.
#[derive(Debug)]
pub struct Fault {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Fault {
    /// A fault of the person's input.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Input, message: message.into(), hint: hint.into() }
    }

    /// The reader of the output is gone.
    pub fn output(error: &std::io::Error) -> Self {
        Self {
            exit: Exit::OutputClosed,
            message: format!("the output was closed ({error})"),
            hint: String::new(),
        }
    }

    /// The same with the names that options have for its reader.
    pub fn reworded(self, names: OptionNames) -> Self {
        let message = names.reword(&self.message).into_owned();
        // A program that sets options has no use for the help of the command line.
        let hint = match names {
            OptionNames::Flags => self.hint,
            OptionNames::SnakeCase | OptionNames::CamelCase if self.hint.contains("`qodercli --help`") => {
                String::new()
            }
            OptionNames::SnakeCase | OptionNames::CamelCase => names.reword(&self.hint).into_owned(),
        };
        Self { exit: self.exit, message, hint }
    }

    /// The same with the session's ID in a hint that says how to resume it.
    pub fn naming_session(self, id: &str) -> Self {
        if id.is_empty() {
            return self;
        }
        Self { hint: self.hint.replace("--resume ID", &format!("--resume {id}")), ..self }
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Setup(error) => error.into(),
            OpenError::NoPrompt => {
                Self::input("there is no prompt", "give one: qodercli -p \"…\", or pipe one in")
            }
            OpenError::Session(error) => error.into(),
            OpenError::Begin { error, .. } => error.into(),
        }
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        let exit = match &error {
            SessionError::Storage(
                StoreError::BadId { .. } | StoreError::Ambiguous { .. } | StoreError::Exists { .. },
            )
            | SessionError::NoSuchEntry { .. }
            | SessionError::NoPlaceForCheckpoints
            | SessionError::DropsMore { .. } => Exit::Input,
            _ => Exit::Session,
        };
        Self { exit, message: error.to_string(), hint: error.hint() }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        SessionError::from(error).into()
    }
}

impl From<SetupError> for Fault {
    fn from(error: SetupError) -> Self {
        let exit = match &error {
            SetupError::Option { .. } => Exit::Input,
            SetupError::Settings(_) | SetupError::Model(_) => Exit::Configuration,
        };
        Self { exit, message: error.to_string(), hint: error.hint() }
    }
}

impl From<DriveError> for Fault {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Session(error) => error.into(),
            DriveError::Output(error) => Self {
                exit: Exit::OutputClosed,
                message: format!("the output was closed before the turn ended ({error})"),
                hint: "nothing is lost; continue with --resume and the session's ID".to_owned(),
            },
            error @ DriveError::Internal(_) => {
                Self { exit: Exit::General, message: error.to_string(), hint: String::new() }
            }
            error @ DriveError::Ended(_) => Self {
                exit: Exit::Interrupted,
                message: error.to_string(),
                hint: "resume the session without a prompt to continue the turn: qodercli -p --resume ID"
                    .to_owned(),
            },
            DriveError::Waiting(calls) => {
                let answer = |call: &WaitingCall| {
                    let agent = call.agent_id.as_ref().map(|id| format!(" --agent {id}")).unwrap_or_default();
                    let (session, id) = (&call.session_id, &call.tool_use_id);
                    let what = match call.kind {
                        AskKind::Permission => "allow|deny",
                        AskKind::External => "result --content TEXT",
                    };
                    format!("qodercli permissions answer {session} {id} {what}{agent}")
                };
                let hint: Vec<String> = calls.iter().map(answer).collect();
                let message = DriveError::Waiting(calls).to_string();
                Self {
                    exit: Exit::Waiting,
                    message,
                    hint: format!("{}; then continue with --resume", hint.join("; ")),
                }
            }
        }
    }
}

/// True for a turn that did nothing, because every call it made was denied.
pub fn is_denied(end: &TurnEnded) -> bool {
    end.subtype == TurnSubtype::Success && !end.permission_denials.is_empty() && end.calls_run == 0
}

/// The exit code of a turn's end.
pub fn of_turn(end: &TurnEnded) -> Exit {
    match (end.subtype, end.terminal_reason) {
        (TurnSubtype::Success, _) => Exit::Success,
        (TurnSubtype::ErrorMaxTurns, _) => Exit::MaxTurns,
        (_, TerminalReason::AbortedStreaming | TerminalReason::AbortedTools) => Exit::Interrupted,
        _ if end.error_code == Some(105) => Exit::Authentication,
        _ => Exit::General,
    }
}
