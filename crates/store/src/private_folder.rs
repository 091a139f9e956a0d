//! A folder of the user's alone, opened without following links, with files that appear whole or not at all. Every file in
//! it is reached through the open folder, so that no one can put another one in its place meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// How names of files begin that are not complete yet.
const UNFINISHED: u8 = b'.';
/// The most names that are read.
const MOST_NAMES: usize = 10_000;

/// A folder of the user's alone.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    folder: OwnedFd,
    path: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// Another user could have made or changed it.
    Unsafe(&'static str),
    /// The system refused.
    Io(std::io::Error),
}

impl From<Errno> for FolderError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl PrivateFolder {
    /// Opens the folder; `None` when it is not there.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, FolderError> {
        Self::open_at(CWD, path.as_os_str(), path.to_path_buf())
    }

    /// Opens the folder and makes it if it is not there. The folder above it exists.
    pub(crate) fn create(path: &Path) -> Result<Self, FolderError> {
        Self::create_at(CWD, path.as_os_str(), path.to_path_buf())
    }

    /// Opens a folder in this one; `None` when it is not there.
    pub(crate) fn inner(&self, name: &str) -> Result<Option<Self>, FolderError> {
        Self::open_at(self.folder.as_fd(), OsStr::new(name), self.path.join(name))
    }

    /// Opens a folder in this one and makes it if it is not there.
    pub(crate) fn create_inner(&self, name: &str) -> Result<Self, FolderError> {
        Self::create_at(self.folder.as_fd(), OsStr::new(name), self.path.join(name))
    }

    fn create_at(above: impl AsFd, name: &OsStr, path: PathBuf) -> Result<Self, FolderError> {
        match mkdirat(above.as_fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Self::open_at(above, name, path)?.ok_or(FolderError::Io(Errno::NOENT.into()))
    }

    fn open_at(above: impl AsFd, name: &OsStr, path: PathBuf) -> Result<Option<Self>, FolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match openat(above, name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(FolderError::Unsafe("it is not a folder")),
            Err(error) => return Err(error.into()),
        };
        let found = fstat(&folder)?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(FolderError::Unsafe("it belongs to another user"));
        }
        if found.st_mode & 0o022 != 0 {
            return Err(FolderError::Unsafe("others can write to it"));
        }
        Ok(Some(Self { folder, path }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The names of complete files and folders, in order.
    pub(crate) fn names(&self) -> std::io::Result<Vec<OsString>> {
        let mut names = self.all_names()?;
        names.retain(|name| name.as_bytes().first() != Some(&UNFINISHED));
        names.sort();
        Ok(names)
    }

    fn all_names(&self) -> std::io::Result<Vec<OsString>> {
        let entries = Dir::read_from(&self.folder)?.take(MOST_NAMES);
        let names = entries.map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())));
        names.collect::<Result<_, Errno>>().map_err(Into::into)
    }

    /// Writes a file that appears whole or not at all, and survives a loss of power.
    pub(crate) fn write(&self, name: &OsStr, content: &[u8]) -> std::io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished = format!(".{}-{number}", std::process::id());
        // A file with this name is left from a dead process with the same number.
        let _ = unlinkat(&self.folder, unfinished.as_str(), AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, unfinished.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        let written = file
            .write_all(content)
            .and_then(|()| file.sync_data())
            .and_then(|()| Ok(renameat(&self.folder, unfinished.as_str(), &self.folder, name)?));
        if written.is_err() {
            // The first error is the one to report.
            let _ = unlinkat(&self.folder, unfinished.as_str(), AtFlags::empty());
        }
        written.and_then(|()| Ok(rustix::fs::fsync(&self.folder)?))
    }

    /// Reads a whole file of the user's. The error says in words what is wrong with it.
    pub(crate) fn read(&self, name: &OsStr, most: u64) -> Result<Vec<u8>, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP => "it is a symbolic link".to_owned(),
            Errno::NXIO => "it is not a regular file".to_owned(),
            error => format!("it cannot be read ({error})"),
        })?;
        let found = fstat(&file).map_err(|error| format!("it cannot be read ({error})"))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err("it is not a regular file".to_owned());
        }
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err("it belongs to another user".to_owned());
        }
        let mut content = Vec::new();
        let read = File::from(file).take(most + 1).read_to_end(&mut content);
        read.map_err(|error| format!("it cannot be read ({error})"))?;
        if content.len() as u64 > most {
            return Err(format!("it has more than {most} bytes"));
        }
        Ok(content)
    }

    /// True when there is something of this name, whatever it is.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file or an empty folder; one that is not there is removed.
    pub(crate) fn remove(&self, name: &OsStr) -> std::io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => Ok(unlinkat(&self.folder, name, AtFlags::REMOVEDIR)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a file into another folder.
    pub(crate) fn move_into(&self, name: &OsStr, other: &Self) -> std::io::Result<()> {
        Ok(renameat(&self.folder, name, &other.folder, name)?)
    }

    /// Removes files that are older than `age` and for which `goes` is true.
    pub(crate) fn remove_old(&self, age: Duration, goes: impl Fn(&OsStr) -> bool) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = i64::try_from(now.saturating_sub(age).as_secs()).unwrap_or(i64::MAX);
        for name in self.all_names()?.iter().filter(|name| goes(name)) {
            let found = statat(&self.folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
            let is_old = found.is_ok_and(|found| {
                FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_mtime < limit
            });
            if is_old {
                self.remove(name)?;
            }
        }
        Ok(())
    }
}

/// True for the name of a file that was never completed.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes.first() == Some(&UNFINISHED) && bytes != b"." && bytes != b".."
}
