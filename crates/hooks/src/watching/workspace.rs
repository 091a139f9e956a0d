//! Watches the workspace while a hook for `FileChanged` is registered, whatever changes a file. The kernel says in which
//! folders something happened, where it can; those are listed again and compared with what was there. Folders that ignore
//! files or their names leave out are not looked at, and everything is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};
use qoder_files::has_unreadable_ignore_file;

use crate::watching::kernel_watch::{KernelWatch, Touched};

/// The most folders that are watched.
const MOST_FOLDERS: usize = 50_000;
/// The most files that are remembered.
const MOST_FILES: usize = 500_000;

/// Folders that programs keep for themselves, whether an ignore file names them or not.
const LEFT_OUT: [&str; 16] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
    "node_modules",
    "bower_components",
    "__pycache__",
    ".venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".terraform",
    ".cache",
];

/// Marks a folder whose content can be made again, such as what a compiler leaves.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Distinguishes a file from its earlier state.
type Stamp = (Option<SystemTime>, u64, u64);

/// The workspace as it was at the last look.
#[derive(Debug)]
pub struct WorkspaceWatch {
    roots: Vec<PathBuf>,
    left_out: PathBuf,
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Stamp>,
    kernel: KernelWatch,
    /// What the kernel reported and was not looked at yet.
    touched: Touched,
    /// Files in folders that are not watched yet, as a tool left them.
    known: BTreeMap<PathBuf, Stamp>,
    /// The limits leave something out, and that was not reported yet.
    untold_limit: bool,
    is_full: bool,
}

impl WorkspaceWatch {
    /// Looks at everything below `roots` but `left_out`, which is the program's own folder. May take a while.
    pub fn start(roots: Vec<PathBuf>, left_out: PathBuf) -> Self {
        let mut watch = Self {
            roots: Vec::new(),
            left_out,
            folders: BTreeSet::new(),
            files: BTreeMap::new(),
            kernel: KernelWatch::new(),
            touched: Touched::default(),
            known: BTreeMap::new(),
            untold_limit: false,
            is_full: false,
        };
        for root in &roots {
            watch.scan(root);
        }
        watch.roots = roots;
        watch
    }

    /// True when it watches these folders.
    pub fn is_of(&self, roots: &[PathBuf]) -> bool {
        self.roots == roots
    }

    /// Says once that the workspace is larger than what is watched.
    pub fn take_notice(&mut self) -> Option<String> {
        std::mem::take(&mut self.untold_limit).then(|| {
            format!(
                "the workspace has more than {MOST_FOLDERS} folders or {MOST_FILES} files; FileChanged hooks hear of \
                 changes in the first ones only"
            )
        })
    }

    /// What happened since the last look: `add`, `change` or `unlink`.
    pub fn changes(&mut self) -> Vec<(PathBuf, &'static str)> {
        self.kernel.drain(&mut self.touched);
        let touched = std::mem::take(&mut self.touched);
        let folders = if touched.everything { self.folders.clone() } else { touched.folders };
        let mut changes = BTreeMap::new();
        for folder in folders {
            self.compare(&folder, &mut changes);
        }
        for file in touched.written {
            // Two writes of one length inside one tick of the clock look alike.
            if self.files.contains_key(&file) {
                changes.entry(file).or_insert("change");
            }
        }
        for (file, left) in std::mem::take(&mut self.known) {
            if self.files.get(&file) == Some(&left) && changes.get(&file) == Some(&"add") {
                changes.remove(&file);
            }
        }
        changes.into_iter().collect()
    }

    /// What a tool just did to a file is known already.
    pub fn is_known(&mut self, file: &Path) {
        self.kernel.drain(&mut self.touched);
        self.touched.written.remove(file);
        let is_watched = file.parent().is_some_and(|folder| self.folders.contains(folder));
        match stamp(file) {
            Some(stamp) if is_watched => drop(self.files.insert(file.to_path_buf(), stamp)),
            // The call made the folder too, which the next look finds with this file in it.
            Some(stamp) => drop(self.known.insert(file.to_path_buf(), stamp)),
            None => drop(self.files.remove(file)),
        }
    }

