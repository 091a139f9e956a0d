//! The memory files that the model has, and whether they changed since it read them. They are looked at when a turn
//! begins.

use std::path::{Path, PathBuf};

use super::{MemoryPiece, Owner, Reason};
use crate::sources::{Stamp, stamp};

/// A file that the model has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// Whose it is.
    pub owner: Owner,
    /// Why the model has it.
    pub reason: Reason,
    /// The patterns of a rule that counts for certain files.
    pub globs: Vec<String>,
    /// The files that it imports.
    pub included: Vec<PathBuf>,
    /// What it and those were when the model read them.
    stamps: Vec<Option<Stamp>>,
}

impl LoadedFile {
    fn now(&self, path: &Path) -> Vec<Option<Stamp>> {
        std::iter::once(path).chain(self.included.iter().map(PathBuf::as_path)).map(stamp).collect()
    }
}

/// All of them, in the order in which the model read them.
#[derive(Debug, Clone, Default)]
pub struct LoadedFiles {
    files: Vec<(PathBuf, LoadedFile)>,
}

impl LoadedFiles {
    /// The model has this one now, as it is.
    pub fn add(&mut self, piece: &MemoryPiece) {
        let (globs, included) = (piece.globs.clone(), piece.included.clone());
        let mut file =
            LoadedFile { owner: piece.owner, reason: piece.reason, globs, included, stamps: Vec::new() };
        file.stamps = file.now(&piece.path);
        match self.files.iter_mut().find(|(path, _)| *path == piece.path) {
            Some(known) => known.1 = file,
            None => self.files.push((piece.path.clone(), file)),
        }
    }

    /// The files that differ from what the model read. Each difference is returned once.
    pub fn changed(&mut self) -> Vec<(PathBuf, LoadedFile)> {
        let mut changed = Vec::new();
        for (path, file) in &mut self.files {
            let now = file.now(path);
            if now != file.stamps {
                file.stamps = now;
                changed.push((path.clone(), file.clone()));
            }
        }
        changed
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&PathBuf, &LoadedFile)> {
        self.files.iter().map(|(path, file)| (path, file))
    }

    /// True when the model has this one.
    pub fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|(known, _)| known == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_file_or_of_what_it_imports_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, import) = (folder.path().join("AGENTS.md"), folder.path().join("more.md"));
        std::fs::write(&path, "a").unwrap();
        std::fs::write(&import, "b").unwrap();
        let mut files = LoadedFiles::default();
        files.add(&MemoryPiece {
            path: path.clone(),
            text: "a".to_owned(),
            owner: Owner::Project,
            reason: Reason::SessionStart,
            globs: Vec::new(),
            included: vec![import.clone()],
            is_whole: true,
        });
        assert!(files.changed().is_empty() && files.has(&path) && !files.has(&import));
        std::fs::write(&import, "longer").unwrap();
        assert_eq!(files.changed()[0].0, path);
        assert!(files.changed().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(files.changed().len(), 1);
    }
}
