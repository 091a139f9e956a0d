//! What a confined command may change, judged by real paths: at every depth, and whether it exists or not.

use std::path::{Path, PathBuf};

use qoder_types::workspace::{Workspace, is_protected};

use crate::sandbox::plan::SandboxPlan;

/// Decides about real paths.
#[derive(Debug)]
pub(crate) struct Judge {
    workspace: Workspace,
    /// Where protected names count.
    writable: Vec<PathBuf>,
    /// Where else a command may write: its temporary files and devices.
    free: Vec<PathBuf>,
    unprotected: Vec<PathBuf>,
    /// Places that are protected by their path and not by their name.
    named: Vec<PathBuf>,
}

impl Judge {
    /// For commands of this plan, which see `free` as places of their own.
    pub(crate) fn new(plan: &SandboxPlan, free: Vec<PathBuf>) -> Self {
        let mut named = plan.deny_write.clone();
        named.extend(plan.workspace.protected.iter().cloned());
        named.push(plan.workspace.config_dir.clone());
        named.push(plan.workspace.home.join(".ssh"));
        named
            .retain(|path| path.is_absolute() && !plan.unprotected.iter().any(|open| path.starts_with(open)));
        Self {
            workspace: plan.workspace.clone(),
            writable: plan.writable.clone(),
            free,
            unprotected: plan.unprotected.clone(),
            named,
        }
    }

    /// Whether what is, or would be, at this real path must stay as it is.
    pub(crate) fn refuses(&self, path: &Path) -> bool {
        if !path.is_absolute() || path.starts_with("/memfd:") {
            // A pipe or a socket that the command has open: it has no place among the files.
            return false;
        }
        if !self.writable.iter().any(|root| path.starts_with(root)) {
            return !self.free.iter().any(|place| path.starts_with(place));
        }
        self.protects(path)
    }

    /// Whether a place where the command may write otherwise is protected.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        let opened = || self.unprotected.iter().any(|open| path.starts_with(open));
        self.writable.iter().any(|root| path.starts_with(root))
            && (self.named.iter().any(|named| path.starts_with(named))
                || (is_protected(path, &self.workspace) && !opened()))
    }

    /// Whether moving what is at this path would move, or put, something that is protected by its path.
    pub(crate) fn refuses_to_move(&self, path: &Path) -> bool {
        self.refuses(path) || self.named.iter().any(|named| named.starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::settings::FilesystemSettings;
    use crate::sandbox::{Sandbox, SandboxPlaces, SandboxSettings};

    #[test]
    fn names_count_at_every_depth_and_in_the_workspace_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("open/.git")).unwrap();
        let filesystem = FilesystemSettings {
            allow_write: vec!["open/.git".to_owned()],
            deny_write: vec!["locked/here".to_owned()],
            ..FilesystemSettings::default()
        };
        let settings = SandboxSettings { filesystem, ..SandboxSettings::default() };
        let sandbox = Sandbox::new(settings, SandboxPlaces::default());
        let plan = sandbox.plan(&root, std::slice::from_ref(&root)).unwrap();
        let judge = Judge::new(&plan, vec![PathBuf::from("/tmp-of-its-own")]);
        for path in [".git", "a/b/c/d/e/f/g/h/.GIT/hooks/x", "node_modules/x/.npmrc", "locked/here/x"] {
            assert!(judge.refuses(&root.join(path)), "{path}");
        }
        for path in ["git", "a/gitconfig", "open/.git/config", "locked"] {
            assert!(!judge.refuses(&root.join(path)), "{path}");
        }
        assert!(judge.refuses_to_move(&root.join("locked")), "it holds a place that is named");
        assert!(!judge.refuses(Path::new("/tmp-of-its-own/.git/config")));
        assert!(judge.refuses(Path::new("/etc/passwd")));
        assert!(!judge.refuses(Path::new("pipe:[4711]")));
    }
}
