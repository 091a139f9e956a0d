//! Running git itself: an argument vector, never a shell, and nothing that a repository could make it run.
//!
//! Hooks, file-system monitors, content filters of the repository's own configuration, pagers, editors and prompts are
//! switched off, variables that redirect git are removed, and the whole process group ends when the call is cancelled or
//! takes too long.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use qoder_core::ports::{Cancelled, CommandEnvironment};
use qoder_core::shell::knowledge::safe_git_override;
use rustix::process::{Pid, Signal};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::environment;
use crate::process::signal_group;

/// How long one git command may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How much of its output is kept.
const OUTPUT_BYTES: u64 = 1024 * 1024;

/// Settings of a repository that would run programs, as git takes them in front of its command.
const HARMLESS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "gc.auto=0",
    "log.showSignature=false",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",
];

/// Why git did not do it. The text is for the model and ends with what to do.
#[derive(Debug, Error)]
pub(crate) enum GitError {
    #[error("git could not be started in {}: {source}. Check that the directory exists and that git is installed.", directory.display())]
    Missing { directory: PathBuf, source: std::io::Error },
    #[error("git {command} failed: {message}")]
    Failed { command: String, message: String },
    #[error("git {command} took longer than {} seconds and was stopped. Look at the repository before you try again.", TIME_LIMIT.as_secs())]
    TimedOut { command: String },
    #[error("The call was interrupted before it finished.")]
    Cancelled,
}

impl GitError {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "git_missing",
            Self::Failed { .. } => "git_failed",
            Self::TimedOut { .. } => "git_timeout",
            Self::Cancelled => "git_cancelled",
        }
    }
}

/// git in one directory.
pub(crate) struct Git<'a> {
    directory: &'a Path,
    cancelled: Cancelled,
    environment: &'a CommandEnvironment,
    /// Settings of the repository that are overridden, by their names.
    overridden: Vec<(String, &'static str)>,
}

impl<'a> Git<'a> {
    /// git in `directory`, for which this call is cancelled, in the session's environment.
    pub(crate) async fn open(
        directory: &'a Path,
        cancelled: Cancelled,
        environment: &'a CommandEnvironment,
    ) -> Result<Self, GitError> {
        let mut git = Self { directory, cancelled, environment, overridden: Vec::new() };
        git.overridden = git.programs_named_by_the_repository().await?;
        Ok(git)
    }

    /// git in `directory` before anything of the repository is overridden; for listing what has to be.
    pub(crate) fn listing(
        directory: &'a Path,
        cancelled: Cancelled,
        environment: &'a CommandEnvironment,
    ) -> Self {
        Self { directory, cancelled, environment, overridden: Vec::new() }
    }

    /// The settings by which the repository would start programs, each with the value that takes them away. Listing runs
    /// none of them.
    pub(crate) async fn programs_named_by_the_repository(
        &self,
    ) -> Result<Vec<(String, &'static str)>, GitError> {
        match self.run(&["config", "--list", "--name-only", "--show-scope", "-z"]).await {
            Ok(listed) if listed.len() as u64 >= OUTPUT_BYTES => Err(GitError::Failed {
                command: "config".to_owned(),
                message: "the repository's configuration is too large to be checked".to_owned(),
            }),
            Ok(listed) => Ok(overrides(&listed)),
            // There is no repository, or a broken one: the next command says which.
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Runs a command; returns its output without line ends at its end.
    pub(crate) async fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String, GitError> {
        let name =
            arguments.first().map(|name| name.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        let mut command = self.command();
        command.args(arguments);
        let mut child = command
            .spawn()
            .map_err(|source| GitError::Missing { directory: self.directory.to_path_buf(), source })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let mut guard = EndGroup(group);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async {
            let (output, errors, status) = tokio::join!(collected(stdout), collected(stderr), child.wait());
            (output, errors, status)
        };
        let (output, errors, status) = tokio::select! {
            ended = ended => ended,
            () = tokio::time::sleep(TIME_LIMIT) => return Err(GitError::TimedOut { command: name }),
            () = self.cancelled.clone() => return Err(GitError::Cancelled),
        };
        // It has ended by itself; its number may belong to somebody else soon.
        guard.0 = None;
        match status {
            Ok(status) if status.success() => Ok(output),
            Ok(_) => {
                let message = if errors.trim().is_empty() { output } else { errors };
                Err(GitError::Failed {
                    command: name,
                    message: crate::bounds::first_characters(&message, 2_000).0.to_owned(),
                })
            }
            Err(error) => Err(GitError::Failed { command: name, message: error.to_string() }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        for setting in HARMLESS {
            command.args(["-c", setting]);
        }
        command
            .current_dir(self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0);
        environment::apply(self.environment, &mut command);
        environment::remove_starting_with(self.environment, b"GIT_", &mut command);
        // Messages are compared and shown: they shall not depend on the person's language.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "false");
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_COUNT", self.overridden.len().to_string());
        // By variables and not by arguments, because the names may hold anything.
        for (number, (name, value)) in self.overridden.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), name)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        command
    }
}

/// Where git is, looked for only in absolute directories: a relative entry of the search path would let the working
/// directory provide the program.
fn program() -> PathBuf {
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("git"))
        .find(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("/usr/bin/git"))
}

/// The scope and the name of each setting stand in turn.
fn overrides(listed: &str) -> Vec<(String, &'static str)> {
    let fields: Vec<&str> = listed.split('\0').collect();
    fields
        .chunks_exact(2)
        .filter(|pair| matches!(pair[0], "local" | "worktree"))
        .filter_map(|pair| safe_git_override(pair[1]).map(|value| (pair[1].to_owned(), value)))
        .collect()
}

/// Kills the group when nobody waits for it any more.
struct EndGroup(Option<Pid>);

impl Drop for EndGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            signal_group(group, Signal::KILL);
        }
    }
}

/// Everything a stream says, up to the limit; the rest is read and dropped so that git does not wait.
async fn collected(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut bytes = Vec::new();
    // What was read before an error is still what git said.
    let _ = (&mut stream).take(OUTPUT_BYTES).read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_repository_makes_up_are_overridden() {
        let listed =
            "system\0diff.x.textconv\0local\0diff.evil.textconv\0local\0user.name\0worktree\0diff.external\0";
        let found: Vec<String> = overrides(listed).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, ["diff.evil.textconv", "diff.external"]);
    }
}
