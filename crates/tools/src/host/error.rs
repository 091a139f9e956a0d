//! Why a tool host cannot be used.

/// A tool host that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It cannot be started.
    #[error("the environment of the session cannot be started: {0}")]
    Start(String),
    /// It ended, or does not keep to the protocol.
    #[error("the environment of the session ended: {0}")]
    Gone(String),
    /// It cannot read a file.
    #[error("{0}")]
    File(String),
}

impl HostError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start(_) => "tool_host_start",
            Self::Gone(_) => "tool_host_gone",
            Self::File(_) => "tool_host_file",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Start(_) => "`qodercli serve doctor` tries what an environment needs",
            Self::Gone(_) => "the next call starts the environment anew",
            Self::File(_) => "give the path of a regular file in the environment",
        }
    }
}
