//! Replacing a file in one step, without ever showing a half-written one.
//!
//! The parent directory is opened once, without following links, and everything happens relative to it: the temporary
//! file with a random name, the check that the target is still the file that was read, and the rename. Permission bits
//! are kept and, where the system lets us, the owner too.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::files::open::{FileError, open_real};

/// A place in an open directory.
#[derive(Debug)]
pub(crate) struct Place {
    directory: OwnedFd,
    name: OsString,
    shown: PathBuf,
}

impl Place {
    /// Opens the directory in which `real` is or will be.
    pub(crate) fn open(real: &Path, shown: &Path) -> Result<Self, FileError> {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(FileError::Directory(shown.to_path_buf()));
        };
        let directory = open_real(parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self { directory, name: name.to_os_string(), shown: shown.to_path_buf() })
    }

    /// Puts `bytes` at this place. `existing` is the file that was there when the caller looked; it must still be the
    /// same and unchanged, and `None` means that nothing may be there.
    pub(crate) fn replace(&self, bytes: &[u8], existing: Option<&Metadata>) -> Result<Metadata, FileError> {
        self.put(bytes, existing, existing.map(MetadataExt::mode))
    }

    /// Like [`Place::replace`], with these permission bits in place of those that the file has.
    pub(crate) fn put(
        &self,
        bytes: &[u8],
        existing: Option<&Metadata>,
        mode: Option<u32>,
    ) -> Result<Metadata, FileError> {
        if let Some(metadata) = existing {
            // A rename would silently override the write protection of the file itself.
            rustix::fs::accessat(&self.directory, &self.name, Access::WRITE_OK, AtFlags::empty())
                .map_err(|error| self.error(error))?;
            self.require_unchanged(metadata)?;
        }
        let temporary = format!(".{}.tmp", uuid::Uuid::new_v4().simple());
        let result = self.write_temporary(&temporary, bytes, existing, mode).and_then(|metadata| {
            if let Some(known) = existing {
                self.require_unchanged(known)?;
            }
            self.rename(&temporary, existing.is_some())?;
            Ok(metadata)
        });
        if result.is_err() {
            // The error that matters is the one above; a leftover that cannot be removed changes nothing about it.
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        result
    }

    fn write_temporary(
        &self,
        temporary: &str,
        bytes: &[u8],
        existing: Option<&Metadata>,
        mode: Option<u32>,
    ) -> Result<Metadata, FileError> {
        let first = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&self.directory, temporary, flags, first)
            .map_err(|error| self.error(error))?;
        let mut file = File::from(descriptor);
        file.write_all(bytes).map_err(|error| FileError::from_system(&self.shown, error))?;
        let kept_owner = existing.is_some_and(|metadata| {
            let owner = Some(Uid::from_raw(metadata.uid()));
            let group = Some(Gid::from_raw(metadata.gid()));
            rustix::fs::fchown(&file, owner, group).is_ok()
        });
        if let Some(mode) = mode {
            // Set-id bits belong to the old owner: they go when the owner cannot be kept.
            let bits = mode & if kept_owner { 0o7777 } else { 0o777 };
            rustix::fs::fchmod(&file, Mode::from_raw_mode(bits)).map_err(|error| self.error(error))?;
        }
        file.metadata().map_err(|error| FileError::from_system(&self.shown, error))
    }

    /// Whether the name still means the file with this metadata, and it was not written since.
    fn require_unchanged(&self, known: &Metadata) -> Result<(), FileError> {
        let now = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.error(error))?;
        let same = now.st_dev == known.dev()
            && now.st_ino == known.ino()
            && u64::try_from(now.st_size).is_ok_and(|size| size == known.len())
            && now.st_mtime == known.mtime()
            && i64::try_from(now.st_mtime_nsec).is_ok_and(|part| part == known.mtime_nsec());
        if same { Ok(()) } else { Err(FileError::Changed(self.shown.clone())) }
    }

    /// Removes the file at this place. What is no regular file stays.
    pub(crate) fn remove(&self) -> Result<(), FileError> {
        let found = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.error(error))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(FileError::Changed(self.shown.clone()));
        }
        rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()).map_err(|error| self.error(error))
    }

    fn rename(&self, temporary: &str, over_existing: bool) -> Result<(), FileError> {
        if !over_existing {
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(&self.directory, temporary, &self.directory, &self.name, flags) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(FileError::Changed(self.shown.clone())),
                // File systems without this kind of rename.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        rustix::fs::renameat(&self.directory, temporary, &self.directory, &self.name)
            .map_err(|error| self.error(error))
    }

    fn error(&self, error: Errno) -> FileError {
        FileError::from_system(&self.shown, error.into())
    }
}
