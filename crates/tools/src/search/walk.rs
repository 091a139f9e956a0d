//! Visiting the files below a directory in parallel, for Glob and Grep alike.
//!
//! Ignore files count when the settings say so, hidden files are included, version-control metadata and the system's
//! pseudo file trees are left out. One predicate decides what is skipped, for files and whole directories.

use std::ffi::OsStr;
use std::path::Path;

use ignore::{DirEntry, WalkBuilder, WalkState};

use qoder_core::ports::Hidden;
use qoder_files::has_unreadable_ignore_file;

use crate::call::blocking::StopFlag;
use crate::files::open::is_system_tree;

/// A walk that is ready to start.
pub(crate) struct FileWalk {
    builder: WalkBuilder,
    stop: StopFlag,
}

impl FileWalk {
    /// Walks `root`, which may be a single file; that is visited even when an ignore file names it.
    pub(crate) fn new(root: &Path, respect_ignore_files: bool, stop: &StopFlag) -> Self {
        let respect_ignore_files = respect_ignore_files && !above_is_unreadable(root);
        let mut builder = WalkBuilder::new(root);
        builder
            .hidden(false)
            .parents(respect_ignore_files)
            .ignore(respect_ignore_files)
            .git_ignore(respect_ignore_files)
            .git_global(respect_ignore_files)
            .git_exclude(respect_ignore_files)
            // Inside a repository the ignore files of directories above it do not count, as for git itself; a worktree
            // inside an ignored directory would otherwise look empty.
            .require_git(respect_ignore_files && in_repository(root))
            .threads(threads());
        Self { builder, stop: stop.clone() }
    }

    /// For options that only one tool needs.
    pub(crate) fn builder(&mut self) -> &mut WalkBuilder {
        &mut self.builder
    }

    /// Visits every entry that is not a directory and that `skip` does not name. `make_visitor` is called once per
    /// thread; what cannot be read is passed over.
    pub(crate) fn visit<S, M, V>(mut self, skip: S, make_visitor: M)
    where
        S: Fn(&Path) -> bool + Send + Sync + 'static,
        M: Fn() -> V,
        V: FnMut(&DirEntry) + Send,
    {
        self.builder.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0
                || !(skip(entry.path()) || (is_folder && has_unreadable_ignore_file(entry.path())))
        });
        let stop = self.stop;
        if is_small(&self.builder) {
            self.builder.threads(1);
        }
        self.builder.build_parallel().run(|| {
            let stop = stop.clone();
            let mut visitor = make_visitor();
            Box::new(move |entry| {
                if stop.is_raised() {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry
                    && entry.file_type().is_some_and(|kind| !kind.is_dir())
                {
                    visitor(&entry);
                }
                WalkState::Continue
            })
        });
    }
}

/// The same for where the walk begins and everything above it.
fn above_is_unreadable(root: &Path) -> bool {
    root.ancestors().any(has_unreadable_ignore_file)
}

/// Whether `root` lies in a working tree of git.
fn in_repository(root: &Path) -> bool {
    root.ancestors().any(|directory| directory.join(".git").exists())
}

/// How many entries make a tree worth several threads.
const SMALL_TREE: usize = 400;

/// True for a tree of few entries. Threads that wait for one another sleep a millisecond at a time, which is longer than
/// such a tree takes.
fn is_small(builder: &WalkBuilder) -> bool {
    builder.build().take(SMALL_TREE).count() < SMALL_TREE
}

/// What a search with this context leaves out.
pub(crate) fn out_of_scope(hidden: Option<&Hidden>) -> impl Fn(&Path) -> bool + Send + Sync + 'static {
    let hidden = hidden.cloned();
    move |path| is_out_of_scope(path) || hidden.as_ref().is_some_and(|hidden| hidden(path))
}

/// What no search is meant to find: version-control metadata and pseudo files.
fn is_out_of_scope(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(".git"))
        || (path.parent() == Some(Path::new("/")) && is_system_tree(path))
}

/// As many threads as there are processors; beyond a dozen the directory reads slow each other down.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(12)
}
