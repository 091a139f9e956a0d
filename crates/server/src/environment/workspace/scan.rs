//! Looks at everything in a workspace, without following a link and without waiting for anything.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, readlinkat, statat};
use rustix::io::Errno;

use super::inventory::{FolderEntry, LinkEntry, PathText, Seen};

/// Folders inside of folders. A path of this depth has as many open folders while it is looked at.
const DEEPEST: usize = 100;
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How much of a workspace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files, folders and links.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// What every session has.
pub const LIMITS: Limits = Limits { entries: 100_000, bytes: 2 * 1024 * 1024 * 1024 };

/// Why a workspace cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It has too many entries.
    #[error("it has more than {0} files and folders")]
    TooMany(usize),
    /// Its files are too long.
    #[error("its files have more than {} MiB", .0 / 1024 / 1024)]
    TooLarge(u64),
    /// It cannot be looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Where it is below the workspace.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What it looked like.
    pub seen: Seen,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Folders.
    pub folders: Vec<FolderEntry>,
    /// Files.
    pub files: Vec<WorkspaceFile>,
    /// Links.
    pub links: Vec<LinkEntry>,
    /// What is not kept: pipes, sockets, devices, and what cannot be read.
    pub left_out: Vec<PathBuf>,
}

fn nanoseconds(seconds: i64, rest: u64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(rest).unwrap_or(0))
}

#[expect(clippy::useless_conversion, reason = "widths differ by platform")]
pub(super) fn seen(stat: &Stat) -> Seen {
    Seen {
        place: (u64::try_from(stat.st_dev).unwrap_or(0), u64::try_from(stat.st_ino).unwrap_or(0)),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime: nanoseconds(i64::from(stat.st_mtime), u64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        ctime: nanoseconds(i64::from(stat.st_ctime), u64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
    }
}

/// Looks at a workspace.
///
/// # Errors
/// When it is beyond the limits, or its own folder cannot be read.
pub fn scan(root: &Path, limits: Limits) -> Result<Scan, ScanError> {
    let folder = open(root, FOLDER, Mode::empty()).map_err(io::Error::from)?;
    let mut walk = Walk { limits, entries: 0, bytes: 0, found: Scan::default() };
    walk.folder(&folder, Path::new(""), 0)?;
    Ok(walk.found)
}

struct Walk {
    limits: Limits,
    entries: usize,
    bytes: u64,
    found: Scan,
}

impl Walk {
    fn folder(&mut self, folder: &OwnedFd, below: &Path, depth: usize) -> Result<(), ScanError> {
        let entries = Dir::read_from(folder).map_err(io::Error::from)?;
        for entry in entries {
            let Ok(entry) = entry else {
                self.found.left_out.push(below.to_path_buf());
                break;
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(ScanError::TooMany(self.limits.entries));
            }
            let name = PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()));
            self.entry(folder, &name, below.join(&name), depth)?;
        }
        Ok(())
    }

    /// What vanishes while it is looked at is not there.
    fn entry(&mut self, folder: &OwnedFd, name: &Path, path: PathBuf, depth: usize) -> Result<(), ScanError> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => {
                self.found.left_out.push(path);
                return Ok(());
            }
        };
        let mode = stat.st_mode & 0o777;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let seen = seen(&stat);
                self.bytes = self.bytes.saturating_add(seen.size);
                if self.bytes > self.limits.bytes {
                    return Err(ScanError::TooLarge(self.limits.bytes));
                }
                self.found.files.push(WorkspaceFile { path, mode, seen });
            }
            FileType::Directory => match openat(folder, name, FOLDER, Mode::empty()) {
                Ok(inner) if depth < DEEPEST => {
                    let mtime = seen(&stat).mtime;
                    self.found.folders.push(FolderEntry { path: PathText::of(&path), mode, mtime });
                    self.folder(&inner, &path, depth + 1)?;
                }
                Err(Errno::NOENT) => {}
                Ok(_) | Err(_) => self.found.left_out.push(path),
            },
            FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
                Ok(target) => {
                    let target = PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes()));
                    let entry = LinkEntry { path: PathText::of(&path), target: PathText::of(&target) };
                    self.found.links.push(entry);
                }
                Err(Errno::NOENT) => {}
                Err(_) => self.found.left_out.push(path),
            },
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => self.found.left_out.push(path),
        }
        Ok(())
    }
}

/// Opens a file that was found, for reading. `None` when it is no longer there, or no longer a file.
///
/// # Errors
/// When it may not be read.
pub fn open_found(root: &Path, below: &Path) -> io::Result<Option<(File, Seen)>> {
    let gone = |error: Errno| match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => Ok(None),
        other => Err(io::Error::from(other)),
    };
    let mut folder = open(root, FOLDER, Mode::empty())?;
    for part in below.parent().into_iter().flat_map(Path::iter) {
        folder = match openat(&folder, part, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(error) => return gone(error),
        };
    }
    let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // A pipe in the place of a file would be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    let stat = fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| (File::from(file), seen(&stat))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, mknodat};

    use super::*;

    #[test]
    fn whatever_a_session_leaves_is_looked_at_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/empty")).unwrap();
        std::fs::write(root.join("a/file"), "text").unwrap();
        std::fs::hard_link(root.join("a/file"), root.join("hard")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink(".", root.join("a/circle")).unwrap();
        mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _listener = UnixListener::bind(root.join("socket")).unwrap();
        let found = scan(root, LIMITS).unwrap();
        let mut files: Vec<_> = found.files.iter().map(|file| file.path.display().to_string()).collect();
        files.sort();
        assert_eq!(files, ["a/file", "hard"]);
        assert_eq!((found.folders.len(), found.links.len(), found.left_out.len()), (2, 3, 2));
        let many = scan(root, Limits { entries: 3, bytes: 100 }).unwrap_err();
        assert!(many.to_string().contains("more than 3 files"), "{many}");
        let sparse = File::create(root.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert!(matches!(scan(root, LIMITS), Err(ScanError::TooLarge(_))));
        std::fs::remove_file(root.join("sparse")).unwrap();
        let mut deep = root.to_path_buf();
        for _ in 0..150 {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        let found = scan(root, LIMITS).unwrap();
        assert_eq!(found.left_out.len(), 3, "what is too deep is named");
        assert!(scan(&root.join("out"), LIMITS).is_err(), "a workspace that became a link");
        let opened = |name: &str| open_found(root, Path::new(name)).unwrap();
        assert_eq!(opened("a/file").unwrap().1.place.1, std::fs::metadata(root.join("hard")).unwrap().ino());
        for gone in ["pipe", "out/secret", "dangling", "missing", "a", "socket", "a/file/x"] {
            assert!(opened(gone).is_none(), "{gone}");
        }
    }
}
