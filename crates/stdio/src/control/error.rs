//! Why a handshake or a request of the host is refused. The texts travel to the host as they are.

use qoder_protocol::RequestError;
use qoder_runtime::VERSION;
use qoder_runtime::config::agents::AgentError;

/// Why a handshake is refused.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// Its fields cannot be read.
    #[error("initialize: {0}")]
    Fields(#[from] serde_json::Error),
    /// It announces a token and has none.
    #[error("initialize: auth.accessToken is empty")]
    EmptyToken,
    /// It names an unknown way to authenticate.
    #[error("initialize: auth.type `{0}` is not known; accepted are accessToken and qodercli")]
    UnknownAuth(String),
    /// It sets a limit for goals.
    #[error("initialize: goalMaxTurns is not supported: there are no goals")]
    Goals,
    /// It defines an invalid agent.
    #[error("initialize: {0}")]
    Agent(#[from] AgentError),
    /// A hook has an unknown `onFailure`.
    #[error(
        "initialize: hooks.{event}: onFailure `{word}` is not known; accepted are continue, ask and block"
    )]
    OnFailure {
        /// The event of the hook.
        event: String,
        /// What the host sent.
        word: String,
    },
    /// A hook has an invalid timeout.
    #[error("initialize: hooks.{event}: timeout {seconds:?} is not a number of seconds above 0")]
    Timeout {
        /// The event of the hook.
        event: String,
        /// What the host sent.
        seconds: f64,
    },
}

impl HandshakeError {
    /// What a person can do.
    pub fn hint(&self) -> &'static str {
        "the program that started qodercli sent it"
    }
}

/// Why a request of the host is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It does not say what it is.
    #[error("the control request has no `subtype`")]
    NoSubtype,
    /// It is documented and not built.
    #[error("{0} is not supported by qodercli {VERSION}")]
    NotBuilt(String),
    /// It is not known.
    #[error("Unsupported control request subtype: {0}")]
    UnknownSubtype(String),
    /// Its fields cannot be read.
    #[error("{subtype}: {problem}")]
    Fields {
        /// The request.
        subtype: String,
        /// What is wrong.
        problem: serde_json::Error,
    },
    /// The session refuses it.
    #[error(transparent)]
    Session(#[from] RequestError),
}
