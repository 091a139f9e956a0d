//! Git queries run with everything switched off by which a repository's configuration could start programs. The names
//! that a repository makes up itself are listed first, by a git command that runs nothing.
//!
//! Only lines whose every git command is a query are changed: a commit that a rule allows keeps its hooks.

use qoder_core::ports::ToolContext;
use qoder_core::shell::knowledge::{
    SAFE_GIT_CONFIGURATION, SAFE_GIT_ENVIRONMENT, effects, git_needs_safe_configuration, safe_git_override,
};
use qoder_core::shell::read;

use crate::git::{Git, GitError};

/// A configuration whose names take more than this is not one that people write.
const LONGEST_LIST: usize = 512 * 1024;

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
    let git = Git {
        directory: &context.cwd,
        cancelled: context.cancelled.clone(),
        hidden: &context.hidden_environment,
    };
    let listed = match git.run(&["config", "--list", "--name-only", "--show-scope", "-z"]).await {
        Ok(listed) if listed.len() <= LONGEST_LIST => listed,
        Ok(_) => return Err("the repository's git configuration is too large to be checked".to_owned()),
        // Without git nothing runs anyway, and the shell says so.
        Err(GitError::Missing(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    for (key, value) in overrides(&listed) {
        settings.push((key, value.to_owned()));
    }
    let mut variables: Vec<(String, String)> =
        SAFE_GIT_ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    variables.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
    for (number, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    Ok(variables)
}

fn asks_git(command: &str) -> bool {
    let reading = read(command);
    let mut queries =
        reading.commands.iter().filter(|command| git_needs_safe_configuration(&command.words)).peekable();
    queries.peek().is_some() && queries.all(|command| effects(&command.words).read_only)
}

/// The scope and the name of each setting stand in turn.
fn overrides(listed: &str) -> impl Iterator<Item = (String, &'static str)> {
    let fields: Vec<&str> = listed.split('\0').collect();
    let pairs: Vec<(String, &'static str)> = fields
        .chunks_exact(2)
        .filter(|pair| matches!(pair[0], "local" | "worktree"))
        .filter_map(|pair| safe_git_override(pair[1]).map(|value| (pair[1].to_owned(), value)))
        .collect();
    pairs.into_iter()
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

    #[test]
    fn names_that_a_repository_makes_up_are_overridden() {
        let listed =
            "system\0diff.x.textconv\0local\0diff.evil.textconv\0local\0user.name\0worktree\0diff.external\0";
        let found: Vec<String> = overrides(listed).map(|(key, _)| key).collect();
        assert_eq!(found, ["diff.evil.textconv", "diff.external"]);
    }
}
