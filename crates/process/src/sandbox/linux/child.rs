//! What the child process does to itself between fork and exec: namespaces, mounts, capabilities, Landlock, filters.
//!
//! Everything it needs was made before the fork. It makes system calls and nothing else: no allocation, no lock, no
//! library function that could take one. The step that failed goes to the parent over a pipe.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null;

use super::notify;
use super::seccomp::Filters;
use super::steps::Step;
use crate::sandbox::network::doors::{Net, send};

/// Stages that come before and after the numbered steps, as the parent reads them.
pub(crate) const STEPS: u32 = 1000;
pub(crate) const STAGES: [&str; 10] = [
    "closing descriptors",
    "creating namespaces",
    "mapping the user",
    "making mounts private",
    "setting up the network",
    "dropping capabilities",
    "allowing the terminals",
    "applying Landlock",
    "filtering system calls",
    "holding changes of files for the broker",
];

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

/// `struct landlock_path_beneath_attr` of the kernel.
#[repr(C, packed)]
struct Beneath {
    access: u64,
    parent: i32,
}

/// What of the namespaces is used.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) flags: i32,
    pub(crate) user_map: CString,
    pub(crate) group_map: CString,
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: Vec<RawFd>,
}

/// Everything the child needs.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) net: Option<Net>,
    pub(crate) ruleset: OwnedFd,
    pub(crate) terminal_access: u64,
    pub(crate) filters: &'static Filters,
    pub(crate) status: OwnedFd,
    /// Where the descriptor goes at which the broker gets the calls that change files.
    pub(crate) broker: Option<OwnedFd>,
}

type Failure = (u32, io::Error);

impl Child {
    /// Confines this process for good.
    ///
    /// # Safety
    /// Only in a child process between fork and exec: it closes, mounts and forbids without looking back.
    pub(crate) unsafe fn apply(&mut self) -> io::Result<()> {
        // SAFETY: the caller's.
        unsafe {
            self.enter_namespaces()?;
            self.confine_inside()?;
            self.filter_calls()
        }
    }

    /// Whether the namespaces include one for processes, which begins with the next fork.
    pub(crate) fn has_process_namespace(&self) -> bool {
        self.namespaces.as_ref().is_some_and(|namespaces| namespaces.flags & libc::CLONE_NEWPID != 0)
    }

    /// First part: closes what was left open and enters the namespaces.
    ///
    /// # Safety
    /// As [`Self::apply`].
    pub(crate) unsafe fn enter_namespaces(&mut self) -> io::Result<()> {
        // SAFETY: direct system calls on numbers and on memory that this struct owns, here and below.
        let entered = unsafe {
            // What a caller left open could lead around every mount.
            let closed = libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            stage(0, closed)
                .and_then(|()| stage(1, libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into()))
                .and_then(|()| match &self.namespaces {
                    Some(namespaces) => namespaces.enter(),
                    None => Ok(()),
                })
        };
        self.reported(entered)
    }

    /// Second part: what the namespaces show, and the rights that are given up. With a PID namespace, in its first
    /// process.
    ///
    /// # Safety
    /// As [`Self::apply`].
    pub(crate) unsafe fn confine_inside(&mut self) -> io::Result<()> {
        // SAFETY: as in `enter_namespaces`.
        let confined = unsafe { self.set_up_and_drop() };
        self.reported(confined)
    }

