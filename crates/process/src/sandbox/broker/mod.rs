//! The broker: a thread that performs, in the place of confined processes, the system calls by which files are made,
//! changed, moved and removed.
//!
//! The kernel holds such a call until the broker answers it. The broker reads the path, finds the object, judges its real
//! path, and makes the change itself on what it holds. It never lets the kernel continue with a path in memory that another
//! thread could exchange. It has no more rights than the command has.

mod caller;
mod judge;
mod operations;
mod request;
mod walk;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;

use caller::Caller;
use operations::{Done, Operation};

pub(crate) use judge::Judge;
pub(crate) use request::numbers;

/// How often a named pipe without a reader is tried again.
const PIPE_POLL: Duration = Duration::from_millis(2);

/// A broker at work; ends when dropped, or when no confined process is left.
#[derive(Debug)]
pub(crate) struct Broker {
    stop: OwnedFd,
}

struct Listener {
    calls: OwnedFd,
    judge: Judge,
    /// What the processes see as the root; none of them can change that.
    root: OnceLock<OwnedFd>,
}

impl Broker {
    /// Starts a broker for the processes behind `calls`.
    pub(crate) fn start(calls: OwnedFd, judge: Judge) -> io::Result<Self> {
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let listener = Arc::new(Listener { calls, judge, root: OnceLock::new() });
        std::thread::Builder::new().name("sandbox-files".to_owned()).spawn(move || {
            if give_up_rights().is_ok() {
                listener.serve(&stopped);
            }
        })?;
        Ok(Self { stop })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The thread also ends with the last confined process.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

/// Gives this thread a mask of its own and takes away what the confined processes do not have.
fn give_up_rights() -> io::Result<()> {
    let header = [0x2008_0522_u32, 0];
    let none = [0_u32; 6];
    // SAFETY: both calls concern this thread alone; the kernel reads two structures of the sizes it expects.
    unsafe {
        if libc::unshare(libc::CLONE_FS) < 0
            || libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

impl Listener {
    fn serve(self: Arc<Self>, stopped: &OwnedFd) {
        self.keep_together();
        loop {
            let mut polled = [PollFd::new(&self.calls, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let (calls, stop) = (polled[0].revents(), polled[1].revents());
            if !stop.is_empty() {
                return;
            }
            if calls.contains(PollFlags::IN) {
                self.take();
            } else if calls.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
        }
    }

    /// Lets caller and broker take turns on one processor, where the kernel can: they never run at the same time.
    fn keep_together(&self) {
        const SYNCHRONOUS: libc::c_ulong = 1;
        // SAFETY: passes a number. Kernels that do not know it refuse it, and nothing changes.
        unsafe { libc::ioctl(self.calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNCHRONOUS) };
    }

    fn take(self: &Arc<Self>) {
        // SAFETY: the structure is plain numbers, and the kernel wants it zeroed.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes the structure whose size the request names.
        let received =
            unsafe { libc::ioctl(self.calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        if received < 0 {
            // The caller was killed meanwhile.
            return;
        }
        match self.perform(&call) {
            Ok(Done::Waiting(entry, flags)) => {
                let listener = Arc::clone(self);
                let id = call.id;
                let waiting = std::thread::Builder::new().name("sandbox-pipe".to_owned());
                let started = waiting.spawn(move || listener.wait_for_reader(id, &entry, flags));
                if started.is_err() {
                    self.answer(call.id, Err(Errno::AGAIN));
                }
            }
            done => self.finish(call.id, done),
        }
    }

    fn perform(&self, call: &libc::seccomp_notif) -> Result<Done, Errno> {
        let caller = Caller(call.pid.cast_signed());
        let request = request::read(call.data.nr.into(), &call.data.args).ok_or(Errno::NOSYS)?;
        let still_waits = || self.still_waits(call.id);
        let root = match self.root.get() {
            Some(root) => root,
            None => {
                let root = caller.root()?;
                if !still_waits() {
                    return Err(Errno::SRCH);
                }
                self.root.get_or_init(|| root)
            }
        };
        Operation { caller, judge: &self.judge, root: root.as_fd(), still_waits: &still_waits }
            .perform(request)
    }

    fn still_waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads the number.
        unsafe { libc::ioctl(self.calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
    }

    fn wait_for_reader(&self, id: u64, entry: &walk::Entry, flags: rustix::fs::OFlags) {
        if give_up_rights().is_err() {
            return self.answer(id, Err(Errno::PERM));
        }
        let close = flags.contains(rustix::fs::OFlags::CLOEXEC);
        while self.still_waits(id) {
            match operations::open_pipe(entry, flags) {
                None => std::thread::sleep(PIPE_POLL),
                Some(opened) => return self.finish(id, opened.map(|file| Done::Descriptor(file, close))),
            }
        }
    }

    fn finish(&self, id: u64, done: Result<Done, Errno>) {
        match done {
            Ok(Done::Descriptor(file, close)) => self.hand_over(id, &file, close),
            Ok(Done::Nothing) => self.answer(id, Ok(())),
            Ok(Done::Waiting(..)) => self.answer(id, Err(Errno::NXIO)),
            Err(error) => self.answer(id, Err(error)),
        }
    }

    /// Gives the caller a descriptor, whose number is the answer.
    fn hand_over(&self, id: u64, file: &OwnedFd, close: bool) {
        let flags = u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).unwrap_or(2);
        let added = libc::seccomp_notif_addfd {
            id,
            flags,
            srcfd: operations::number(file),
            newfd: 0,
            newfd_flags: if close { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        // SAFETY: the kernel reads the structure whose size the request names.
        let given =
            unsafe { libc::ioctl(self.calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) };
        if given < 0 {
            self.answer(id, Err(caller::last_error()));
        }
    }

    fn answer(&self, id: u64, answer: Result<(), Errno>) {
        let error = answer.err().map_or(0, |error| -error.raw_os_error());
        let answer = libc::seccomp_notif_resp { id, val: 0, error, flags: 0 };
        // SAFETY: the kernel reads the structure whose size the request names. A caller that was killed needs none.
        unsafe { libc::ioctl(self.calls.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    }
}
