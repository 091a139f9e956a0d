//! Paths whose changes hooks want to know. They are looked at between the steps of a turn; of a folder, its direct entries
//! count. Everything is bounded: a hook that wants to watch the world watches its beginning.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_config::sources::{Stamp, stamp};

/// The most paths that a session watches.
const MOST_PATHS: usize = 1_000;
/// The most entries of one folder.
const MOST_ENTRIES: usize = 1_000;

/// Watched paths with what was there last.
#[derive(Debug, Default)]
pub struct Watched {
    paths: BTreeMap<PathBuf, BTreeMap<PathBuf, Stamp>>,
}

impl Watched {
    /// Watches more paths, from now on.
    pub fn add(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if self.paths.len() < MOST_PATHS && !self.paths.contains_key(&path) {
                let now = look(&path);
                self.paths.insert(path, now);
            }
        }
    }

    /// What happened since the last look: `add`, `change` or `unlink`.
    pub fn changes(&mut self) -> Vec<(PathBuf, &'static str)> {
        let mut changes = Vec::new();
        for (path, before) in &mut self.paths {
            let now = look(path);
            for (file, stamp) in &now {
                match before.get(file) {
                    None => changes.push((file.clone(), "add")),
                    Some(old) if old != stamp => changes.push((file.clone(), "change")),
                    Some(_) => {}
                }
            }
            let gone = before.keys().filter(|file| !now.contains_key(*file));
            changes.extend(gone.map(|file| (file.clone(), "unlink")));
            *before = now;
        }
        changes
    }

    /// What a tool just did to a file is known already.
    pub fn is_known(&mut self, file: &Path) {
        for (path, before) in &mut self.paths {
            if file == path || file.parent() == Some(path) {
                *before = look(path);
            }
        }
    }
}

fn look(path: &Path) -> BTreeMap<PathBuf, Stamp> {
    let Ok(facts) = path.metadata() else { return BTreeMap::new() };
    if !facts.is_dir() {
        return BTreeMap::from([(path.to_path_buf(), (facts.modified().ok(), facts.len()))]);
    }
    let Ok(entries) = std::fs::read_dir(path) else { return BTreeMap::new() };
    let files = entries.flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    files.filter_map(|file| stamp(&file).map(|stamp| (file, stamp))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_once_with_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, "1").unwrap();
        let mut watched = Watched::default();
        watched.add(vec![one.clone(), folder.path().to_path_buf()]);
        assert_eq!(watched.changes(), []);
        std::fs::write(&one, "longer").unwrap();
        std::fs::write(&two, "2").unwrap();
        let changes = watched.changes();
        assert!(
            changes.contains(&(one.clone(), "change")) && changes.contains(&(two.clone(), "add")),
            "{changes:?}"
        );
        std::fs::remove_file(&two).unwrap();
        assert_eq!(watched.changes(), [(two.clone(), "unlink")]);
        std::fs::write(&two, "by a tool").unwrap();
        watched.is_known(&two);
        assert_eq!(watched.changes(), []);
    }
}
