//! Containers: where the tools of a session run when the operator names a program that runs them. Every container has a tool host
//! in it and ends with it.

mod engine;
mod image;
mod launcher;
mod process;

pub use engine::ContainerEngine;
pub use launcher::ContainerLauncher;

/// A container that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// The program cannot be run.
    #[error("`{program}` cannot be run: {problem}")]
    Program {
        /// The program.
        program: String,
        /// What the system said.
        problem: String,
    },
    /// The program failed.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// What it was asked for.
        command: String,
        /// What it said.
        said: String,
    },
    /// The packages or the script of an environment failed.
    #[error("{0}")]
    Setup(String),
}

impl ContainerError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Program { .. } => "container_program",
            Self::Failed { .. } => "container_failed",
            Self::Setup(_) => "container_setup",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Program { .. } => "install it, or set `--container` to its path",
            Self::Failed { .. } => "run the command by hand as the user of the server",
            Self::Setup(_) => "change `packages` or `setup_script` of the environment",
        }
    }
}
