//! Where hooks are reported: that one began, what its program writes, how it ended, and warnings for people. A session
//! implements [`HookOutlet`] and passes these on to its hosts.

use std::io;

use qoder_types::HookEvent;

/// What is reported of the run of one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunReport {
    /// It began.
    Started,
    /// Its program wrote something.
    Progress {
        /// What came on its output.
        stdout: String,
        /// What came on its error stream.
        stderr: String,
    },
    /// It ended.
    Ended {
        /// What it answered, or why it failed.
        output: String,
        /// What its program wrote.
        stdout: String,
        /// What its program wrote on its error stream.
        stderr: String,
        /// The exit code of its program.
        exit_code: Option<i32>,
        /// `success`, `error` or `cancelled`.
        outcome: String,
    },
}

/// Passes on what a session's hosts hear of hooks.
pub trait HookOutlet: Send + Sync {
    /// True when hosts want to hear of every hook that is called.
    fn wants_runs(&self) -> bool;

    /// Reports a text to people.
    ///
    /// # Errors
    /// When no host can take it.
    fn warn(&self, text: &str) -> io::Result<()>;

    /// Reports the run `id` of the hook of this name.
    ///
    /// # Errors
    /// When no host can take it.
    fn report(&self, id: &str, hook: &str, event: HookEvent, report: RunReport) -> io::Result<()>;
}
