//! Why an order about a server could not be carried out.

use crate::PeerError;
use crate::authorization::AuthorizationError;

/// Why a server cannot be used, connected or signed in to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// No server has this name.
    #[error("there is no MCP server named `{name}`; known are: {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names that exist, or `none`.
        known: String,
    },
    /// A newer connection took the place of the one that the order was about.
    #[error("the server `{0}` has another connection now")]
    Replaced(String),
    /// The server takes no credentials.
    #[error("the server `{0}` takes no credentials; those of type http and sse do")]
    NoCredentials(String),
    /// The authorization failed.
    #[error("{0}; {hint}", hint = .0.hint())]
    Authorization(#[from] AuthorizationError),
    /// No connected server has the tool.
    #[error("no connected MCP server has a tool {0}")]
    NoTool(String),
    /// The server cannot be used; the text says why.
    #[error("{0}")]
    Unusable(String),
}

impl ServerError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "mcp_server_unknown",
            Self::Replaced(_) => "mcp_connection_replaced",
            Self::NoCredentials(_) => "mcp_no_credentials",
            Self::Authorization(error) => error.code(),
            Self::NoTool(_) => "mcp_tool_unknown",
            Self::Unusable(_) => "mcp_server_unusable",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "use one of the names of `qodercli mcp list`",
            Self::Replaced(_) => "try again",
            Self::NoCredentials(_) => "sign in only to servers of type http or sse",
            Self::Authorization(error) => error.hint(),
            Self::NoTool(_) => "`qodercli mcp get NAME` lists the tools of a server",
            Self::Unusable(_) => "`qodercli mcp get NAME` shows the state of the server",
        }
    }
}

impl From<ServerError> for PeerError {
    fn from(error: ServerError) -> Self {
        Self::Failed(error.to_string())
    }
}
