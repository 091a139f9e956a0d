//! Why a command cannot run confined. Each reason has a stable code and says what a person can do.
//!
//! None of them is ever answered by running the command without the sandbox.

use std::path::PathBuf;

/// Why a command cannot run confined.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The system lacks what the sandbox is made of.
    #[error("this system cannot confine commands: {0}")]
    Unavailable(String),
    /// A restriction was asked for that nothing here enforces.
    #[error("the sandbox cannot enforce {what}: {reason}")]
    Unenforceable {
        /// What was asked for.
        what: &'static str,
        /// Why it is not possible.
        reason: String,
    },
    /// A place that the plan names cannot be used.
    #[error("the sandbox cannot use {}: {source}", path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A step of the confinement failed in the child.
    #[error("the sandbox could not be set up ({step}): {source}")]
    Setup {
        /// What was being done.
        step: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The self-test got through where it must not.
    #[error("the self-test of the sandbox failed: {0}")]
    SelfTest(String),
}

impl SandboxError {
    /// The stable name of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "sandbox_unavailable",
            Self::Unenforceable { .. } => "sandbox_unenforceable",
            Self::Place { .. } => "sandbox_place",
            Self::Setup { .. } => "sandbox_setup",
            Self::SelfTest(_) => "sandbox_self_test",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unavailable(_) | Self::Setup { .. } | Self::SelfTest(_) => {
                "`qodercli sandbox status` shows what is missing; docs/sandbox.md says how to enable it"
            }
            Self::Unenforceable { .. } => {
                "change that setting; docs/sandbox.md says what each system enforces"
            }
            Self::Place { .. } => "create the place or take it out of the sandbox settings",
        }
    }
}