    unsafe fn set_up_and_drop(&mut self) -> Result<(), Failure> {
        // SAFETY: as in `enter_namespaces`.
        unsafe {
            if let Some(namespaces) = &mut self.namespaces {
                namespaces.set_up()?;
                if let Some(net) = &self.net {
                    stage(4, net.start().into())?;
                }
                if namespaces.has_terminals() {
                    stage(6, allow_terminals(self.ruleset.as_raw_fd(), self.terminal_access))?;
                }
                if namespaces.flags & libc::CLONE_NEWPID != 0 {
                    // The first process stays, and nothing that it supervises may look into it.
                    stage(1, libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0).into())?;
                }
            }
            stage(5, drop_capabilities())?;
            let restricted = libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0);
            stage(7, restricted)
        }
    }

    /// Last part: the filters, which hold for what is executed and everything it starts.
    ///
    /// # Safety
    /// As [`Self::apply`].
    pub(crate) unsafe fn filter_calls(&mut self) -> io::Result<()> {
        let mut filtered = Ok(());
        for program in &self.filters.0 {
            let program = libc::sock_fprog {
                len: u16::try_from(program.len()).unwrap_or(0),
                filter: program.as_ptr().cast_mut().cast(),
            };
            // SAFETY: as in `enter_namespaces`.
            let installed = unsafe {
                libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
            };
            filtered = filtered.and_then(|()| stage(8, installed));
        }
        if let Some(broker) = &self.broker {
            // Built before the fork: this only takes it.
            let program = notify::program();
            // SAFETY: as in `enter_namespaces`; the broker is started before anything answers to the command.
            let sent = unsafe {
                match RawFd::try_from(notify::install(program)) {
                    Ok(calls @ 0..) => {
                        let sent = send(broker.as_raw_fd(), calls);
                        libc::close(calls);
                        sent
                    }
                    Ok(_) | Err(_) => -1,
                }
            };
            filtered = filtered.and_then(|()| stage(9, i64::try_from(sent).unwrap_or(-1)));
        }
        self.reported(filtered)
    }

    /// Reports to the parent which stage failed.
    fn reported(&self, result: Result<(), Failure>) -> io::Result<()> {
        result.map_err(|(stage, error)| {
            let bytes = stage.to_ne_bytes();
            // SAFETY: writes a local buffer to a descriptor that this process owns.
            unsafe { libc::write(self.status.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
            error
        })
    }
}

impl Namespaces {
    unsafe fn enter(&self) -> Result<(), Failure> {
        // SAFETY: as in `Child::enter_namespaces`.
        unsafe {
            // The maps belong to root while the process is protected from being looked into. What is executed after
            // this is not protected anyway.
            stage(1, libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0).into())?;
            stage(1, libc::unshare(self.flags).into())?;
            stage(2, write_file(c"/proc/self/setgroups", c"deny"))?;
            stage(2, write_file(c"/proc/self/uid_map", &self.user_map))?;
            stage(2, write_file(c"/proc/self/gid_map", &self.group_map))
        }
    }

    unsafe fn set_up(&mut self) -> Result<(), Failure> {
        // SAFETY: as in `Child::enter_namespaces`.
        unsafe {
            let private = libc::mount(null(), c"/".as_ptr(), null(), libc::MS_REC | libc::MS_PRIVATE, null());
            stage(3, private.into())?;
            for (number, step) in (STEPS..).zip(&self.steps) {
                stage(number, take(step, &mut self.slots))?;
            }
        }
        Ok(())
    }

    fn has_terminals(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Terminals { .. }))
    }
}

fn stage(number: u32, result: i64) -> Result<(), Failure> {
    if result < 0 { Err((number, io::Error::last_os_error())) } else { Ok(()) }
}

fn is_error(number: i32) -> bool {
    io::Error::last_os_error().raw_os_error() == Some(number)
}

