//! Performing a call in the place of a confined process, on objects that are held: what was judged is what is changed.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::caller::{Caller, last_error};
use super::judge::Judge;
use super::request::{Place, Request, Subject, Times};
use super::walk::{Arrival, Entry, Walk, held, real};

/// The largest value of an attribute, as in the kernel.
const LARGEST_ATTRIBUTE: u64 = 64 * 1024;

/// What the caller gets.
#[derive(Debug)]
pub(crate) enum Done {
    /// Nothing but that it is done.
    Nothing,
    /// A descriptor, closed when another program is executed if the flag says so.
    Descriptor(OwnedFd, bool),
    /// A named pipe without a reader.
    Waiting(Entry, OFlags),
}

/// A call of a process that waits for it.
pub(crate) struct Operation<'a> {
    pub(crate) caller: Caller,
    pub(crate) judge: &'a Judge,
    pub(crate) root: BorrowedFd<'a>,
    /// Whether the call still waits: what was read belongs to the caller only then.
    pub(crate) still_waits: &'a dyn Fn() -> bool,
}

impl Operation<'_> {
    /// Judges and performs.
    pub(crate) fn perform(&self, request: Request) -> Result<Done, Errno> {
        match request {
            Request::Open(place, flags, mode) => {
                return self.open(place, OFlags::from_bits_retain(flags.cast_unsigned()), mode);
            }
            Request::MakeFolder(place, mode) => {
                let entry = self.entry(place)?;
                self.with_umask(|| {
                    rustix::fs::mkdirat(&entry.folder, &entry.name, Mode::from_raw_mode(mode))
                })?;
            }
            Request::MakeNode(place, mode, device) => {
                let entry = self.entry(place)?;
                let kind = match rustix::fs::FileType::from_raw_mode(mode) {
                    // No kind means a file.
                    rustix::fs::FileType::Unknown => rustix::fs::FileType::RegularFile,
                    kind => kind,
                };
                let mode = Mode::from_raw_mode(mode);
                self.with_umask(|| rustix::fs::mknodat(&entry.folder, &entry.name, kind, mode, device))?;
            }
            Request::Remove(place, folder) => {
                let entry = self.entry(place)?;
                if entry.slash && !folder {
                    return Err(Errno::NOTDIR);
                }
                let flags = if folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                rustix::fs::unlinkat(&entry.folder, &entry.name, flags)?;
            }
            Request::Rename(from, to, flags) => {
                let (from, to) = (self.movable(from)?, self.movable(to)?);
                let flags = RenameFlags::from_bits_retain(flags);
                rustix::fs::renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags)?;
            }
            Request::Link(from, to, flags) => self.link(from, to, flags)?,
            Request::Symlink(text, place) => {
                let text = self.caller.text(text)?;
                let entry = self.entry(place)?;
                rustix::fs::symlinkat(&text, &entry.folder, &entry.name)?;
            }
            Request::Truncate(place, length) => {
                let object = self.subject(Subject::At(place, true))?;
                let path = text(&held(&object))?;
                let length = libc::off_t::try_from(length).map_err(|_| Errno::INVAL)?;
                // SAFETY: the path is a text of ours.
                checked(unsafe { libc::truncate(path.as_ptr(), length) })?;
            }
            Request::Mode(subject, mode) => {
                let object = self.subject(subject)?;
                rustix::fs::chmod(held(&object), Mode::from_raw_mode(mode & 0o7777))?;
            }
            Request::Owner(subject, user, group) => {
                let object = self.subject(subject)?;
                let user = (user != u32::MAX).then(|| Uid::from_raw(user));
                let group = (group != u32::MAX).then(|| Gid::from_raw(group));
                rustix::fs::chownat(&object, c"", user, group, AtFlags::EMPTY_PATH)?;
            }
            Request::SetTimes(subject, times) => self.set_times(subject, times)?,
            Request::SetAttribute(..) | Request::RemoveAttribute(..) => self.attribute(request)?,
        }
        Ok(Done::Nothing)
    }

    fn walked(&self, place: Place, follow: bool) -> Result<Arrival, Errno> {
        let path = self.caller.text(place.path)?;
        let base = match path.as_bytes().first() {
            // Not needed, and it may not be one.
            Some(b'/') => None,
            _ => Some(self.caller.descriptor(place.folder)?),
        };
        if !(self.still_waits)() {
            return Err(Errno::SRCH);
        }
        let base = base.as_ref().map_or(self.root, AsFd::as_fd);
        Walk { caller: self.caller, root: self.root, base, judge: self.judge }.find(&path, follow)
    }

    /// A name that is to come into being, change or go. Not judged.
    fn unjudged(&self, place: Place) -> Result<Entry, Errno> {
        match self.walked(place, false)? {
            Arrival::Entry(entry) => Ok(entry),
            // The root, or a path that ends in `.` or `..`: nothing can be made, moved or removed there.
            Arrival::Object(_) => Err(Errno::BUSY),
        }
    }

    fn entry(&self, place: Place) -> Result<Entry, Errno> {
        let entry = self.unjudged(place)?;
        if self.judge.refuses(&entry.real()?) { Err(Errno::ROFS) } else { Ok(entry) }
    }

    fn movable(&self, place: Place) -> Result<Entry, Errno> {
        let entry = self.unjudged(place)?;
        if self.judge.refuses_to_move(&entry.real()?) { Err(Errno::ROFS) } else { Ok(entry) }
    }

    /// An object that exists and may be changed.
    fn subject(&self, subject: Subject) -> Result<OwnedFd, Errno> {
        let object = match subject {
            Subject::Descriptor(number) => self.caller.descriptor(number)?,
            Subject::At(place, follow) => {
                let path = self.caller.text(place.path)?;
                // Only calls that take an empty path get this far with one; for others it is an error all the same.
                if path.is_empty() {
                    self.caller.descriptor(place.folder)?
                } else {
                    self.walked(place, follow)?.into_object()?
                }
            }
        };
        if !(self.still_waits)() {
            return Err(Errno::SRCH);
        }
        if self.judge.refuses(&real(&object)?) { Err(Errno::ROFS) } else { Ok(object) }
    }

    fn with_umask<T>(&self, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        // This thread has a mask of its own.
        rustix::process::umask(self.caller.umask()?);
        work()
    }

    fn link(&self, from: Place, to: Place, flags: i32) -> Result<(), Errno> {
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        // Another name of a protected file would be a way to change it.
        let object = self.subject(Subject::At(from, follow))?;
        let entry = self.entry(to)?;
        let follow = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(rustix::fs::CWD, held(&object), &entry.folder, &entry.name, follow)
    }

    fn open(&self, place: Place, flags: OFlags, mode: u32) -> Result<Done, Errno> {
        let close = flags.contains(OFlags::CLOEXEC);
        if flags.contains(OFlags::TMPFILE) {
            let folder = self.subject(Subject::At(place, true))?;
            let file =
                self.with_umask(|| rustix::fs::open(held(&folder), flags, Mode::from_raw_mode(mode)))?;
            return Ok(Done::Descriptor(file, close));
        }
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let entry = match self.walked(place, !exclusive && !flags.contains(OFlags::NOFOLLOW))? {
            Arrival::Entry(entry) => entry,
            Arrival::Object(object) => {
                return self.reopen(&object, flags).map(|file| Done::Descriptor(file, close));
            }
        };
        if entry.slash {
            return Err(if flags.contains(OFlags::CREATE) { Errno::ISDIR } else { Errno::NOTDIR });
        }
        let path = entry.real()?;
        if path == Path::new("/dev/tty") {
            return self.terminal(flags).map(|file| Done::Descriptor(file, close));
        }
        let only_reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        let refused = self.judge.refuses(&path);
        if refused && (!only_reads || exclusive) {
            // What does not exist is not there, rather than protected.
            let absent = !flags.contains(OFlags::CREATE) && entry.object().is_err();
            return Err(if absent { Errno::NOENT } else { Errno::ROFS });
        }
        let wanted = if refused { flags.difference(OFlags::CREATE) } else { flags };
        // Nothing that is opened here may make this thread wait, or give us a terminal.
        let ours = wanted | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open =
            || rustix::fs::openat(&entry.folder, &entry.name, ours, Mode::from_raw_mode(mode & 0o7777));
        let opened = if wanted.contains(OFlags::CREATE) { self.with_umask(open) } else { open() };
        match opened {
            Ok(file) => {
                let file = as_wanted(file, flags)?;
                Ok(Done::Descriptor(file, close))
            }
            Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => Ok(Done::Waiting(entry, flags)),
            Err(Errno::NOENT) if refused => Err(Errno::ROFS),
            Err(error) => Err(error),
        }
    }

    /// Opens an object again that has no name on the way.
    fn reopen(&self, object: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        let only_reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        let path = real(object)?;
        if path == Path::new("/dev/tty") {
            return self.terminal(flags);
        }
        if self.judge.refuses(&path) && !only_reads {
            return Err(Errno::ROFS);
        }
        let wanted = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        let ours = wanted | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        as_wanted(rustix::fs::open(held(object), ours, Mode::empty())?, flags)
    }

    /// The caller's controlling terminal. Opened by its own name that would be ours.
    fn terminal(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let number = self.caller.terminal().ok_or(Errno::NXIO)?;
        let wanted = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
        let ours = wanted | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = format!("dev/pts/{number}");
        as_wanted(rustix::fs::openat(self.root, path, ours, Mode::empty())?, flags)
    }

    fn set_times(&self, subject: Subject, times: Times) -> Result<(), Errno> {
        let object = self.subject(subject)?;
        let times = self.times(times)?;
        rustix::fs::utimensat(&object, c"", &times, AtFlags::EMPTY_PATH)
            // Older kernels take no empty path; they follow this one, which is right but for links.
            .or_else(|_| rustix::fs::utimensat(rustix::fs::CWD, held(&object), &times, AtFlags::empty()))
    }

    fn times(&self, times: Times) -> Result<Timestamps, Errno> {
        let (address, size, unit) = match times {
            Times::Nanoseconds(address) => (address, 32, 1),
            Times::Microseconds(address) => (address, 32, 1_000),
            Times::Seconds(address) => (address, 16, 0),
        };
        if address == 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        let bytes = self.caller.exactly(address, size)?;
        let number = |place: usize| {
            let bytes = bytes.get(place * 8..).and_then(<[u8]>::first_chunk).copied();
            i64::from_ne_bytes(bytes.unwrap_or_default())
        };
        let time = |place: usize| match unit {
            0 => Timespec { tv_sec: number(place), tv_nsec: 0 },
            _ => Timespec { tv_sec: number(place * 2), tv_nsec: number(place * 2 + 1).saturating_mul(unit) },
        };
        Ok(Timestamps { last_access: time(0), last_modification: time(1) })
    }

    fn attribute(&self, request: Request) -> Result<(), Errno> {
        match request {
            Request::SetAttribute(subject, name, value, size, flags) => {
                if size > LARGEST_ATTRIBUTE {
                    return Err(Errno::TOOBIG);
                }
                let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
                let name = self.caller.text(name)?;
                let value = self.caller.exactly(value, size)?;
                let object = self.subject(subject)?;
                let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
                rustix::fs::setxattr(held(&object), &name, &value, flags)
            }
            Request::RemoveAttribute(subject, name) => {
                let name = self.caller.text(name)?;
                let object = self.subject(subject)?;
                rustix::fs::removexattr(held(&object), &name)
            }
            _ => Err(Errno::NOSYS),
        }
    }
}

/// Takes away what only we needed.
fn as_wanted(file: OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    if !flags.contains(OFlags::NONBLOCK) {
        let now = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, now.difference(OFlags::NONBLOCK))?;
    }
    Ok(file)
}

/// Opens a named pipe again and again until it has a reader; `None` while it has not.
pub(crate) fn open_pipe(entry: &Entry, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
    let ours = flags.difference(OFlags::CREATE) | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&entry.folder, &entry.name, ours, Mode::empty()) {
        Err(Errno::NXIO) => None,
        Err(error) => Some(Err(error)),
        Ok(file) => Some(as_wanted(file, flags)),
    }
}

fn text(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Errno::INVAL)
}

fn checked(result: i32) -> Result<(), Errno> {
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

/// The number of a descriptor, for the kernel's structures.
pub(crate) fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}
