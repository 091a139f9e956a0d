//! Git queries run with everything switched off by which a repository's configuration could start programs. The names
//! that a repository makes up itself are listed first, by a git command that runs nothing.
//!
//! Only lines whose every git command is a query are changed: a commit that a rule allows keeps its hooks.

use qoder_core::ports::ToolContext;
use qoder_core::shell::knowledge::{
    SAFE_GIT_CONFIGURATION, SAFE_GIT_ENVIRONMENT, effects, git_needs_safe_configuration,
};
use qoder_core::shell::read;

use crate::environment;
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
    for (key, value) in named {
        settings.push((key, value.to_owned()));
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
