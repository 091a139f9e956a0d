//! From a path as a confined process wrote it to the object it means there, held by a descriptor.
//!
//! The usual path has no link in it and is one call. Others are walked name by name, because links and `..` must not
//! lead out of the command's view, and because `/proc/self` must mean the caller and not us.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::caller::Caller;
use super::judge::Judge;

/// The most links in one path, as in the kernel.
const MOST_LINKS: usize = 40;
/// The file system of the process list.
const PROCESS_LIST: rustix::fs::FsWord = 0x9fa0;

const ONLY_A_PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// A name in a folder that is held.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) folder: OwnedFd,
    pub(crate) name: CString,
    /// Whether the path ended in a slash.
    pub(crate) slash: bool,
}

impl Entry {
    /// The real path.
    pub(crate) fn real(&self) -> Result<PathBuf, Errno> {
        Ok(real(&self.folder)?.join(OsStr::from_bytes(self.name.to_bytes())))
    }

    /// The object, a link itself.
    pub(crate) fn object(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.folder, &self.name, ONLY_A_PLACE, Mode::empty())
    }
}

/// What a walk arrived at.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A name that may or may not exist and is no link that was to be followed.
    Entry(Entry),
    /// An object without a name of its own on the way: a folder reached by `..`, or what a descriptor leads to.
    Object(OwnedFd),
}

impl Arrival {
    /// The object that exists there.
    pub(crate) fn into_object(self) -> Result<OwnedFd, Errno> {
        match self {
            Self::Entry(entry) => entry.object(),
            Self::Object(object) => Ok(object),
        }
    }
}

/// The real path of an object that is held, in the view it was reached through.
pub(crate) fn real(object: impl AsFd) -> Result<PathBuf, Errno> {
    let number = object.as_fd().as_raw_fd();
    let link = rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// Where paths of one caller start.
pub(crate) struct Walk<'a> {
    pub(crate) caller: Caller,
    pub(crate) root: BorrowedFd<'a>,
    /// Where relative paths start.
    pub(crate) base: BorrowedFd<'a>,
    /// What protects a link that a change would follow.
    pub(crate) judge: &'a Judge,
}

impl Walk<'_> {
    /// Finds the last name of `path`; with `follow`, of what it links to.
    pub(crate) fn find(&self, path: &CStr, follow: bool) -> Result<Arrival, Errno> {
        let bytes = path.to_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        match self.quick(bytes, follow) {
            Some(entry) => Ok(Arrival::Entry(entry)),
            None => Steps::new(self, bytes)?.run(follow),
        }
    }

    /// The folder in one call, when nothing on the way is a link and neither is the name.
    fn quick(&self, bytes: &[u8], follow: bool) -> Option<Entry> {
        if bytes.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return None;
        }
        let end = bytes.iter().rposition(|byte| *byte != b'/')? + 1;
        let slash = end < bytes.len();
        let cut = bytes[..end].iter().rposition(|byte| *byte == b'/');
        let name = &bytes[cut.map_or(0, |cut| cut + 1)..end];
        if name == b"." {
            return None;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let plain = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let (start, way, scope) = match bytes.first() {
            Some(b'/') => (self.root, &bytes[..=cut?], plain | ResolveFlags::IN_ROOT),
            _ => (self.base, cut.map_or(&b"."[..], |cut| &bytes[..cut]), plain),
        };
        let folder = rustix::fs::openat2(start, OsStr::from_bytes(way), flags, Mode::empty(), scope).ok()?;
        let name = CString::new(name).ok()?;
        if follow || slash {
            let found = rustix::fs::statat(&folder, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            if found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink) {
                return None;
            }
        }
        Some(Entry { folder, name, slash })
    }
}

/// A walk name by name.
struct Steps<'a> {
    walk: &'a Walk<'a>,
    folder: OwnedFd,
    names: VecDeque<Vec<u8>>,
    slash: bool,
    links: usize,
}

