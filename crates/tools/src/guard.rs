//! The guard: a small process that outlives ours by a moment and ends the process groups we leave behind, also when we
//! are killed without a word. Started with the first command; it holds one end of a pipe and nothing else, so it learns
//! of our death from the kernel.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

use rustix::process::Pid;

/// The most groups that run at one time; further ones still die with their shell.
const MOST_GROUPS: usize = 256;

/// Takes a group off the list when it is dropped. The group puts itself on the list, before it can do anything else.
#[derive(Debug)]
pub(crate) struct Guarded(Pid);

impl Guarded {
    pub(crate) fn new(group: Pid) -> Self {
        Self(group)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(pipe) = pipe() {
            // Without a guard the shell itself still dies with us; only what it started would be left.
            let _ = rustix::io::write(pipe, &(-self.0.as_raw_pid()).to_ne_bytes());
        }
    }
}

/// Where a process writes its own number to be guarded. Starts the guard at the first call.
pub(crate) fn pipe() -> Option<&'static File> {
    static GUARD: OnceLock<Option<File>> = OnceLock::new();
    GUARD.get_or_init(start).as_ref()
}

fn start() -> Option<File> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    // SAFETY: the child calls only functions that are safe after a fork in a program with threads: system calls on
    // descriptors and numbers it owns, no allocation, no lock, and it never returns.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            // SAFETY: as above.
            unsafe { watch(&reader) }
        }
        _ => Some(File::from(writer)),
    }
}

/// The whole life of the guard.
///
/// # Safety
/// Must be called in a fresh child process only.
unsafe fn watch(reader: &OwnedFd) -> ! {
    let mut groups = [0_i32; MOST_GROUPS];
    // SAFETY: plain system calls; every pointer is to a live local.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Everything but the pipe is closed: our lock, and the streams whose end others wait for.
        libc::dup2(reader.as_raw_fd(), 0);
        for descriptor in 1..descriptor_limit() {
            libc::close(descriptor);
        }
        loop {
            let mut word = 0_i32;
            let read = libc::read(0, (&raw mut word).cast(), size_of::<i32>());
            if read == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
                continue;
            }
            if usize::try_from(read) != Ok(size_of::<i32>()) {
                break;
            }
            let (from, to) = if word > 0 { (0, word) } else { (-word, 0) };
            if let Some(place) = groups.iter_mut().find(|group| **group == from) {
                *place = to;
            }
        }
        for group in groups {
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        libc::_exit(0)
    }
}

/// One more than the highest descriptor that may be open; bounded, because closing is one call each.
fn descriptor_limit() -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: closes descriptors of this fresh child only.
    if unsafe { libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) } == 0 {
        return 1;
    }
    4096
}