    /// Compares a folder with what was there.
    fn compare(&mut self, folder: &Path, changes: &mut BTreeMap<PathBuf, &'static str>) {
        if !self.folders.contains(folder) {
            return;
        }
        if !folder.is_dir() {
            return self.forget(folder, changes);
        }
        let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
        for entry in self.walk(folder, Some(1)).flatten().filter(|entry| entry.depth() == 1) {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_folder { &mut folders } else { &mut files }.insert(entry.into_path());
        }
        for file in &files {
            let Some(now) = stamp(file) else { continue };
            match self.files.insert(file.clone(), now) {
                None => drop(changes.insert(file.clone(), "add")),
                Some(before) if before != now => drop(changes.insert(file.clone(), "change")),
                Some(_) => {}
            }
        }
        let inside = |path: &&PathBuf| path.parent() == Some(folder);
        let lost: Vec<PathBuf> = below(&self.files, folder)
            .filter(inside)
            .filter(|file| !files.contains(*file))
            .cloned()
            .collect();
        for file in lost {
            self.files.remove(&file);
            // One that an ignore file names by now is still there.
            if file.symlink_metadata().is_err() {
                changes.insert(file, "unlink");
            }
        }
        let known: Vec<PathBuf> = self
            .folders
            .range(folder.to_path_buf()..)
            .take_while(|path| path.starts_with(folder))
            .filter(inside)
            .cloned()
            .collect();
        for gone in known.iter().filter(|path| !folders.contains(*path)) {
            self.forget(gone, changes);
        }
        for new in folders.iter().filter(|path| !known.contains(path)) {
            self.scan(new);
            changes.extend(below(&self.files, new).map(|file| (file.clone(), "add")));
        }
    }

    /// A folder is gone, with everything in it, or is no longer watched.
    fn forget(&mut self, folder: &Path, changes: &mut BTreeMap<PathBuf, &'static str>) {
        let files: Vec<PathBuf> = below(&self.files, folder).cloned().collect();
        for file in files {
            self.files.remove(&file);
            if file.symlink_metadata().is_err() {
                changes.insert(file, "unlink");
            }
        }
        self.folders.retain(|path| !path.starts_with(folder));
        self.kernel.forget(folder);
    }

    /// Takes a folder and everything below it in. A folder is watched before it is listed, so nothing is missed between.
    fn scan(&mut self, folder: &Path) {
        for entry in self.walk(folder, None).flatten() {
            if self.folders.len() >= MOST_FOLDERS || self.files.len() >= MOST_FILES {
                self.untold_limit |= !self.is_full;
                self.is_full = true;
                return;
            }
            let path = entry.path();
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                self.kernel.add(path);
                self.folders.insert(path.to_path_buf());
            } else if let Some(stamp) = stamp(path) {
                self.files.insert(path.to_path_buf(), stamp);
            }
        }
    }

    fn walk(&self, folder: &Path, depth: Option<usize>) -> ignore::Walk {
        let left_out = self.left_out.clone();
        let ignores = !folder.ancestors().any(has_unreadable_ignore_file);
        WalkBuilder::new(folder)
            .hidden(false)
            .max_depth(depth)
            .parents(ignores)
            .ignore(ignores)
            .git_ignore(ignores)
            .git_global(ignores)
            .git_exclude(ignores)
            // Inside a repository the ignore files of folders above it do not count, as for git itself.
            .require_git(ignores && folder.ancestors().any(|above| above.join(".git").exists()))
            .filter_entry(move |entry| entry.depth() == 0 || !is_left_out(entry, &left_out))
            .build()
    }
}

fn is_left_out(entry: &DirEntry, own: &Path) -> bool {
    let path = entry.path();
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    let by_name = entry.file_name().to_str().is_some_and(|name| LEFT_OUT.contains(&name));
    path == own
        || by_name
        || (is_folder && (path.join(CACHE_MARK).exists() || has_unreadable_ignore_file(path)))
}

