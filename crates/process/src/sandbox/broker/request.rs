//! The system calls that change files, read from their numbers and arguments. Pointers are into the caller's memory and
//! are not followed here.

/// The folder that a path is relative to, as the caller numbers it, and where the path is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) folder: i32,
    pub(crate) path: u64,
}

/// What a call about metadata is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// A path, followed when it ends in a link.
    At(Place, bool),
    /// An open descriptor.
    Descriptor(i32),
}

/// How times are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Times {
    /// Two times in seconds and nanoseconds; a null pointer is now.
    Nanoseconds(u64),
    /// Two times in seconds and microseconds.
    Microseconds(u64),
    /// Two times in seconds.
    Seconds(u64),
}

/// A call that changes files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Open(Place, i32, u32),
    MakeFolder(Place, u32),
    MakeNode(Place, u32, u64),
    /// True for a folder.
    Remove(Place, bool),
    Rename(Place, Place, u32),
    Link(Place, Place, i32),
    Symlink(u64, Place),
    Truncate(Place, u64),
    Mode(Subject, u32),
    Owner(Subject, u32, u32),
    SetTimes(Subject, Times),
    /// Name, value, size and flags.
    SetAttribute(Subject, u64, u64, u64, i32),
    RemoveAttribute(Subject, u64),
}

/// The numbers of calls that have no other form on any processor.
const EVERYWHERE: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    libc::SYS_fchmod,
    libc::SYS_fchownat,
    libc::SYS_fchown,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const RENAMEAT: &[i64] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const RENAMEAT: &[i64] = &[];

/// Older forms that only this processor has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// The numbers of every such call but those that open, which depend on a flag.
pub(crate) fn numbers() -> impl Iterator<Item = i64> {
    EVERYWHERE.iter().chain(RENAMEAT).chain(OLDER).copied()
}

/// Reads a call. `None` for one that is not in the tables.
pub(crate) fn read(number: i64, arguments: &[u64; 6]) -> Option<Request> {
    let a = Arguments(arguments);
    Some(match number {
        libc::SYS_openat => Request::Open(a.place(0), a.int(2), a.word(3)),
        libc::SYS_mkdirat => Request::MakeFolder(a.place(0), a.word(2)),
        libc::SYS_mknodat => Request::MakeNode(a.place(0), a.word(2), arguments[3]),
        libc::SYS_unlinkat => Request::Remove(a.place(0), a.int(2) & libc::AT_REMOVEDIR != 0),
        libc::SYS_renameat2 => Request::Rename(a.place(0), a.place(2), a.word(4)),
        libc::SYS_linkat => Request::Link(a.place(0), a.place(2), a.int(4)),
        libc::SYS_symlinkat => Request::Symlink(arguments[0], a.place(1)),
        libc::SYS_truncate => Request::Truncate(a.here(0), arguments[1]),
        libc::SYS_fchmodat => Request::Mode(Subject::At(a.place(0), true), a.word(2)),
        libc::SYS_fchmod => Request::Mode(Subject::Descriptor(a.int(0)), a.word(1)),
        libc::SYS_fchownat => Request::Owner(a.subject(0, 4), a.word(2), a.word(3)),
        libc::SYS_fchown => Request::Owner(Subject::Descriptor(a.int(0)), a.word(1), a.word(2)),
        libc::SYS_utimensat => {
            let subject = if arguments[1] == 0 { Subject::Descriptor(a.int(0)) } else { a.subject(0, 3) };
            Request::SetTimes(subject, Times::Nanoseconds(arguments[2]))
        }
        libc::SYS_setxattr | libc::SYS_lsetxattr => {
            let subject = Subject::At(a.here(0), number == libc::SYS_setxattr);
            Request::SetAttribute(subject, arguments[1], arguments[2], arguments[3], a.int(4))
        }
        libc::SYS_fsetxattr => {
            let subject = Subject::Descriptor(a.int(0));
            Request::SetAttribute(subject, arguments[1], arguments[2], arguments[3], a.int(4))
        }
        libc::SYS_removexattr | libc::SYS_lremovexattr => {
            Request::RemoveAttribute(Subject::At(a.here(0), number == libc::SYS_removexattr), arguments[1])
        }
        libc::SYS_fremovexattr => Request::RemoveAttribute(Subject::Descriptor(a.int(0)), arguments[1]),
        _ if RENAMEAT.contains(&number) => Request::Rename(a.place(0), a.place(2), 0),
        _ => return older(number, &a),
    })
}

#[cfg(target_arch = "x86_64")]
fn older(number: i64, a: &Arguments<'_>) -> Option<Request> {
    let create = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    Some(match number {
        libc::SYS_open => Request::Open(a.here(0), a.int(1), a.word(2)),
        libc::SYS_creat => Request::Open(a.here(0), create, a.word(1)),
        libc::SYS_mkdir => Request::MakeFolder(a.here(0), a.word(1)),
        libc::SYS_mknod => Request::MakeNode(a.here(0), a.word(1), a.0[2]),
        libc::SYS_rmdir => Request::Remove(a.here(0), true),
        libc::SYS_unlink => Request::Remove(a.here(0), false),
        libc::SYS_rename => Request::Rename(a.here(0), a.here(1), 0),
        libc::SYS_link => Request::Link(a.here(0), a.here(1), 0),
        libc::SYS_symlink => Request::Symlink(a.0[0], a.here(1)),
        libc::SYS_chmod => Request::Mode(Subject::At(a.here(0), true), a.word(1)),
        libc::SYS_chown => Request::Owner(Subject::At(a.here(0), true), a.word(1), a.word(2)),
        libc::SYS_lchown => Request::Owner(Subject::At(a.here(0), false), a.word(1), a.word(2)),
        libc::SYS_utime => Request::SetTimes(Subject::At(a.here(0), true), Times::Seconds(a.0[1])),
        libc::SYS_utimes => Request::SetTimes(Subject::At(a.here(0), true), Times::Microseconds(a.0[1])),
        libc::SYS_futimesat => {
            let subject =
                if a.0[1] == 0 { Subject::Descriptor(a.int(0)) } else { Subject::At(a.place(0), true) };
            Request::SetTimes(subject, Times::Microseconds(a.0[2]))
        }
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn older(_: i64, _: &Arguments<'_>) -> Option<Request> {
    None
}

struct Arguments<'a>(&'a [u64; 6]);

impl Arguments<'_> {
    /// The lower half: the kernel reads these arguments as 32 bits.
    fn word(&self, place: usize) -> u32 {
        u32::try_from(self.0[place] & u64::from(u32::MAX)).unwrap_or(0)
    }

    fn int(&self, place: usize) -> i32 {
        self.word(place).cast_signed()
    }

    /// A folder and a path behind it.
    fn place(&self, place: usize) -> Place {
        Place { folder: self.int(place), path: self.0[place + 1] }
    }

    /// A path that starts at the caller's working directory.
    fn here(&self, place: usize) -> Place {
        Place { folder: libc::AT_FDCWD, path: self.0[place] }
    }

    /// A folder and a path, with flags elsewhere.
    fn subject(&self, place: usize, flags: usize) -> Subject {
        Subject::At(self.place(place), self.int(flags) & libc::AT_SYMLINK_NOFOLLOW == 0)
    }
}
