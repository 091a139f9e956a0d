//! Paths as the gate sees them: the port through which it looks at metadata, spelling, and folders that hold the system.
//! Nothing here opens a file.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use qoder_types::workspace::{Workspace, may_be_special};

/// Why a path leads nowhere. The text is for the model, which gave the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It contains a NUL byte, at which the kernel would cut it.
    #[error("the path contains a NUL byte; give the path without it")]
    Nul,
    /// It is not text.
    #[error("the path is not valid Unicode; give a path that is")]
    NotUnicode,
    /// The system cannot follow it.
    #[error("{0}")]
    Unresolved(String),
}

impl PlaceError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Nul => "place_nul",
            Self::NotUnicode => "place_not_unicode",
            Self::Unresolved(_) => "place_unresolved",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nul | Self::NotUnicode => "Give a path of ordinary characters.",
            Self::Unresolved(_) => "Give the path of the file itself.",
        }
    }
}

/// What the model reads.
impl From<PlaceError> for String {
    fn from(error: PlaceError) -> Self {
        error.to_string()
    }
}

/// What the gate may learn about paths. Metadata only.
pub trait FileSystem {
    /// Where the kernel would arrive: links followed, a missing tail kept.
    ///
    /// # Errors
    /// When the path leads nowhere.
    fn real(&self, path: &Path) -> Result<PathBuf, PlaceError>;
    /// The names in a directory, at most `most`; `None` when it cannot be listed or has more.
    fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>>;
    /// True for a regular file that has several names (hard links).
    fn has_other_names(&self, path: &Path) -> bool;
    /// True for a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// True for a regular file, which has nothing below it.
    fn is_file(&self, path: &Path) -> bool;
    /// Where the links in a folder lead whose names are wanted. Asked with the same question every time, so that an
    /// answer may be kept while the folder does not change.
    fn links_named(&self, folder: &Path, wanted: fn(&OsStr) -> bool) -> Vec<PathBuf>;
}

/// A file system without links, for tests and for places that do not exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLinks;

impl FileSystem for NoLinks {
    fn real(&self, path: &Path) -> Result<PathBuf, PlaceError> {
        Ok(normalise(path))
    }

    fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
        None
    }

    fn has_other_names(&self, _: &Path) -> bool {
        false
    }

    fn is_folder(&self, _: &Path) -> bool {
        false
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn links_named(&self, _: &Path, _: fn(&OsStr) -> bool) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Takes `.` and `..` out by spelling alone.
#[must_use]
pub fn normalise(path: &Path) -> PathBuf {
    if is_normal(path.as_os_str().as_encoded_bytes()) {
        return path.to_path_buf();
    }
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// True for a path in which nothing is `.`, `..`, doubled or trailing; false for some others, too.
fn is_normal(path: &[u8]) -> bool {
    let opens_a_dot_or_nothing = |pair: &[u8]| pair[0] == b'/' && matches!(pair[1], b'.' | b'/');
    cfg!(unix)
        && path.first() != Some(&b'.')
        && path.last() != Some(&b'/')
        && !path.windows(2).any(opens_a_dot_or_nothing)
}

/// True for paths through the links of a process, which lead wherever that process is or has something open.
pub(crate) fn leads_anywhere(path: &Path) -> bool {
    may_be_special(path)
        && (path.starts_with("/dev/fd")
            || (path.starts_with("/proc")
                && path.components().any(|part| {
                    matches!(part.as_os_str().to_str(), Some("cwd" | "root" | "fd" | "exe" | "map_files"))
                })))
}

/// Folders that hold the system itself.
const SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/private",
    "/mnt",
    "/media",
];

/// True for the root, the home directory or one above it, and system directories.
#[must_use]
pub fn is_system(path: &Path, workspace: &Workspace) -> bool {
    let listed = SYSTEM.iter().any(|folder| path == Path::new(folder));
    let below = ["/usr", "/var", "/boot", "/etc", "/lib", "/System"]
        .iter()
        .any(|folder| path.parent() == Some(Path::new(folder)));
    listed || below || workspace.home.starts_with(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_become_one() {
        for spelling in
            ["/a/.b/c", "/a//.b/c", "/a/./.b/c", "/a/x/../.b/c", "/a/.b/c/", "/a/.b/c/.", "//a/.b/c"]
        {
            assert_eq!(normalise(Path::new(spelling)).as_os_str(), "/a/.b/c", "{spelling}");
        }
        for (spelling, normal) in
            [("/", "/"), ("/..", "/"), ("", ""), ("./a", "a"), ("a/b", "a/b"), ("..", "")]
        {
            assert_eq!(normalise(Path::new(spelling)).as_os_str(), normal, "{spelling}");
        }
    }
}
