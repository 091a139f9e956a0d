//! Hooks in the place of git when a session enters or leaves a worktree: one that listens to `WorktreeCreate` makes the tree
//! and says where it is, one that listens to `WorktreeRemove` is called before it goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{
    HookVerdict, PermissionUpdate, ReplayClass, ToolAnnotations, ToolDefinition, UpdateDestination, Worktree,
    WorktreeChange,
};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::session::new_id;
use qoder_config::hooks::HookEvent;
use qoder_hooks::{Fired, Firing, Occasion};

/// A tool for worktrees, with the hooks that are concerned.
struct Hooked {
    inner: Arc<dyn Tool>,
    firing: Firing,
    /// `None` when no hook listens.
    occasion: Option<Occasion>,
}

impl Driver<'_> {
    /// The tool, with hooks in front of it when some listen to what it does.
    pub(in crate::driver) fn with_worktree_hooks(&self, tool: Arc<dyn Tool>, input: &Value) -> Arc<dyn Tool> {
        let text = |field: &str| input.get(field).and_then(Value::as_str);
        let worktree = self.session.state.worktree.as_ref();
        let (occasion, replaces) = match (tool.definition().name.as_str(), worktree) {
            ("EnterWorktree", None) => {
                let made_up = || format!("worktree-{}", &new_id()[..8]);
                let name = text("name").map_or_else(made_up, str::to_owned);
                (self.occasion(HookEvent::WorktreeCreate, "", || json!({ "name": name })), false)
            }
            // Git knows nothing of a tree that a hook made, so it cannot be asked about it.
            ("ExitWorktree", Some(tree)) => {
                let fields = || json!({ "worktree_path": tree.path });
                let removes = text("action") == Some("remove");
                let told = || self.occasion(HookEvent::WorktreeRemove, "", fields);
                (removes.then(told).flatten(), is_of_hook(tree))
            }
            _ => (None, false),
        };
        if occasion.is_none() && !replaces {
            return tool;
        }
        let event = occasion.as_ref().map_or(HookEvent::WorktreeRemove, |occasion| occasion.event);
        Arc::new(Hooked { inner: tool, firing: self.firing(event), occasion })
    }
}

/// Hooks make trees without a branch that we would know.
fn is_of_hook(tree: &Worktree) -> bool {
    tree.branch.is_empty()
}

impl Tool for Hooked {
    fn definition(&self) -> &ToolDefinition {
        self.inner.definition()
    }

    fn annotations(&self) -> ToolAnnotations {
        self.inner.annotations()
    }

    fn replay(&self) -> ReplayClass {
        self.inner.replay()
    }

    fn is_read_only(&self, input: &Value) -> bool {
        self.inner.is_read_only(input)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        self.inner.accesses(input)
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (firing, occasion, inner) = (self.firing.clone(), self.occasion.clone(), Arc::clone(&self.inner));
        async move {
            let creates =
                occasion.as_ref().is_some_and(|occasion| occasion.event == HookEvent::WorktreeCreate);
            let said = match occasion {
                // A host that is gone is met again by the turn.
                Some(occasion) => firing.fire(occasion).await.ok().flatten(),
                None => None,
            };
            let said = said.map(|fired| firing.keep(fired));
            match (creates, said, context.worktree.clone()) {
                (true, Some(fired), _) => entered(&fired, &context),
                (false, _, Some(tree)) if is_of_hook(&tree) => left(&tree),
                (true | false, _, _) => inner.run(input, context).await,
            }
        }
        .boxed()
    }
}

/// The session goes where the hook made the tree.
fn entered(fired: &Fired, context: &ToolContext) -> ToolOutcome {
    let joined = &fired.joined;
    if joined.verdict == Some(HookVerdict::Deny) {
        let reason = joined.reason.as_deref().unwrap_or("no reason given");
        return ToolOutcome::failed(format!("A hook did not make the worktree: {reason}."));
    }
    let named = joined.more.worktree_path.as_deref().filter(|path| path.is_absolute());
    let real = named.and_then(|path| path.canonicalize().ok());
    let Some(path) = real.filter(|path| path.is_dir() && path != Path::new("/")) else {
        return ToolOutcome::failed(
            "The hook for WorktreeCreate named no absolute path of a folder that exists.",
        );
    };
    let path = path.to_string_lossy().into_owned();
    let text = format!(
        "The session now works in the worktree {path}, which a hook made. Leave it with ExitWorktree."
    );
    let mut outcome = ToolOutcome::completed(text, json!({ "worktree_path": path, "success": true }));
    outcome.new_cwd = Some(PathBuf::from(&path));
    outcome.permission_updates.push(PermissionUpdate::AddDirectories {
        directories: vec![path.clone()],
        destination: UpdateDestination::Session,
    });
    outcome.worktree = Some(WorktreeChange::Entered(Worktree {
        path,
        branch: String::new(),
        base: String::new(),
        original_cwd: context.cwd.to_string_lossy().into_owned(),
    }));
    outcome
}

/// The session leaves a tree that a hook made; what becomes of it is the hooks' affair.
fn left(tree: &Worktree) -> ToolOutcome {
    let text =
        format!("The session has left the worktree {} and is back in {}.", tree.path, tree.original_cwd);
    let structured = json!({ "worktree_path": tree.path, "success": true });
    let mut outcome = ToolOutcome::completed(text, structured);
    outcome.new_cwd = Some(PathBuf::from(&tree.original_cwd));
    outcome.permission_updates.push(PermissionUpdate::RemoveDirectories {
        directories: vec![tree.path.clone()],
        destination: UpdateDestination::Session,
    });
    outcome.worktree = Some(WorktreeChange::Left);
    outcome
}
