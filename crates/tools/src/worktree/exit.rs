//! The ExitWorktree tool: leaves the worktree of the session and keeps or removes it.
//!
//! Nothing that exists nowhere else is removed unasked: files that are not committed and commits that no other branch
//! has are listed, and the removal is refused until it is confirmed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::{PermissionUpdate, ReplayClass, UpdateDestination, Worktree, WorktreeChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::Refusal;
use crate::call::schema::{Flag, is_set};
use crate::git::{Git, GitError};
use crate::worktree::enter::{branch_exists, failed, git_failed};

/// The most files and commits that are listed.
const LISTED: usize = 50;

/// Leaves the worktree that EnterWorktree entered and returns to the directory the session came from.
///
/// - `keep` leaves the worktree and its branch as they are, to be used or merged later.
/// - `remove` deletes both. It is refused, with a list, when there are changes that are not committed or commits that
///   are on no other branch; show them to the person and set `discard_changes` only if the person wants to lose them.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ExitWorktreeInput {
    /// What happens to the worktree and its branch.
    action: Action,
    /// Remove it although work would be lost. Default false.
    discard_changes: Option<Flag>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Keep,
    Remove,
}

/// See [`ExitWorktreeInput`].
#[derive(Debug)]
pub(crate) struct ExitWorktreeTool;

impl BuiltIn for ExitWorktreeTool {
    const NAME: &'static str = "ExitWorktree";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: false, replay: ReplayClass::Effectful };
    type Input = ExitWorktreeInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        let keeps = input.get("action").and_then(Value::as_str) == Some("keep");
        vec![if keeps { Access::Internal } else { Access::Other }]
    }

    async fn run(self: Arc<Self>, input: ExitWorktreeInput, context: ToolContext) -> ToolOutcome {
        let Some(worktree) = context.worktree.clone() else {
            return *failed("The session is not in a worktree. EnterWorktree creates one.");
        };
        let root = repository_root(&worktree, &context).await;
        let text = match input.action {
            Action::Keep => Ok(format!(
                "The worktree {} and its branch {} are kept. The session is back in ",
                worktree.path, worktree.branch
            )),
            Action::Remove => remove(&worktree, &root, is_set(input.discard_changes), &context).await,
        };
        match text {
            Ok(text) => left(&text, &worktree, root),
            Err(refusal) => *refusal,
        }
    }
}

async fn git_in<'a>(directory: &'a Path, context: &'a ToolContext) -> Result<Git<'a>, Refusal> {
    Git::open(directory, context.cancelled.clone(), &context.environment)
        .await
        .map_err(|error| git_failed(&error))
}

/// The root of the repository, asked where the session came from; otherwise where worktrees are made.
pub(crate) async fn repository_root(worktree: &Worktree, context: &ToolContext) -> PathBuf {
    let original = Path::new(&worktree.original_cwd);
    if let Ok(git) = git_in(original, context).await
        && let Ok(root) = git.run(&["rev-parse", "--show-toplevel"]).await
    {
        return PathBuf::from(root);
    }
    Path::new(&worktree.path).ancestors().nth(3).unwrap_or(original).to_path_buf()
}

/// Removes the worktree and its branch; returns the beginning of what to say.
pub(crate) async fn remove(
    worktree: &Worktree,
    root: &Path,
    discard: bool,
    context: &ToolContext,
) -> Result<String, Refusal> {
    let path = Path::new(&worktree.path);
    let at_root = git_in(root, context).await?;
    if path.is_dir() {
        if !discard {
            require_nothing_to_lose(worktree, context).await?;
        }
        let mut command = ["worktree", "remove"].map(OsStr::new).to_vec();
        if discard {
            command.push(OsStr::new("--force"));
        }
        command.push(path.as_os_str());
        at_root.run(&command).await.map_err(|error| git_failed(&error))?;
    } else {
        at_root.run(&["worktree", "prune"]).await.map_err(|error| git_failed(&error))?;
    }
    let mut text = format!("The worktree {} was removed", worktree.path);
    if branch_exists(&at_root, &worktree.branch).await? {
        match at_root.run(&["branch", "--quiet", "-D", &worktree.branch]).await {
            Ok(_) => text.push_str(&format!(" with its branch {}", worktree.branch)),
            // The tree is gone, so the session must leave it; the branch that is left over does no harm.
            Err(
                error @ (GitError::Failed { .. }
                | GitError::TimedOut { .. }
                | GitError::Missing { .. }
                | GitError::Unsafe { .. }),
            ) => {
                text.push_str(&format!(", but its branch {} is left over ({error})", worktree.branch));
            }
            Err(GitError::Cancelled) => {
                text.push_str(&format!(", but its branch {} is left over", worktree.branch));
            }
        }
    }
    text.push_str(". The session is back in ");
    Ok(text)
}

