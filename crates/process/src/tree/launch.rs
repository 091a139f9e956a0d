//! Starting a program below a supervisor: what happens in the fresh child process before the program is executed.
//!
//! The child becomes the supervisor and forks the program; with a PID namespace there is a first process between them.
//! Each of them continues from the same point, and only the last one returns and executes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::supervisor::{Reach, supervise};
use crate::tree::watchdog;

/// Confines the fresh child process. What a supervisor has to do between the steps decides their order.
pub(crate) trait Confines {
    /// Confines this process for good.
    ///
    /// # Safety
    /// Only in a child process between fork and exec.
    unsafe fn apply(&mut self) -> io::Result<()>;
    /// Whether the process gets a PID namespace.
    fn has_process_namespace(&self) -> bool;
    /// Enters the namespaces; the PID namespace begins with the next fork.
    ///
    /// # Safety
    /// As [`Self::apply`].
    unsafe fn enter_namespaces(&mut self) -> io::Result<()>;
    /// Sets up what the namespaces show and takes rights away, in the first process of the PID namespace.
    ///
    /// # Safety
    /// As [`Self::apply`].
    unsafe fn confine_inside(&mut self) -> io::Result<()>;
    /// Filters system calls.
    ///
    /// # Safety
    /// As [`Self::apply`].
    unsafe fn filter_calls(&mut self) -> io::Result<()>;
}

/// Both ends of the connection between us and the supervisor that is to come.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) ours: UnixStream,
    theirs: OwnedFd,
}

impl Launch {
    /// Prepares a start.
    pub(crate) fn new() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Self { ours, theirs: theirs.into() })
    }

    /// Gives the child's part away, to be moved into what runs between fork and exec.
    pub(crate) fn split(self) -> (UnixStream, ChildEnd) {
        (self.ours, ChildEnd { connection: self.theirs, watchdog: watchdog::connection() })
    }
}

/// What the fresh child process has.
#[derive(Debug)]
pub(crate) struct ChildEnd {
    connection: OwnedFd,
    watchdog: Option<&'static UnixStream>,
}

impl ChildEnd {
    /// Makes this process the supervisor of the one that returns from here, which has a session of its own and is
    /// confined when it is to be.
    ///
    /// # Safety
    /// Only in a child process between fork and exec: it makes system calls alone.
    pub(crate) unsafe fn enter(&mut self, confined: Option<&mut dyn Confines>) -> io::Result<()> {
        // SAFETY: direct system calls, here and below.
        unsafe {
            rustix::process::setsid()?;
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            if let Some(watchdog) = self.watchdog {
                watchdog::send_number(watchdog, rustix::process::getpid().as_raw_pid());
            }
            match confined {
                Some(confined) if confined.has_process_namespace() => {
                    confined.enter_namespaces()?;
                    self.fork(Reach::FirstProcess)?;
                    confined.confine_inside()?;
                    self.fork(Reach::Namespace)?;
                    confined.filter_calls()
                }
                Some(confined) => {
                    self.fork(Reach::Descendants)?;
                    confined.apply()
                }
                None => self.fork(Reach::Descendants),
            }
        }
    }

    /// Returns in a new process that dies with this one, which supervises it from now on.
    unsafe fn fork(&self, reach: Reach) -> io::Result<()> {
        // SAFETY: the child of a fork of a program with threads makes system calls alone, and so does the parent.
        unsafe {
            match libc::fork() {
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                program => supervise(&self.connection, program, reach),
            }
            // The first process of a namespace cannot see its parent; when that died before this, the connection says so.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            rustix::process::setsid()?;
        }
        Ok(())
    }
}
