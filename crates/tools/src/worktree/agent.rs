//! A worktree for an agent alone: made like the one of EnterWorktree, and removed when the agent has changed nothing.

use futures::FutureExt;
use qoder_core::ports::ToolContext;
use qoder_types::{ToolResultContent, Worktree};
use thiserror::Error;

use crate::call::refusal::Refusal;
use crate::worktree::enter::{EnterWorktreeInput, enter};
use crate::worktree::exit::{remove, repository_root};

/// Why an agent got no worktree. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct WorktreeError(String);

impl WorktreeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "agent_worktree"
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "Start the agent in a git repository, or without isolation."
    }
}

/// For callers whose own error is a text.
impl From<WorktreeError> for String {
    fn from(error: WorktreeError) -> Self {
        error.0
    }
}

/// Makes a worktree of this name.
///
/// # Errors
/// When there is no repository, or git does not make it. The text is for the model.
pub async fn isolate(name: &str, context: &ToolContext) -> Result<Worktree, WorktreeError> {
    // The one that the session itself may be in is no hindrance for another.
    let context = ToolContext { worktree: None, ..context.clone() };
    let input = EnterWorktreeInput { name: Some(name.to_owned()) };
    enter(input, &context).await.map_err(|refusal| WorktreeError(words(&refusal)))
}

/// Removes a worktree in which nothing would be lost. True when it is gone.
pub async fn settle(worktree: &Worktree, context: &ToolContext) -> bool {
    // An interruption of the agent is no reason to keep its worktree.
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
