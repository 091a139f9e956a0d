//! The paths that a word with patterns becomes, and what a program reaches that follows the links in a folder. Both look
//! at the names in folders: each folder is listed once, and beyond a bound the answer is that it is not known.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::glob::{Glob, Part};
use crate::places::FileSystem;

/// The most places one pattern or one folder may stand for.
pub(crate) const MOST_MATCHES: usize = 1_000;

type Names = Option<Rc<Vec<OsString>>>;

/// Looks at names, and keeps them while one call is decided.
pub(crate) struct Lister<'a> {
    files: &'a dyn FileSystem,
    listed: RefCell<HashMap<PathBuf, Names>>,
}

impl<'a> Lister<'a> {
    pub(crate) fn new(files: &'a dyn FileSystem) -> Self {
        Self { files, listed: RefCell::default() }
    }

    /// The names in a folder; `None` when it cannot be listed or has too many.
    pub(crate) fn names(&self, folder: &Path) -> Names {
        if let Some(names) = self.listed.borrow().get(folder) {
            return names.clone();
        }
        let names = self.files.names(folder, MOST_MATCHES).map(Rc::new);
        self.listed.borrow_mut().insert(folder.to_path_buf(), names.clone());
        names
    }

    /// What a pattern finds from a folder on; `None` when that cannot be known. The folders whose names it goes through
    /// are added to `listed`.
    pub(crate) fn matches(
        &self,
        folder: &Path,
        glob: &Glob,
        listed: &mut Vec<PathBuf>,
    ) -> Option<Vec<PathBuf>> {
        let start = if glob.is_absolute { PathBuf::from("/") } else { folder.to_path_buf() };
        let mut found = vec![start];
        for (at, part) in glob.parts.iter().enumerate() {
            let is_last = at + 1 == glob.parts.len();
            let mut next = Vec::new();
            for place in found {
                match part {
                    Part::Name(name) => next.push(place.join(name)),
                    Part::Pattern(pattern) => {
                        let names = self.names(&place)?;
                        listed.push(place.clone());
                        for name in names.iter().filter(|name| pattern.matches(name.as_encoded_bytes())) {
                            let path = place.join(name);
                            if is_last || self.files.is_folder(&path) {
                                next.push(path);
                            }
                        }
                        // Older shells find the folder above by a pattern that begins with a dot.
                        if pattern.begins_with_dot() && pattern.matches(b"..") {
                            next.push(place.join(".."));
                        }
                    }
                }
                if next.len() > MOST_MATCHES {
                    return None;
                }
            }
            found = next;
        }
        Some(found)
    }

    /// Where the links in a folder lead, below it too when `deep`; `None` when that cannot be known.
    pub(crate) fn linked(&self, folder: &Path, deep: bool) -> Option<Vec<(PathBuf, PathBuf)>> {
        let mut links = Vec::new();
        let mut open = vec![folder.to_path_buf()];
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            for name in self.names(&folder)?.iter() {
                seen += 1;
                if seen > MOST_MATCHES {
                    return None;
                }
                let path = folder.join(name);
                let real = self.files.real(&path).ok()?;
                if real != path {
                    links.push((path, real));
                } else if deep && self.files.is_folder(&path) {
                    open.push(path);
                }
            }
        }
        Some(links)
    }
}