/// Refuses with a list of what would be lost.
async fn require_nothing_to_lose(worktree: &Worktree, context: &ToolContext) -> Result<(), Refusal> {
    let git = git_in(Path::new(&worktree.path), context).await?;
    let files = git
        .run(&["status", "--porcelain=v1", "-z", "--untracked-files=all"])
        .await
        .map(|output| changed_files(&output))
        .map_err(|error| git_failed(&error))?;
    let mut command = vec!["log", "--format=%h %s", "--max-count=1000", "HEAD"];
    let branch = format!("refs/heads/{}", worktree.branch);
    if branch_exists(&git, &worktree.branch).await? {
        command.push(&branch);
    }
    let others = format!("--exclude={}", worktree.branch);
    command.extend(["--not", &worktree.base, &others, "--branches", "--remotes", "--tags", "--"]);
    let commits = git.run(&command).await.map_err(|error| git_failed(&error))?;
    let commits: Vec<&str> = commits.lines().collect();
    if files.is_empty() && commits.is_empty() {
        return Ok(());
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let text = format!(
        "The worktree was not removed, because work would be lost.{}{}\nCommit or merge it, leave with action keep, or \
         set discard_changes if the person wants to lose it.",
        list("Files that are not committed", &files),
        list("Commits that are on no other branch", &commits),
    );
    let mut refusal = failed(text);
    refusal.structured["uncommitted_files"] = json!(&files[..files.len().min(LISTED)]);
    refusal.structured["unmerged_commits"] = json!(&commits[..commits.len().min(LISTED)]);
    Err(refusal)
}

fn list(title: &str, entries: &[&str]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title} ({}):", entries.len());
    for entry in entries.iter().take(LISTED) {
        text.push_str("\n  ");
        text.push_str(entry);
    }
    if entries.len() > LISTED {
        text.push_str("\n  ...");
    }
    text
}

/// The paths of a status: each entry has two letters and a blank in front, and a moved file its old path behind.
fn changed_files(status: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut entries = status.split('\0').filter(|entry| !entry.is_empty());
    while let Some(entry) = entries.next() {
        let (state, path) = (entry.get(..2).unwrap_or_default(), entry.get(3..).unwrap_or(entry));
        if state.contains(['R', 'C']) {
            entries.next();
        }
        files.push(path.to_owned());
    }
    files
}

fn left(text: &str, worktree: &Worktree, root: PathBuf) -> ToolOutcome {
    let original = PathBuf::from(&worktree.original_cwd);
    let cwd = if original.is_dir() { original } else { root };
    let mut outcome = ToolOutcome::completed(format!("{text}{}.", cwd.display()), json!({ "success": true }));
    outcome.new_cwd = Some(cwd);
    outcome.permission_updates.push(PermissionUpdate::RemoveDirectories {
        directories: vec![worktree.path.clone()],
        destination: UpdateDestination::Session,
    });
    outcome.worktree = Some(WorktreeChange::Left);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_each_file_once() {
        let status = " M a b.txt\0R  new\0old\0?? ü/x\n.rs\0";
        assert_eq!(changed_files(status), ["a b.txt", "new", "ü/x\n.rs"]);
        assert!(changed_files("").is_empty());
    }
}
