//! Git queries run with everything switched off by which a repository's configuration could start programs, read files
//! elsewhere or run git in a repository inside. The names that a repository makes up itself are listed first, by git
//! commands that run nothing. A repository whose working tree or whose objects are elsewhere is not asked at all.
//!
//! Only lines whose every git command is a query are changed: a commit that a rule allows keeps its hooks.

use std::path::{Path, PathBuf};

use qoder_core::ports::ToolContext;
use qoder_policy::shell::knowledge::{
    SAFE_GIT_CONFIGURATION, SAFE_GIT_ENVIRONMENT, effects, git_needs_safe_configuration,
};
use qoder_policy::shell::read;
use qoder_process::environment;

use crate::git::{Git, GitError};

/// Variables by which git would start programs; empty they do nothing.
const FOREIGN_PROGRAMS: [&str; 4] = ["GIT_EXTERNAL_DIFF", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"];

/// The variables under which `command` has to run; none when it asks git nothing. The error is for the model: without
/// the list of what the repository names the query must not run.
pub(crate) async fn safe_environment(
    command: &str,
    context: &ToolContext,
) -> Result<Vec<(String, String)>, String> {
    // Most lines never mention git, and reading a line costs more than this.
    if !command.contains("git") || !asks_git(command) {
        return Ok(Vec::new());
    }
    let mut settings: Vec<(String, String)> =
        SAFE_GIT_CONFIGURATION.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let git = Git::listing(&context.cwd, context.cancelled.clone(), &context.environment);
    let named = match git.programs_named_by_the_repository().await {
        Ok(named) => named,
        // Without git nothing runs anyway, and the shell says so.
        Err(GitError::Missing { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    settings.extend(named.into_iter().map(|(key, value)| (key, value.to_owned())));
    if let Some(found) = repository(&context.cwd) {
        check_place(&found, &git).await.map_err(|error| error.to_string())?;
        for name in git.submodules(&found).await.map_err(|error| error.to_string())? {
            settings.push((format!("submodule.{name}.ignore"), "dirty".to_owned()));
        }
    }
    let mut variables: Vec<(String, String)> = FOREIGN_PROGRAMS
        .iter()
        .filter(|name| environment::has(&context.environment, name))
        .map(|name| ((*name).to_owned(), String::new()))
        .collect();
    let safe = SAFE_GIT_ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    variables.extend(safe);
    variables.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
    for (number, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    Ok(variables)
}

/// The folder around a directory that has a `.git`.
fn repository(directory: &Path) -> Option<PathBuf> {
    let real = crate::files::paths::real(directory).ok()?;
    real.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).map(Path::to_path_buf)
}

/// Makes sure that git looks at the folder that holds the `.git`, and at a repository that belongs to it.
async fn check_place(folder: &Path, git: &Git<'_>) -> Result<(), GitError> {
    let moved = |why: String| GitError::Unsafe { why, hint: "Look at `.git` and at `core.worktree`" };
    let Some(place) = git.place().await? else { return Ok(()) };
    if place.top != folder {
        return Err(moved(format!("its working tree is {}", place.top.display())));
    }
    if place.own.starts_with(folder) || belongs(&place.own, folder, git).await {
        return Ok(());
    }
    Err(moved(format!("its objects are in {}, which does not belong to it", place.own.display())))
}

/// True when a repository elsewhere says itself that its working tree is the folder: a worktree by the file that leads
/// back, a submodule by its setting.
async fn belongs(git_folder: &Path, folder: &Path, git: &Git<'_>) -> bool {
    let back = std::fs::symlink_metadata(git_folder.join("gitdir"))
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() < 8_192)
        .and_then(|_| std::fs::read_to_string(git_folder.join("gitdir")).ok());
    if let Some(back) = back {
        let back = git_folder.join(back.trim_end());
        return crate::files::paths::real(&back).is_ok_and(|back| back == folder.join(".git"));
    }
    let setting = git.run(&["config", "--get", "core.worktree"]).await.unwrap_or_default();
    !setting.is_empty()
        && crate::files::paths::real(&git_folder.join(setting)).is_ok_and(|tree| tree == folder)
}

fn asks_git(command: &str) -> bool {
    let reading = read(command);
    let mut queries =
        reading.commands.iter().filter(|command| git_needs_safe_configuration(&command.words)).peekable();
    queries.peek().is_some() && queries.all(|command| effects(&command.words).read_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_queries_are_changed() {
        assert!(asks_git("git status && git log -3 | head"));
        for line in ["ls", "git commit -m x", "git status; git commit -m x", "echo git"] {
            assert!(!asks_git(line), "{line}");
        }
    }
}