unsafe fn take(step: &Step, slots: &mut [RawFd]) -> i64 {
    // SAFETY: as in `Child::enter_namespaces`; the strings are owned by the step.
    unsafe {
        match step {
            Step::Take { source, slot, attributes, may_be_gone } => {
                let flags = 1 | libc::O_CLOEXEC | libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW;
                let tree = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags);
                if tree < 0 {
                    return if *may_be_gone && is_error(libc::ENOENT) { 0 } else { tree };
                }
                let Ok(tree) = RawFd::try_from(tree) else { return -1 };
                if let Some(place) = slots.get_mut(*slot) {
                    *place = tree;
                }
                let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
                give_attributes(tree, c"", flags, *attributes)
            }
            Step::Put { slot, target } => {
                let tree = slots.get(*slot).copied().unwrap_or(-1);
                if tree < 0 {
                    return 0;
                }
                let moved = libc::syscall(
                    libc::SYS_move_mount,
                    tree,
                    c"".as_ptr(),
                    libc::AT_FDCWD,
                    target.as_ptr(),
                    4,
                );
                if moved == 0 {
                    libc::close(tree);
                }
                moved
            }
            Step::Seal { target, attributes, below } => {
                let flags = if *below { libc::AT_RECURSIVE } else { 0 };
                give_attributes(libc::AT_FDCWD, target, flags, *attributes)
            }
            Step::Memory { target, options } => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV;
                let kind = c"tmpfs".as_ptr();
                libc::mount(kind, target.as_ptr(), kind, flags, options.as_ptr().cast()).into()
            }
            Step::Terminals { target } => {
                let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
                let options = c"newinstance,ptmxmode=0666,mode=620".as_ptr();
                let kind = c"devpts".as_ptr();
                libc::mount(kind, target.as_ptr(), kind, flags, options.cast()).into()
            }
            Step::Processes { target } => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
                let kind = c"proc".as_ptr();
                libc::mount(kind, target.as_ptr(), kind, flags, null()).into()
            }
            Step::Folder { path } => unless_there(libc::mkdir(path.as_ptr(), 0o755)),
            Step::File { path } => {
                let file =
                    libc::open(path.as_ptr(), libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW, 0o644);
                if file >= 0 {
                    libc::close(file);
                }
                file.into()
            }
            Step::Link { text, path } => unless_there(libc::symlink(text.as_ptr(), path.as_ptr())),
            Step::Enter { path } => libc::chdir(path.as_ptr()).into(),
        }
    }
}

fn unless_there(result: i32) -> i64 {
    if result < 0 && is_error(libc::EEXIST) { 0 } else { result.into() }
}

unsafe fn give_attributes(descriptor: RawFd, path: &CStr, flags: i32, set: u64) -> i64 {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, namespace: 0 };
    // SAFETY: the kernel reads the local struct, whose size is passed.
    unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            descriptor,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    }
}

unsafe fn write_file(path: &CStr, content: &CStr) -> i64 {
    let content = content.to_bytes();
    // SAFETY: both are owned by the caller and live through the calls.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            // Kernels before this file existed need no denial.
            return if is_error(libc::ENOENT) { 0 } else { -1 };
        }
        let written = libc::write(file, content.as_ptr().cast(), content.len());
        if written >= 0 {
            libc::close(file);
        }
        i64::try_from(written).unwrap_or(-1)
    }
}

/// The rule for terminals of the command's own, which exist only here.
unsafe fn allow_terminals(ruleset: RawFd, access: u64) -> i64 {
    // SAFETY: the kernel reads the local struct.
    unsafe {
        let parent = libc::open(c"/dev/pts".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if parent < 0 {
            return -1;
        }
        let rule = Beneath { access, parent };
        let added = libc::syscall(libc::SYS_landlock_add_rule, ruleset, 1, &raw const rule, 0);
        if added == 0 {
            libc::close(parent);
        }
        added
    }
}

/// Empties every set of capabilities and sees to it that being user 0 fills none.
unsafe fn drop_capabilities() -> i64 {
    // SAFETY: the kernel reads two local structs of the sizes it expects.
    unsafe {
        for capability in 0..64 {
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                // Past the last one, or a process that has no right to drop: without new privileges it gains none.
                break;
            }
        }
        libc::prctl(libc::PR_SET_SECUREBITS, 0b1110_1111, 0, 0, 0);
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let header = [0x2008_0522_u32, 0];
        let none = [0_u32; 6];
        libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr())
    }
}