/// The files below a folder, in order.
fn below<'a>(files: &'a BTreeMap<PathBuf, Stamp>, folder: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
    let from = files.range(folder.to_path_buf()..).map(|(file, _)| file);
    from.take_while(move |file| file.starts_with(folder))
}

fn stamp(path: &Path) -> Option<Stamp> {
    let facts = path.symlink_metadata().ok()?;
    Some((facts.modified().ok(), facts.len(), identity(&facts)))
}

#[cfg(unix)]
fn identity(facts: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(facts)
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn watch(&self) -> WorkspaceWatch {
            WorkspaceWatch::start(vec![self.path("")], self.path("own"))
        }
    }

    fn changes(place: &Place, watch: &mut WorkspaceWatch) -> Vec<(String, &'static str)> {
        let root = place.path("");
        let named = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        watch.changes().into_iter().map(|(path, event)| (named(path), event)).collect()
    }

    fn told(pairs: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
        pairs.iter().map(|(name, event)| ((*name).to_owned(), *event)).collect()
    }

    #[test]
    fn files_are_told_once_with_what_happened_to_them() {
        let place = Place::new();
        place.write("a/one", "1");
        place.write("a/two", "2");
        let mut watch = place.watch();
        assert_eq!(changes(&place, &mut watch), told(&[]));
        place.write("a/one", "x");
        place.write("b/c/three", "3");
        std::fs::remove_file(place.path("a/two")).unwrap();
        let seen = [("a/one", "change"), ("a/two", "unlink"), ("b/c/three", "add")];
        assert_eq!(changes(&place, &mut watch), told(&seen));
        assert_eq!(changes(&place, &mut watch), told(&[]));
        place.write("b/c/four", "4");
        std::fs::remove_dir_all(place.path("a")).unwrap();
        assert_eq!(changes(&place, &mut watch), told(&[("a/one", "unlink"), ("b/c/four", "add")]));
        std::fs::rename(place.path("b/c"), place.path("d")).unwrap();
        let seen = [("b/c/four", "unlink"), ("b/c/three", "unlink"), ("d/four", "add"), ("d/three", "add")];
        assert_eq!(changes(&place, &mut watch), told(&seen));
    }

    #[test]
    fn what_nobody_wants_to_hear_of_is_left_out() {
        let place = Place::new();
        place.write(".gitignore", "*.log\nbuild/\n");
        place.write("target/CACHEDIR.TAG", "x");
        let mut watch = place.watch();
        for file in
            [".git/index", "node_modules/a/b.js", "x.log", "build/out", "target/debug/x", "own/log.jsonl"]
        {
            place.write(file, "x");
        }
        place.write(".env", "x");
        assert_eq!(changes(&place, &mut watch), told(&[(".env", "add")]));
    }

    #[test]
    fn what_a_tool_did_is_not_told_again() {
        let place = Place::new();
        place.write("one", "1");
        let mut watch = place.watch();
        for text in ["2", "longer"] {
            place.write("one", text);
            watch.is_known(&place.path("one"));
            assert_eq!(changes(&place, &mut watch), told(&[]));
        }
        place.write("two", "2");
        watch.is_known(&place.path("two"));
        assert_eq!(changes(&place, &mut watch), told(&[]));
    }

    #[test]
    fn a_file_in_a_folder_that_the_same_call_made_is_not_told_again() {
        let place = Place::new();
        let mut watch = place.watch();
        place.write("new/deep/one", "1");
        watch.is_known(&place.path("new/deep/one"));
        // What another program puts beside it counts.
        place.write("new/two", "2");
        assert_eq!(changes(&place, &mut watch), told(&[("new/two", "add")]));
        place.write("new/deep/one", "longer");
        assert_eq!(changes(&place, &mut watch), told(&[("new/deep/one", "change")]));
    }

    #[test]
    fn an_ignore_file_that_cannot_be_read_holds_nothing_up() {
        let place = Place::new();
        let pipe = place.path(".gitignore");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let mut watch = place.watch();
        place.write("one", "1");
        assert_eq!(changes(&place, &mut watch), told(&[("one", "add")]));
    }
}
