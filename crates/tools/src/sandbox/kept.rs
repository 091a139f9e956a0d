//! The places inside the writable ones that a command finds as they are and leaves as they are: protected ones, those
//! that the settings name, and placeholders for those that do not exist.

use std::path::{Path, PathBuf};

use super::error::SandboxError;
use super::placeholder::{Covered, Kind, Placeholder};
use super::plan::SandboxPlan;
use super::protected::{self, Standing};

/// What stays as it is.
#[derive(Debug)]
pub(super) struct Kept {
    /// Every such place, all of them existing now.
    pub(super) standing: Vec<(PathBuf, Standing)>,
    /// Those among them that exist only for the command.
    pub(super) placeholders: Vec<Placeholder>,
}

impl Kept {
    /// Creates the placeholders, then finds everything.
    pub(super) fn secure(plan: &SandboxPlan) -> Result<Self, SandboxError> {
        let opened = |path: &Path| plan.unprotected.iter().any(|open| path.starts_with(open));
        let folders: Vec<PathBuf> = plan.writable.iter().filter(|path| path.is_dir()).cloned().collect();
        let mut placeholders = Vec::new();
        for (path, kind) in absent(&folders, plan).into_iter().filter(|(path, _)| !opened(path)) {
            let covered = Placeholder::cover(&path, kind)
                .map_err(|source| SandboxError::Place { path: path.clone(), source })?;
            match covered {
                Covered::Held(placeholder) => placeholders.push(placeholder),
                Covered::Exists | Covered::Closed => {}
            }
        }
        let mut standing = protected::existing(&folders, &plan.workspace);
        standing.retain(|(path, _)| !opened(path));
        let named = [plan.workspace.config_dir.clone(), plan.workspace.home.join(".ssh")];
        let named = named.into_iter().filter(|path| !opened(path)).chain(plan.deny_write.iter().cloned());
        for path in named {
            let inside = folders.iter().any(|root| path.starts_with(root));
            if inside && path.exists() && !standing.iter().any(|(other, _)| path.starts_with(other)) {
                standing.push((path, Standing::Itself));
            }
        }
        Ok(Self { standing, placeholders })
    }
}

/// Every place that must not come into being.
fn absent(folders: &[PathBuf], plan: &SandboxPlan) -> Vec<(PathBuf, Kind)> {
    let mut places = Vec::new();
    for root in folders {
        places.extend(protected::ABSENT_FOLDERS.iter().map(|name| (root.join(name), Kind::Folder)));
        places.extend(protected::ABSENT_FILES.iter().map(|name| (root.join(name), Kind::File)));
        if *root == plan.workspace.home {
            places.extend(protected::ABSENT_IN_HOME.iter().map(|name| (root.join(name), Kind::File)));
            places.push((root.join(".ssh"), Kind::Folder));
        }
    }
    let inside = |path: &&PathBuf| folders.iter().any(|root| path.starts_with(root));
    places.extend(plan.deny_write.iter().filter(inside).map(|path| (path.clone(), Kind::Folder)));
    places
}
