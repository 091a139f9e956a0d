//! A worktree for an agent alone: made like the one of EnterWorktree, and removed when the agent has changed nothing.

use futures::FutureExt;
use qoder_core::ports::ToolContext;
use qoder_types::{ToolResultContent, Worktree};

use crate::enter_worktree::{EnterWorktreeInput, enter};
use crate::exit_worktree::{remove, repository_root};
use crate::work::Refusal;

/// Makes a worktree of this name.
///
/// # Errors
/// When there is no repository, or git does not make it. The text is for the model.
pub async fn isolate(name: &str, context: &ToolContext) -> Result<Worktree, String> {
    // The one that the session itself may be in is no hindrance for another.
    let context = ToolContext { worktree: None, ..context.clone() };
    let input = EnterWorktreeInput { name: Some(name.to_owned()) };
    enter(input, &context).await.map_err(|refusal| words(&refusal))
}

/// Removes a worktree in which nothing would be lost. True when it is gone.
pub async fn settle(worktree: &Worktree, context: &ToolContext) -> bool {
    // Whoever interrupted the agent did not want its worktree to be left lying about.
    let cancelled = futures::future::pending().boxed().shared();
    let context = ToolContext { cancelled, ..context.clone() };
    let root = repository_root(worktree, &context).await;
    remove(worktree, &root, false, &context).await.is_ok()
}

fn words(refusal: &Refusal) -> String {
    match &refusal.content {
        ToolResultContent::Text(text) => text.trim_end_matches('.').to_owned(),
        ToolResultContent::Blocks(_) => "the worktree could not be made".to_owned(),
    }
}
