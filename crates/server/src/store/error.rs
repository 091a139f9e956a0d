//! What a store can report. A refusal is an answer; everything else is a fault of the store.

use crate::model::problem::Problem;
use crate::model::refusal::Refusal;

/// Something that a store did not do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DbError {
    /// The request cannot be served; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database does not work at this moment; nothing was changed, or it is not known whether it was.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// Another holder has a newer lease of the session, or the log is not where it was.
    #[error("the lease of session {0} was taken over")]
    Fenced(i64),
    /// What is stored cannot be read.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
    /// The database is of another version.
    #[error("the database has schema {found}, and this program knows {known}")]
    Schema {
        /// The version of the database.
        found: u32,
        /// The version of the program.
        known: u32,
    },
}

impl DbError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Unavailable(_) => "database_unavailable",
            Self::Fenced(_) => "session_fenced",
            Self::Corrupt(_) => "database_corrupt",
            Self::Schema { .. } => "database_schema",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Refused(_) => "change the request",
            Self::Unavailable(_) => {
                "check that the database can be reached, and that its disk is writable and has room; a server continues by itself"
            }
            Self::Fenced(_) => "another node drives the session; nothing already written is lost",
            Self::Corrupt(_) => "restore a backup, or report this with the output of `qodercli serve doctor`",
            Self::Schema { .. } => "use the version of the program that made the database, or a newer one",
        }
    }
}

impl From<Problem> for DbError {
    fn from(problem: Problem) -> Self {
        Self::Refused(Refusal::Invalid(problem))
    }
}
