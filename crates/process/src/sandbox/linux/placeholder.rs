//! Placeholders: empty folders and files that stand for protected places that do not exist yet.
//!
//! A place that does not exist cannot be mounted over, so it exists while a command runs, empty and read-only, and goes
//! with the last command that needs it. Its mode marks it as ours, and a shared lock counts its users over all
//! processes; one that a killed process left is taken over, and removed, by the next command.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The modes that mark a placeholder: no program gives them to anything.
const FOLDER_MODE: u32 = 0o1500;
const FILE_MODE: u32 = 0o1400;

/// How often a placeholder that is just being removed is tried again.
const ATTEMPTS: usize = 200;

/// What to create at an absent place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An empty folder.
    Folder,
    /// An empty file.
    File,
}

/// What became of a place.
#[derive(Debug)]
pub(crate) enum Covered {
    /// A placeholder is there now.
    Held(Placeholder),
    /// Something of the person's is there.
    Exists,
    /// Nothing can be created there.
    Closed,
}

/// A placeholder in use; removed with its last user.
#[derive(Debug)]
pub(crate) struct Placeholder {
    path: PathBuf,
    lock: File,
}

impl Placeholder {
    /// Its place.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes or joins the placeholder at `path`.
    pub(crate) fn cover(path: &Path, kind: Kind) -> io::Result<Covered> {
        for _ in 0..ATTEMPTS {
            match create(path, kind) {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::AlreadyExists => {}
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        return Ok(Covered::Closed);
                    }
                    // The root itself is gone: the start of the command will say so.
                    io::ErrorKind::NotFound => return Ok(Covered::Closed),
                    _ => return Err(error),
                },
            }
            match std::fs::symlink_metadata(path) {
                Ok(found) if !is_placeholder(&found) => return Ok(Covered::Exists),
                Ok(_) => {}
                Err(_) => continue,
            }
            if let Some(lock) = join(path) {
                return Ok(Covered::Held(Self { path: path.to_path_buf(), lock }));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(io::Error::other("a placeholder is neither there nor gone"))
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // Another command still needs it; the last one removes it.
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let (Ok(ours), Ok(found)) = (self.lock.metadata(), std::fs::symlink_metadata(&self.path)) else {
            return;
        };
        if (ours.dev(), ours.ino()) != (found.dev(), found.ino()) || !is_placeholder(&found) {
            return;
        }
        // A folder that is not empty stays: then it is no longer a placeholder.
        let _ =
            if found.is_dir() { std::fs::remove_dir(&self.path) } else { std::fs::remove_file(&self.path) };
    }
}

fn create(path: &Path, kind: Kind) -> io::Result<()> {
    match kind {
        Kind::Folder => DirBuilder::new().mode(FOLDER_MODE).create(path),
        Kind::File => OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path).map(drop),
    }
}

/// The mark is set in the same moment in which the thing is made, so it is never seen without.
fn is_placeholder(found: &Metadata) -> bool {
    let mode = found.permissions().mode() & 0o7777;
    (found.is_dir() && mode == FOLDER_MODE) || (found.is_file() && mode == FILE_MODE && found.len() == 0)
}

/// A share in the placeholder, when it still is the one at `path` and it is not being removed.
fn join(path: &Path) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let lock = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockShared).ok()?;
    let (ours, found) = (lock.metadata().ok()?, std::fs::symlink_metadata(path).ok()?);
    ((ours.dev(), ours.ino()) == (found.dev(), found.ino())).then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(covered: Covered) -> Placeholder {
        match covered {
            Covered::Held(placeholder) => placeholder,
            Covered::Exists | Covered::Closed => panic!("no placeholder"),
        }
    }

    #[test]
    fn it_goes_with_its_last_user() {
        let folder = tempfile::tempdir().unwrap();
        for (name, kind) in [(".git", Kind::Folder), (".envrc", Kind::File)] {
            let path = folder.path().join(name);
            let first = held(Placeholder::cover(&path, kind).unwrap());
            let second = held(Placeholder::cover(&path, kind).unwrap());
            drop(first);
            assert!(path.exists());
            drop(second);
            assert!(!path.exists());
        }
    }

    #[test]
    fn one_that_was_left_behind_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        create(&path, Kind::Folder).unwrap();
        drop(held(Placeholder::cover(&path, Kind::Folder).unwrap()));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_person_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".vscode");
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(Placeholder::cover(&path, Kind::Folder).unwrap(), Covered::Exists));
        assert!(path.exists());
        let path = folder.path().join(".git");
        let placeholder = held(Placeholder::cover(&path, Kind::Folder).unwrap());
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        drop(placeholder);
        assert!(path.exists(), "a folder that replaced the placeholder is not ours");
    }
}
