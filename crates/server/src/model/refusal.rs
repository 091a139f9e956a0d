//! Why a request changed nothing although it is well formed: what it names is not there, or is not in the state for it.

use super::problem::Problem;

/// A request that was not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What it names does not exist, or belongs to another tenant.
    #[error("{0}")]
    NotFound(String),
    /// The state of a thing does not allow it.
    #[error("{message}")]
    Conflict {
        /// What is in the way, and what to do.
        message: String,
        /// A stable name for programs, where the documented interface has one.
        code: Option<&'static str>,
    },
    /// A field has a value that does not fit the state of a thing.
    #[error(transparent)]
    Invalid(#[from] Problem),
}

impl Refusal {
    /// There is no such thing; `kind` is its word.
    pub fn not_found(kind: &str, id: impl std::fmt::Display) -> Self {
        Self::NotFound(format!("There is no {kind} `{id}`."))
    }

    /// The state of a thing does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into(), code: None }
    }
}