impl<'a> Steps<'a> {
    fn new(walk: &'a Walk<'a>, path: &[u8]) -> Result<Self, Errno> {
        let folder = reopened(walk.base)?;
        let mut steps = Self { walk, folder, names: VecDeque::new(), slash: false, links: 0 };
        steps.slash = path.ends_with(b"/");
        steps.push(path)?;
        Ok(steps)
    }

    fn push(&mut self, path: &[u8]) -> Result<(), Errno> {
        if path.starts_with(b"/") {
            self.folder = reopened(self.walk.root)?;
        }
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        for (place, name) in names.enumerate() {
            self.names.insert(place, name.to_vec());
        }
        Ok(())
    }

    fn run(mut self, follow: bool) -> Result<Arrival, Errno> {
        loop {
            let Some(name) = self.names.pop_front() else { return Ok(Arrival::Object(self.folder)) };
            let last = self.names.is_empty();
            if name == b".." {
                self.up()?;
                continue;
            }
            let name = CString::new(name).map_err(|_| Errno::INVAL)?;
            let found = rustix::fs::openat(&self.folder, &name, ONLY_A_PLACE, Mode::empty());
            let object = match found {
                Ok(object) => object,
                Err(Errno::NOENT) if last => return Ok(self.arrived(name)),
                Err(error) => return Err(error),
            };
            let is_link = FileType::from_raw_mode(rustix::fs::fstat(&object)?.st_mode) == FileType::Symlink;
            if is_link && (!last || follow || self.slash) {
                // A change of what a protected name leads to is a change of the protected file.
                if last
                    && self.walk.judge.protects(&real(&self.folder)?.join(OsStr::from_bytes(name.to_bytes())))
                {
                    return Err(Errno::ROFS);
                }
                if let Some(object) = self.follow(&name, &object)? {
                    if last {
                        return Ok(Arrival::Object(object));
                    }
                    self.folder = object;
                }
            } else if last {
                return Ok(self.arrived(name));
            } else {
                self.folder = object;
            }
        }
    }

    fn arrived(self, name: CString) -> Arrival {
        Arrival::Entry(Entry { folder: self.folder, name, slash: self.slash })
    }

    /// Follows a link: its text, or for those of the process list the object that the kernel knows.
    fn follow(&mut self, name: &CStr, link: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        if self.is_in_process_list()? {
            return match name.to_bytes() {
                b"self" | b"thread-self" => self.walk.caller.process().map(Some),
                b"mounts" | b"net" => Err(Errno::ACCESS),
                _ => {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    rustix::fs::openat(&self.folder, name, flags, Mode::empty()).map(Some)
                }
            };
        }
        let text = rustix::fs::readlinkat(link, c"", Vec::new())?;
        if text.as_bytes().is_empty() {
            return Err(Errno::NOENT);
        }
        self.slash |= self.names.is_empty() && text.as_bytes().ends_with(b"/");
        self.push(text.as_bytes())?;
        Ok(None)
    }

    fn is_in_process_list(&self) -> Result<bool, Errno> {
        Ok(rustix::fs::fstatfs(&self.folder)?.f_type == PROCESS_LIST)
    }

    fn up(&mut self) -> Result<(), Errno> {
        // The caller was looked up in the list of the machine, where others are beside it.
        if self.is_in_process_list()? {
            return Err(Errno::ACCESS);
        }
        let identity =
            |object: BorrowedFd<'_>| rustix::fs::fstat(object).map(|found| (found.st_dev, found.st_ino));
        if identity(self.folder.as_fd())? != identity(self.walk.root)? {
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
            self.folder = rustix::fs::openat(&self.folder, c"..", flags, Mode::empty())?;
        }
        Ok(())
    }
}

fn reopened(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(folder, 3)
}

/// A path by which the kernel finds an object that is held, whatever its name is now.
pub(crate) fn held(object: &impl AsRawFd) -> PathBuf {
    Path::new("/proc/self/fd").join(object.as_raw_fd().to_string())
}
