//! Which places inside the writable ones stay read-only: what makes another program run code later.
//!
//! Existing ones are found by a bounded walk, nearest to the root first. Absent ones are covered at the top of each
//! root by name, where programs look for them.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use qoder_types::workspace::{Workspace, is_protected};

/// The most folders that are looked into for one command.
const MOST_FOLDERS: usize = 250;
/// The most entries that are looked at for one command.
const MOST_ENTRIES: usize = 5_000;
/// How far below a root is looked at most.
pub(crate) const DEEPEST: usize = 6;
/// The most places that are made read-only one by one.
const MOST_PLACES: usize = 800;

/// Folders of tools, with so many entries that nothing else would be looked at.
const PASSED_OVER: [&str; 6] = ["node_modules", "target", "__pycache__", ".venv", "venv", ".tox"];

/// What kind of thing is at a protected place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A folder or a file.
    Itself,
    /// A link.
    Link,
}

/// Existing protected places inside `roots`, the nearest first, at most `deepest` folders below one.
pub(crate) fn existing(roots: &[PathBuf], workspace: &Workspace, deepest: usize) -> Vec<(PathBuf, Standing)> {
    // Those that are named need not be looked for.
    let inside = |path: &&PathBuf| roots.iter().any(|root| path.starts_with(root));
    let standing = |path: &PathBuf| {
        let kind = path.symlink_metadata().ok()?.file_type();
        Some((path.clone(), if kind.is_symlink() { Standing::Link } else { Standing::Itself }))
    };
    let mut found: Vec<_> = workspace.protected.iter().filter(inside).filter_map(standing).collect();
    let workspace = &Workspace { protected: Vec::new(), ..workspace.clone() };
    let mut entries = 0;
    let mut folders = 0;
    let mut queue: VecDeque<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    let Some(top) = roots.first() else { return found };
    // Folders on the way are known not to be protected, so the name alone decides; the same names come again and again.
    let mut known: HashMap<OsString, bool> = HashMap::new();
    while let Some((folder, depth)) = queue.pop_front() {
        folders += 1;
        if folders > MOST_FOLDERS || entries > MOST_ENTRIES || found.len() >= MOST_PLACES {
            break;
        }
        let Ok(listing) = std::fs::read_dir(&folder) else { continue };
        for entry in listing.flatten() {
            entries += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let path = folder.join(&name);
            let protected =
                *known.entry(name).or_insert_with_key(|name| is_protected(&top.join(name), workspace));
            if protected {
                let standing = if kind.is_symlink() { Standing::Link } else { Standing::Itself };
                found.push((path, standing));
            } else if kind.is_dir() && depth < deepest && !is_passed_over(&path) {
                queue.push_back((path, depth + 1));
            }
        }
    }
    found.truncate(MOST_PLACES);
    found
}

fn is_passed_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| PASSED_OVER.iter().any(|passed| name == *passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(root: &Path) -> Workspace {
        Workspace {
            cwd: root.to_path_buf(),
            project_root: root.to_path_buf(),
            home: PathBuf::from("/home/person"),
            roots: vec![root.to_path_buf()],
            config_dir: PathBuf::from("/home/person/.qoder"),
            protected: vec![root.join("src/check.sh"), root.join("absent.sh")],
            isolation: None,
        }
    }

    #[test]
    fn nested_places_are_found_and_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [".git/hooks", "a/b/.git", "node_modules/x/.git", "src"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("elsewhere", root.join("a/.envrc")).unwrap();
        std::fs::write(root.join("src/check.sh"), "").unwrap();
        let found = existing(&[root.to_path_buf()], &workspace(root), DEEPEST);
        let mut names: Vec<_> = found
            .iter()
            .map(|(path, kind)| (path.strip_prefix(root).unwrap().to_str().unwrap(), *kind))
            .collect();
        names.sort_by_key(|(name, _)| *name);
        assert_eq!(
            names,
            [
                (".git", Standing::Itself),
                ("a/.envrc", Standing::Link),
                ("a/b/.git", Standing::Itself),
                ("src/check.sh", Standing::Itself)
            ]
        );
    }
}
