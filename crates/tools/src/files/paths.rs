//! From the path a model wrote to the two paths that rules are compared with and files are opened by.
//!
//! `lexical` is the path as a person reads it, with `.` and `..` taken out by their spelling. `real` is where the
//! kernel would arrive: links followed one component at a time, a missing tail kept, a dangling link followed to where
//! it points. Both are computed once and handed on, so that nothing resolves a path a second time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use qoder_policy::normalise;
use thiserror::Error;

/// As many links as the kernel follows before it calls it a loop.
const LARGEST_LINK_COUNT: usize = 40;

/// A path in both forms; both are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Normalised by spelling alone.
    pub lexical: PathBuf,
    /// Where the kernel arrives.
    pub real: PathBuf,
}

/// Why a path cannot be used.
#[derive(Debug, Error)]
pub enum PathError {
    /// It contains a NUL byte, at which the kernel would cut it.
    #[error("the path contains a NUL byte; give the path without it")]
    Nul,
    /// It starts with `~/` and there is no home directory.
    #[error("the path starts with `~` but no home directory is known; give an absolute path")]
    NoHome,
    /// Its links lead in a circle.
    #[error("too many symbolic links at {}; give the path of the file itself", .0.display())]
    TooManyLinks(PathBuf),
    /// A link could not be read.
    #[error("cannot resolve {}: {source}", path.display())]
    Unreadable {
        /// The link.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PathError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Nul => "path_nul",
            Self::NoHome => "path_no_home",
            Self::TooManyLinks(_) => "path_link_loop",
            Self::Unreadable { .. } => "path_unreadable",
        }
    }
}

/// Resolves `path` against `cwd`: refuses NUL, expands a leading `~/`, joins, and computes both forms.
///
/// # Errors
/// When the path contains NUL, needs an unknown home directory, or leads through a circle of links.
pub fn resolve(cwd: &Path, path: &str) -> Result<ResolvedPath, PathError> {
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    let expanded = expand_home(path)?;
    let joined = cwd.join(expanded);
    Ok(ResolvedPath { lexical: normalise(&joined), real: real_path(&joined)? })
}

/// Where the kernel arrives when it walks `path` from the root.
///
/// # Errors
/// When the path contains NUL or leads through a circle of links.
pub fn real(path: &Path) -> Result<PathBuf, PathError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(PathError::Nul);
    }
    if path.is_absolute() { real_path(path) } else { real_path(&Path::new("/").join(path)) }
}

/// Replaces a leading `~` or `~/` by the home directory.
fn expand_home(path: &str) -> Result<PathBuf, PathError> {
    let rest = match path.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        Some(_) | None => return Ok(PathBuf::from(path)),
    };
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).ok_or(PathError::NoHome)?;
    Ok(PathBuf::from(home).join(rest))
}

/// Where the kernel arrives when it walks `path`, which is absolute.
fn real_path(path: &Path) -> Result<PathBuf, PathError> {
    if has_no_links(path) {
        return Ok(normalise(path));
    }
    let mut pending: VecDeque<OsString> = VecDeque::new();
    push_front(&mut pending, path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    // Below something that does not exist nothing can be a link: the rest is kept without asking the system.
    let mut missing_from: Option<usize> = None;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            real.pop();
            if missing_from.is_some_and(|depth| real.components().count() < depth) {
                missing_from = None;
            }
            continue;
        }
        real.push(&name);
        if missing_from.is_some() {
            continue;
        }
        match real.symlink_metadata() {
            // The links of the kernel's own files lead somewhere else for every process: the path stays there.
            Ok(metadata) if metadata.file_type().is_symlink() && !real.starts_with("/proc") => {
                links += 1;
                if links > LARGEST_LINK_COUNT {
                    return Err(PathError::TooManyLinks(path.to_path_buf()));
                }
                let target = std::fs::read_link(&real)
                    .map_err(|source| PathError::Unreadable { path: real.clone(), source })?;
                real.pop();
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                push_front(&mut pending, &target);
            }
            Ok(_) => {}
            Err(_) => missing_from = Some(real.components().count()),
        }
    }
    Ok(real)
}

/// True when the kernel finds no link on its way, asked once for the whole path; false whenever it does not say so.
#[cfg(target_os = "linux")]
fn has_no_links(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    // A parent of something that does not exist is one only by its spelling.
    if path.components().any(|component| component == Component::ParentDir) || path.starts_with("/proc") {
        return false;
    }
    // Nothing is opened but the name, and the way ends at the first link or at the first name that does not exist.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) => true,
        Err(error) => error == Errno::NOENT,
    }
}

#[cfg(not(target_os = "linux"))]
fn has_no_links(_: &Path) -> bool {
    false
}

/// Puts the components of `path` in front of those still to be walked.
fn push_front(pending: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => pending.push_front(name.to_os_string()),
            Component::ParentDir => pending.push_front(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
}

/// Whether `path` is `root` or below it, compared by whole components.
pub(crate) fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}
