//! Builds a workspace from an inventory in an empty folder. The folder is made anew, so nothing that a session left can lead out of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, fstat, futimens, mkdirat, open, openat, symlinkat,
    utimensat,
};
use rustix::io::Errno;

use super::inventory::{FileEntry, Inventory, PathText, Seen};
use super::scan::seen;
use crate::environment::MountPoint;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A workspace that is being built.
#[derive(Debug, Clone)]
pub struct Restoration {
    root: PathBuf,
}

fn wrong(path: &PathText) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the inventory has the path {path:?}"))
}

fn times(mtime: i64) -> Timestamps {
    let nanoseconds = mtime.rem_euclid(1_000_000_000);
    let time = Timespec { tv_sec: mtime.div_euclid(1_000_000_000), tv_nsec: nanoseconds };
    Timestamps { last_access: time, last_modification: time }
}

impl Restoration {
    /// Empties the folder; `aside` is a free path on the same disk, for what it had, which `keeps` leaves there.
    ///
    /// # Errors
    /// When it cannot be emptied.
    pub fn begin(root: &Path, aside: &Path, keeps: bool) -> io::Result<Self> {
        match std::fs::rename(root, aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // What cannot be removed is out of the way, and goes with the session.
        if !keeps {
            let _ = std::fs::remove_dir_all(aside);
        }
        std::fs::DirBuilder::new().mode(0o700).create(root)?;
        Ok(Self { root: root.to_path_buf() })
    }

    fn point(&self, path: &PathText) -> io::Result<MountPoint> {
        let below = path.below().ok_or_else(|| wrong(path))?;
        Ok(MountPoint { root: self.root.clone(), below })
    }

    /// Makes the folders, open to the server until the end.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make_folders(&self, inventory: &Inventory) -> io::Result<()> {
        for entry in &inventory.folders {
            let point = self.point(&entry.path)?;
            let (folder, name) = point.folder(true)?;
            match mkdirat(&folder, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A new file for an entry.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, entry: &FileEntry) -> io::Result<File> {
        self.point(&entry.path)?.create_as(0o600)
    }

    /// Gives a file that was written its permissions and time.
    ///
    /// # Errors
    /// When that fails.
    pub fn finish_file(file: &File, entry: &FileEntry) -> io::Result<Seen> {
        fchmod(file, Mode::from_raw_mode(entry.mode & 0o777))?;
        futimens(file, &times(entry.mtime))?;
        Ok(seen(&fstat(file.as_fd())?))
    }

    /// Makes the links, then gives the folders their permissions and times, those inside of others first.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn finish(&self, inventory: &Inventory) -> io::Result<()> {
        for entry in &inventory.links {
            let target = entry.target.path().ok_or_else(|| wrong(&entry.target))?;
            let point = self.point(&entry.path)?;
            let (folder, name) = point.folder(true)?;
            symlinkat(&target, &folder, name)?;
        }
        for entry in inventory.folders.iter().rev() {
            let point = self.point(&entry.path)?;
            let (folder, name) = point.folder(false)?;
            let opened: OwnedFd = openat(&folder, name, FOLDER, Mode::empty())?;
            fchmod(&opened, Mode::from_raw_mode(entry.mode & 0o777))?;
            utimensat(&folder, name, &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // The names of everything are on the disk before anyone counts on them.
        Ok(rustix::fs::fsync(open(&self.root, FOLDER, Mode::empty())?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::super::inventory::{FolderEntry, LinkEntry};
    use super::*;

    fn text(path: &str) -> PathText {
        PathText::of(Path::new(path))
    }

    #[test]
    fn what_was_kept_is_there_again_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (root, aside) = (folder.path().join("w"), folder.path().join("aside"));
        std::fs::create_dir(&root).unwrap();
        symlink(folder.path(), root.join("a")).unwrap();
        let file = FileEntry {
            path: text("a/run"),
            mode: 0o4751,
            mtime: 1_700_000_000_123_456_789,
            size: 3,
            sha256: String::new(),
            object: String::new(),
        };
        let inner = FolderEntry { path: text("a"), mode: 0o500, mtime: 1_600_000_000_000_000_001 };
        let link = LinkEntry { path: text("a/link"), target: text("/etc") };
        let inventory = Inventory::new(vec![inner], vec![file.clone()], vec![link]);
        let restoration = Restoration::begin(&root, &aside, false).unwrap();
        restoration.make_folders(&inventory).unwrap();
        let mut written = restoration.create(&file).unwrap();
        written.write_all(b"run").unwrap();
        Restoration::finish_file(&written, &file).unwrap();
        restoration.finish(&inventory).unwrap();
        let found = std::fs::metadata(root.join("a/run")).unwrap();
        assert_eq!((found.mode() & 0o7777, found.mtime_nsec()), (0o751, 123_456_789), "no set-user-ID");
        let of_folder = std::fs::symlink_metadata(root.join("a")).unwrap();
        assert_eq!((of_folder.mode() & 0o777, of_folder.mtime_nsec()), (0o500, 1));
        assert_eq!(std::fs::read_link(root.join("a/link")).unwrap(), Path::new("/etc"));
        assert!(!aside.exists() && !folder.path().join("run").exists());
        let out = FileEntry { path: text("../x"), ..file.clone() };
        assert!(restoration.create(&out).is_err());
        let through = FileEntry { path: text("a/link/x"), ..file };
        assert!(restoration.create(&through).is_err(), "a file cannot be made through a link");
    }
}
