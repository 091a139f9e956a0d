//! The EnterWorktree tool: a second working tree of the repository, on a branch of its own, for the session to work in.
//!
//! It lies under `.qoder/worktrees/` of the repository, in a folder that ignores itself, so that the first working tree
//! stays clean. The branch is called `worktree-` and the name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::{PermissionUpdate, ReplayClass, UpdateDestination, Worktree, WorktreeChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, interrupted};
use crate::git::{Git, GitError};

/// Where worktrees are, below the root of the repository.
const FOLDER: &str = ".qoder/worktrees";
/// The longest name of a worktree.
const LONGEST_NAME: usize = 64;
/// How long a call that failed waits until everything is as it was.
const CLEANING_WAIT: Duration = Duration::from_millis(1_500);

/// Creates a git worktree and moves the session into it.
///
/// Use it only when the person asks for a worktree, or to try something without touching the working tree. The new tree
/// starts from the present commit on a new branch; changes that are not committed stay where they are. All later calls
/// work in the new tree until ExitWorktree leaves it.
///
/// Needs a git repository with at least one commit, and does not work inside of a worktree that was entered before.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EnterWorktreeInput {
    /// A short name for it, of letters, digits, `.`, `_` and `-`. Left out, one is made up.
    pub(crate) name: Option<String>,
}

/// See [`EnterWorktreeInput`].
#[derive(Debug)]
pub(crate) struct EnterWorktreeTool;

impl BuiltIn for EnterWorktreeTool {
    const NAME: &'static str = "EnterWorktree";
    const FACTS: Facts =
        Facts { read_only: false, destructive: false, open_world: false, replay: ReplayClass::Effectful };
    type Input = EnterWorktreeInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Other]
    }

    async fn run(self: Arc<Self>, input: EnterWorktreeInput, context: ToolContext) -> ToolOutcome {
        match enter(input, &context).await {
            Ok(worktree) => entered(worktree),
            Err(refusal) => *refusal,
        }
    }
}

/// A failure in the documented shape.
pub(crate) fn failed(text: impl Into<String>) -> Refusal {
    let text = text.into();
    let mut outcome = ToolOutcome::failed(text.clone());
    outcome.structured = json!({ "success": false, "error": text });
    Box::new(outcome)
}

/// A failure of git in the documented shape.
pub(crate) fn git_failed(error: &GitError) -> Refusal {
    if matches!(error, GitError::Cancelled) {
        return Box::new(interrupted());
    }
    let mut outcome = failed(error.to_string());
    outcome.structured["code"] = json!(error.code());
    outcome
}

pub(crate) async fn enter(input: EnterWorktreeInput, context: &ToolContext) -> Result<Worktree, Refusal> {
    if let Some(worktree) = &context.worktree {
        return Err(failed(format!(
            "The session is already in the worktree {}. Leave it with ExitWorktree first.",
            worktree.path
        )));
    }
    let name = match input.name {
        Some(name) => checked_name(name)?,
        None => format!("session-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]),
    };
    let git = Git::open(&context.cwd, context.cancelled.clone(), &context.environment)
        .await
        .map_err(|error| git_failed(&error))?;
    let root = match git.run(&["rev-parse", "--show-toplevel"]).await {
        Ok(root) => PathBuf::from(root),
        Err(GitError::Failed { message, .. }) => {
            return Err(failed(format!(
                "{} is not in the working tree of a git repository ({message}). Worktrees need one.",
                context.cwd.display()
            )));
        }
        Err(error) => return Err(git_failed(&error)),
    };
    let base = match git.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await {
        Ok(base) => base,
        Err(GitError::Failed { .. }) => {
            return Err(failed(
                "The repository has no commit yet, and a worktree starts from one. Commit first.",
            ));
        }
        Err(error) => return Err(git_failed(&error)),
    };
    let branch = format!("worktree-{name}");
    let path = free_place(&root, &name)?;
    if branch_exists(&git, &branch).await? {
        return Err(failed(format!("The branch {branch} exists already. Choose another name.")));
    }
    let command = ["worktree", "add", "--quiet", "-b", &branch].map(OsStr::new);
    let places = [path.as_os_str(), OsStr::new(&base)];
    if let Err(error) = git.run(&[&command[..], &places].concat()).await {
        clean_up(&root, &path, &branch, context).await;
        return Err(git_failed(&error));
    }
    let real =
        path.canonicalize().map_err(|error| failed(format!("The worktree cannot be used: {error}.")))?;
    Ok(Worktree {
        path: real.to_string_lossy().into_owned(),
        branch,
        base,
        original_cwd: context.cwd.to_string_lossy().into_owned(),
    })
}

/// Whether there is such a branch.
pub(crate) async fn branch_exists(git: &Git<'_>, branch: &str) -> Result<bool, Refusal> {
    match git.run(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).await {
        Ok(_) => Ok(true),
        Err(GitError::Failed { .. }) => Ok(false),
        Err(error) => Err(git_failed(&error)),
    }
}

/// The name, if it can be a folder and a part of a branch name.
fn checked_name(name: String) -> Result<String, Refusal> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    let bad_end = name.ends_with('.') || name.ends_with(".lock");
    if name.is_empty() || name.len() > LONGEST_NAME || !plain || name.starts_with(['.', '-']) || bad_end {
        return Err(failed(format!(
            "Invalid input for {}: field `name`: use 1 to {LONGEST_NAME} letters, digits, `.`, `_` and `-`, not \
             beginning with `.` or `-` and not ending with `.` or `.lock`.",
            EnterWorktreeTool::NAME
        )));
    }
    if name.contains("..") {
        return Err(failed(format!(
            "Invalid input for {}: field `name` contains `..`.",
            EnterWorktreeTool::NAME
        )));
    }
    Ok(name)
}

