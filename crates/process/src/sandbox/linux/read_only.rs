//! The places inside the writable ones that a command finds as they are and leaves as they are: protected ones, those
//! that the settings name, and placeholders for those that do not exist.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use qoder_types::workspace::{PROTECTED_FILES, PROTECTED_FOLDERS};

use super::placeholder::{Covered, Kind, Placeholder};
use super::protected::{self, DEEPEST, Standing};
use crate::sandbox::error::SandboxError;
use crate::sandbox::plan::SandboxPlan;

/// What stays as it is.
#[derive(Debug)]
pub(crate) struct ReadOnlyPlaces {
    /// Every such place, all of them existing now.
    pub(crate) standing: Vec<(PathBuf, Standing)>,
    /// Those among them that exist only for the command.
    pub(crate) placeholders: Vec<Placeholder>,
}

impl ReadOnlyPlaces {
    /// Creates the placeholders, then finds everything. With a broker, which judges every change by its name, only what
    /// is at the top of each place is made read-only besides.
    pub(crate) fn secure(plan: &SandboxPlan, with_broker: bool) -> Result<Self, SandboxError> {
        let opened = |path: &Path| plan.unprotected.iter().any(|open| path.starts_with(open));
        let folders: Vec<PathBuf> = plan.writable.iter().filter(|path| path.is_dir()).cloned().collect();
        let mut placeholders = Vec::new();
        let absent = if with_broker { Vec::new() } else { absent(&folders, plan) };
        for (path, kind) in absent.into_iter().filter(|(path, _)| !opened(path)) {
            let covered = Placeholder::cover(&path, kind)
                .map_err(|source| SandboxError::Place { path: path.clone(), source })?;
            match covered {
                Covered::Held(placeholder) => placeholders.push(placeholder),
                Covered::Exists | Covered::Closed => {}
            }
        }
        let mut standing =
            protected::existing(&folders, &plan.workspace, if with_broker { 0 } else { DEEPEST });
        standing.retain(|(path, _)| !opened(path));
        // The walk has bounds; what was made for the command is kept all the same.
        let found: HashSet<PathBuf> = standing.iter().map(|(path, _)| path.clone()).collect();
        let made = placeholders.iter().map(Placeholder::path).filter(|path| !found.contains(*path));
        standing.extend(made.map(|path| (path.to_path_buf(), Standing::Itself)));
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
    let guarded = if plan.workspace.isolation.is_some() { &[] } else { folders };
    for root in guarded {
        places.extend(PROTECTED_FOLDERS.iter().map(|name| (root.join(name), Kind::Folder)));
        places.extend(PROTECTED_FILES.iter().map(|name| (root.join(name), Kind::File)));
    }
    let inside = |path: &&PathBuf| folders.iter().any(|root| path.starts_with(root));
    places.extend(plan.deny_write.iter().filter(inside).map(|path| (path.clone(), Kind::Folder)));
    places
}
