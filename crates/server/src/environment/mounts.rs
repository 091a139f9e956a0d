//! Files that the server puts into the folders of a session. Commands of the session may have put links there, so no link is
//! followed on the way: nothing outside of the session's folders can be reached.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// The folders of the interface that are inside of the workspace.
const WORKSPACES: [&str; 2] = ["/workspace", "/data/workspace"];
/// The folder of the interface for what is mounted beside it.
const BESIDE: &str = "/mnt";

/// Where a path of the interface is on this machine: a folder, and the way below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    /// The folder.
    pub root: PathBuf,
    /// The way below it, without links and without `..`.
    pub below: PathBuf,
}

impl MountPoint {
    /// The place of a path of the interface; `None` when it is in none of a session's folders.
    pub(super) fn of(path: &str, workspace: &Path, mounts: &Path) -> Option<Self> {
        let place = |root: &Path, prefix: &str| {
            let below = path.strip_prefix(prefix)?.strip_prefix('/')?;
            let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
            let parts = below.split('/').all(is_plain);
            parts.then(|| Self { root: root.to_path_buf(), below: PathBuf::from(below) })
        };
        WORKSPACES.iter().find_map(|prefix| place(workspace, prefix)).or_else(|| place(mounts, BESIDE))
    }

    /// The path on this machine.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// The folder that holds it, made when `makes`, and its name there.
    pub(super) fn folder(&self, makes: bool) -> io::Result<(OwnedFd, &std::ffi::OsStr)> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = open(&self.root, flags, Mode::empty())?;
        let name = self.below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        for part in self.below.parent().into_iter().flat_map(Path::iter) {
            if makes {
                match mkdirat(&folder, part, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            folder = openat(&folder, part, flags, Mode::empty())?;
        }
        Ok((folder, name))
    }

    /// True when a file of this length is there.
    #[must_use]
    pub fn has(&self, length: u64) -> bool {
        let Ok((folder, name)) = self.folder(false) else { return false };
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| {
            FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
                && u64::try_from(found.st_size) == Ok(length)
        })
    }

    /// A new file there that can only be read later on; what was there is gone.
    ///
    /// # Errors
    /// When a folder on the way is a link or a file, or cannot be written.
    pub fn create(&self) -> io::Result<File> {
        self.create_as(0o444)
    }

    /// A new file there with these permissions; what was there is gone.
    pub(super) fn create_as(&self, mode: u32) -> io::Result<File> {
        let (folder, name) = self.folder(true)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&folder, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Moves a folder there. A path that is taken stays as it is, unless it is an empty folder.
    ///
    /// # Errors
    /// When the path is taken, or a folder on the way is a link or a file, or cannot be written.
    pub fn place(&self, folder: &Path) -> io::Result<()> {
        let (target, name) = self.folder(true)?;
        let from = open(
            folder.parent().ok_or(io::ErrorKind::InvalidInput)?,
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let source = folder.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(renameat(&from, source, &target, name)?)
    }

    /// Removes the file, if it is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        let (folder, name) = match self.folder(false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn paths_of_the_interface_have_a_place_and_others_do_not() {
        let of =
            |path: &str| MountPoint::of(path, Path::new("/s/w"), Path::new("/s/m")).map(|point| point.path());
        assert_eq!(of("/workspace/a/b.txt"), Some("/s/w/a/b.txt".into()));
        assert_eq!(of("/data/workspace/b"), Some("/s/w/b".into()));
        assert_eq!(of("/mnt/session/uploads/f"), Some("/s/m/session/uploads/f".into()));
        for wrong in [
            "/workspace",
            "/workspace/",
            "/workspace/../x",
            "/workspaces/x",
            "/etc/x",
            "workspace/x",
            "/mnt/a//b",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, outside) = (folder.path().join("w"), folder.path().join("outside"));
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("kept"), "kept").unwrap();
        let point = |path: &str| MountPoint::of(path, &workspace, &workspace).unwrap();
        point("/workspace/new/a.txt").create().unwrap().write_all(b"abc").unwrap();
        assert!(point("/workspace/new/a.txt").has(3) && !point("/workspace/new/a.txt").has(4));
        std::os::unix::fs::symlink(&outside, workspace.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("kept"), workspace.join("file")).unwrap();
        assert!(point("/workspace/link/x").create().is_err(), "a folder that is a link");
        assert!(point("/workspace/link/kept").remove().is_err());
        assert!(!point("/workspace/file").has(4));
        point("/workspace/file").create().unwrap().write_all(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        assert_eq!(std::fs::read_to_string(workspace.join("file")).unwrap(), "new", "the link was replaced");
        point("/workspace/file").remove().unwrap();
        point("/workspace/file").remove().unwrap();
        assert!(!workspace.join("file").exists());
    }
}