/// The place of a new worktree; makes the folder in which it will be.
fn free_place(root: &Path, name: &str) -> Result<PathBuf, Refusal> {
    let folder = root.join(FOLDER);
    let unusable = |error: std::io::Error| failed(format!("{} cannot be used: {error}.", folder.display()));
    std::fs::create_dir_all(&folder).map_err(unusable)?;
    let real = folder.canonicalize().map_err(unusable)?;
    // A link would put the tree where nothing was checked.
    if root.canonicalize().map_err(unusable)?.join(FOLDER) != real {
        return Err(failed(format!(
            "{} leads elsewhere over a link. Remove the link first.",
            folder.display()
        )));
    }
    let ignore = real.join(".gitignore");
    if ignore.symlink_metadata().is_err() {
        std::fs::write(&ignore, "*\n").map_err(unusable)?;
    }
    let path = real.join(name);
    if path.symlink_metadata().is_ok() {
        return Err(failed(format!("{} exists already. Choose another name.", path.display())));
    }
    Ok(path)
}

/// Takes back what a failed or interrupted start left behind. Neither existed before, so nothing of worth is lost. A large
/// tree takes its time, and the call does not wait for all of it.
async fn clean_up(root: &Path, path: &Path, branch: &str, context: &ToolContext) {
    let (root, path, branch) = (root.to_path_buf(), path.to_path_buf(), branch.to_owned());
    let environment = Arc::clone(&context.environment);
    let work = tokio::spawn(async move {
        let cancelled = futures::future::pending().boxed().shared();
        let Ok(git) = Git::open(&root, cancelled, &environment).await else { return };
        let mut removal = ["worktree", "remove", "--force", "--force"].map(OsStr::new).to_vec();
        removal.push(path.as_os_str());
        // Each of them may have nothing to do; the error that matters is the one of the start.
        let _ = git.run(&removal).await;
        let _ = git.run(&["worktree", "prune"]).await;
        let _ = git.run(&["branch", "--quiet", "-D", &branch]).await;
    });
    let _ = tokio::time::timeout(CLEANING_WAIT, work).await;
}

fn entered(worktree: Worktree) -> ToolOutcome {
    let text = format!(
        "The session now works in the worktree {} on the new branch {}. Leave it with ExitWorktree.",
        worktree.path, worktree.branch
    );
    let structured =
        json!({ "worktree_path": worktree.path, "branch_name": worktree.branch, "success": true });
    let mut outcome = ToolOutcome::completed(text, structured);
    outcome.new_cwd = Some(PathBuf::from(&worktree.path));
    outcome.permission_updates.push(PermissionUpdate::AddDirectories {
        directories: vec![worktree.path.clone()],
        destination: UpdateDestination::Session,
    });
    outcome.worktree = Some(WorktreeChange::Entered(worktree));
    outcome
}
