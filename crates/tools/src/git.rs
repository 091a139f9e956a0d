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
use qoder_policy::shell::knowledge::safe_git_override;
use rustix::process::{Pid, Signal};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use qoder_process::environment;
use qoder_process::tree::signal_group;

/// How long one git command may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How much of its output is kept.
const OUTPUT_BYTES: u64 = 1024 * 1024;

/// Settings of a repository that would run programs, as git takes them in front of its command.
const SETTINGS_THAT_RUN_NOTHING: [&str; 9] = [
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
    #[error("The repository is not safe to ask: {why}. {hint}, or run git outside of this program.")]
    Unsafe { why: String, hint: &'static str },
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
            Self::Unsafe { .. } => "git_unsafe",
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
        match self.listed(&["config", "--list", "--name-only", "--show-scope", "--show-origin", "-z"]).await {
            Ok(listed) => overrides(&listed, self.place().await?.as_ref()),
            // There is no repository, or a broken one: the next command says which.
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// A list that must be complete to be of use.
    async fn listed<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String, GitError> {
        let listed = self.run(arguments).await?;
        if listed.len() as u64 >= OUTPUT_BYTES {
            return Err(GitError::Unsafe {
                why: "its configuration is too large to be checked".to_owned(),
                hint: "Make it smaller",
            });
        }
        Ok(listed)
    }

    /// The names of submodules, each of which may have settings of its own for how it is shown.
    pub(crate) async fn submodules(&self, top: &Path) -> Result<Vec<String>, GitError> {
        let file = top.join(".gitmodules");
        // Not a link and nothing that could be endless: git reads it as it is.
        if !file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(Vec::new());
        }
        let arguments: [&OsStr; 6] = [
            "config".as_ref(),
            "--list".as_ref(),
            "--name-only".as_ref(),
            "-z".as_ref(),
            "--file".as_ref(),
            file.as_os_str(),
        ];
        let listed = match self.listed(&arguments).await {
            Ok(listed) => listed,
            // What cannot be read here git does not read either.
            Err(GitError::Failed { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = listed.split('\0').filter_map(|key| key.strip_prefix("submodule."));
        let mut names: Vec<String> =
            names.filter_map(|key| key.rsplit_once('.').map(|(name, _)| name.to_owned())).collect();
        names.dedup();
        Ok(names)
    }

    /// The folders of the repository as git sees them; `None` where there is no working tree.
    pub(crate) async fn place(&self) -> Result<Option<RepositoryPlace>, GitError> {
        let asked =
            ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"];
        let told = match self.run(&asked).await {
            Ok(told) => told,
            Err(GitError::Failed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let real = |line: &str| {
            let path = self.directory.join(line);
            crate::files::paths::real(&path).unwrap_or(path)
        };
        let mut lines = told.lines().rev();
        let (Some(common), Some(own), Some(top)) = (lines.next(), lines.next(), lines.next()) else {
            return Ok(None);
        };
        Ok(Some(RepositoryPlace { top: real(top), own: real(own), common: real(common) }))
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
        // It has ended by itself; its number may belong to another process soon.
        guard.0 = None;
        match status {
            Ok(status) if status.success() => Ok(output),
            Ok(_) => {
                let message = if errors.trim().is_empty() { output } else { errors };
                Err(GitError::Failed {
                    command: name,
                    message: qoder_process::output::first_characters(&message, 2_000).0.to_owned(),
                })
            }
            Err(error) => Err(GitError::Failed { command: name, message: error.to_string() }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        for setting in SETTINGS_THAT_RUN_NOTHING {
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

/// Where a repository is.
#[derive(Debug)]
pub(crate) struct RepositoryPlace {
    /// The top of the working tree.
    pub(crate) top: PathBuf,
    /// The repository of this working tree.
    pub(crate) own: PathBuf,
    /// The repository that worktrees share.
    pub(crate) common: PathBuf,
}

impl RepositoryPlace {
    /// True for the files that git itself keeps the configuration in. Git names them from the top.
    fn keeps_configuration_in(&self, file: &str) -> bool {
        let path = self.top.join(file);
        let folder = path.parent().and_then(|folder| crate::files::paths::real(folder).ok());
        let named = matches!(path.file_name().and_then(OsStr::to_str), Some("config" | "config.worktree"));
        named && folder.is_some_and(|folder| folder == self.own || folder == self.common)
    }
}

/// The scope, the origin and the name of each setting stand in turn. A file that the repository's configuration includes
/// from elsewhere would be shown as configuration.
fn overrides(listed: &str, place: Option<&RepositoryPlace>) -> Result<Vec<(String, &'static str)>, GitError> {
    let fields: Vec<&str> = listed.split('\0').collect();
    let mut overridden = Vec::new();
    for setting in fields.chunks_exact(3).filter(|setting| matches!(setting[0], "local" | "worktree")) {
        let origin = setting[1].strip_prefix("file:").unwrap_or(setting[1]);
        if place.is_some_and(|place| !place.keeps_configuration_in(origin)) {
            return Err(GitError::Unsafe {
                why: format!("its configuration includes the file {origin}"),
                hint: "Remove that line from its configuration",
            });
        }
        overridden.extend(safe_git_override(setting[2]).map(|value| (setting[2].to_owned(), value)));
    }
    Ok(overridden)
}

/// Kills the group when its future is dropped.
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
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let own = top.join(".git");
        std::fs::create_dir(&own).unwrap();
        let place = RepositoryPlace { top, common: own.clone(), own };
        let listed = "system\0file:/etc/gitconfig\0diff.x.textconv\0local\0file:.git/config\0diff.evil.textconv\0\
                      local\0file:.git/config\0user.name\0worktree\0file:.git/config.worktree\0diff.external\0";
        let found: Vec<String> =
            overrides(listed, Some(&place)).unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, ["diff.evil.textconv", "diff.external"]);
        let included = "local\0file:/home/someone/.aws/credentials\0default.key\0";
        assert_eq!(overrides(included, Some(&place)).unwrap_err().code(), "git_unsafe");
    }
}
