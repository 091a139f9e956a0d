//! The watchdog: a small process that outlives ours by a moment, also when we are killed without a word.
//!
//! Supervisors end their own processes when we die. The watchdog waits for them, and then ends what carries our mark: what a
//! supervisor held on to that was killed just before us. It holds one end of a connection and nothing else, so it learns
//! of our death from the kernel. One that was killed is replaced with the next command. While we hold a terminal the watchdog
//! holds it too, and gives it back when we die without having done so.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags};

use rustix::process::Pid;

use crate::tree::escaped;
use crate::tree::terminal::{self, HeldTerminal};

/// The most programs that run at one time and are waited for.
const MOST_GROUPS: usize = 256;
/// How often the watchdog looks whether a supervisor has ended, and how often at most.
#[cfg(target_os = "linux")]
const LOOKS: (i64, u32) = (10_000_000, 1_000);

/// Takes a process off the list when it is dropped. It puts itself on the list, before it can do anything else.
#[derive(Debug)]
pub(crate) struct Watched(Pid);

impl Watched {
    pub(crate) fn new(group: Pid) -> Self {
        Self(group)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = *current {
            // Without a watchdog the supervisor still ends everything.
            send_number(connection, -self.0.as_raw_pid());
        }
    }
}

/// The connection to the watchdog that lives. Replaced ones are never closed: a child may be about to use one.
static CURRENT: Mutex<Option<&'static UnixStream>> = Mutex::new(None);

/// Puts a number on the watchdog's list, or takes it off when it is negative. A watchdog that is gone does not matter. Makes one
/// system call, so that a child may use it before it executes a program.
pub(crate) fn send_number(connection: &UnixStream, number: i32) {
    let word = number.to_ne_bytes();
    // SAFETY: sends a local. A signal for a connection that is gone would end the child.
    unsafe { libc::send(connection.as_raw_fd(), word.as_ptr().cast(), word.len(), NO_SIGNAL) };
}

#[cfg(target_os = "linux")]
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: i32 = 0;

/// Where a process reports its own number to be watched. Starts a watchdog if needed.
pub(crate) fn connection() -> Option<&'static UnixStream> {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if !current.is_some_and(is_alive) {
        *current = start().map(|connection| &*Box::leak(Box::new(connection)));
    }
    *current
}

/// Starts another watchdog, which knows the terminal that is held now.
pub(crate) fn replace() {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    *current = start().map(|connection| &*Box::leak(Box::new(connection)));
}

/// Says a word about the terminal to the watchdog that lives, if there is one.
pub(crate) fn send_terminal_state(word: i32) {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(connection) = *current {
        send_number(connection, word);
    }
}

fn is_alive(connection: &'static UnixStream) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().is_empty()
}

fn start() -> Option<UnixStream> {
    let (writer, reader) = UnixStream::pair().ok()?;
    let reader = OwnedFd::from(reader);
    // Made before the fork: the child may not allocate.
    let mark = format!("{}={}", escaped::VARIABLE, escaped::mark_of_process());
    let held = terminal::held();
    #[cfg(target_os = "linux")]
    let _starting = crate::tree::starting();
    // SAFETY: the child calls only functions that are safe after a fork in a program with threads: system calls on
    // descriptors and numbers it owns, no allocation, no lock, and it never returns.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            // SAFETY: as above.
            unsafe { watch(&reader, mark.as_bytes(), held.as_ref()) }
        }
        pid => {
            #[cfg(target_os = "linux")]
            if let Some(pid) = Pid::from_raw(pid) {
                crate::tree::remember(pid);
            }
            #[cfg(not(target_os = "linux"))]
            let _ = pid;
            Some(writer)
        }
    }
}

/// The whole life of the watchdog.
///
/// # Safety
/// Must be called in a fresh child process only.
unsafe fn watch(reader: &OwnedFd, mark: &[u8], held: Option<&HeldTerminal>) -> ! {
    let mut groups = [0_i32; MOST_GROUPS];
    let mut state = terminal::State::new(held);
    // SAFETY: plain system calls; every pointer is to a live local.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR2] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Everything but the pipe and the terminal is closed: our lock, and the streams whose end others wait for.
        let first = state.keep(reader.as_raw_fd());
        for descriptor in first..descriptor_limit(first) {
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
            if state.take(word) {
                continue;
            }
            let (from, to) = if word > 0 { (0, word) } else { (-word, 0) };
            if let Some(place) = groups.iter_mut().find(|group| **group == from) {
                *place = to;
            }
        }
        // At once: the person has the terminal before anything else is looked after.
        state.give_back();
        for group in groups {
            if group > 1 {
                outlive(group);
            }
        }
        // What a killed process leaves behind may still be starting others; the second look finds those.
        for _ in 0..2 {
            kill_marked(mark);
        }
        libc::_exit(0)
    }
}

/// Waits until a supervisor has ended, which kills what it holds on to as soon as we are gone.
///
/// # Safety
/// Must be called in the watchdog only.
#[cfg(target_os = "linux")]
unsafe fn outlive(supervisor: i32) {
    let (pause, looks) = LOOKS;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: pause };
    // SAFETY: plain system calls on locals.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, supervisor, 0);
        let Ok(process @ 0..) = i32::try_from(process) else { return };
        let mut polled = libc::pollfd { fd: process, events: libc::POLLIN, revents: 0 };
        for _ in 0..looks {
            // A stopped one hears nothing.
            libc::kill(supervisor, libc::SIGCONT);
            if libc::poll(&raw mut polled, 1, 0) != 0 {
                break;
            }
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        libc::close(process);
    }
}

/// Without supervisors there are only the groups.
///
/// # Safety
/// Must be called in the watchdog only.
#[cfg(not(target_os = "linux"))]
unsafe fn outlive(group: i32) {
    // SAFETY: sends a signal.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Kills every process whose environment holds `mark`, with system calls alone.
///
/// # Safety
/// Must be called in the watchdog only: it uses descriptors that no other process has.
#[cfg(target_os = "linux")]
unsafe fn kill_marked(mark: &[u8]) {
    let mut entries = [0_u8; 8192];
    // SAFETY: plain system calls on buffers that live here; the kernel bounds what it writes by their sizes.
    unsafe {
        let list = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        if list < 0 {
            return;
        }
        loop {
            let read = libc::syscall(libc::SYS_getdents64, list, entries.as_mut_ptr(), entries.len());
            let Ok(read @ 1..) = usize::try_from(read) else { break };
            let mut at = 0;
            // Each entry: inode (8), offset (8), length (2), type (1), then the name with a final zero.
            while let Some(length) = entries.get(at + 16..at + 18) {
                let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
                if at >= read || length < 19 {
                    break;
                }
                let name = entries.get(at + 19..at + length).unwrap_or_default();
                kill_if_marked(list, name, mark);
                at += length;
            }
        }
        libc::close(list);
    }
}

/// Only Linux shows the environment of other processes this way.
///
/// # Safety
/// None is needed; the signature is that of the other systems.
#[cfg(not(target_os = "linux"))]
unsafe fn kill_marked(_mark: &[u8]) {}

/// Kills the process whose folder in the process list is `name` if it is marked.
///
/// # Safety
/// As [`kill_marked`].
#[cfg(target_os = "linux")]
unsafe fn kill_if_marked(list: i32, name: &[u8], mark: &[u8]) {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 10 || name.get(digits) != Some(&0) {
        return;
    }
    let pid = name[..digits]
        .iter()
        .fold(0_i32, |pid, digit| pid.wrapping_mul(10).wrapping_add(i32::from(*digit - b'0')));
    let mut path = [0_u8; 24];
    path[..digits].copy_from_slice(&name[..digits]);
    path[digits..digits + 8].copy_from_slice(b"/environ");
    let mut environment = [0_u8; 128 * 1024];
    // SAFETY: the path ends with a zero; the buffer bounds what is read.
    unsafe {
        let file = libc::openat(list, path.as_ptr().cast(), libc::O_RDONLY);
        if file < 0 {
            return;
        }
        let read = libc::read(file, environment.as_mut_ptr().cast(), environment.len());
        libc::close(file);
        let read = usize::try_from(read).unwrap_or(0);
        if pid > 1 && environment[..read].windows(mark.len()).any(|window| window == mark) {
            libc::kill(pid, libc::SIGKILL);
        }
    }
}

/// One more than the highest descriptor from `first` on that may be open; bounded, because closing is one call each.
fn descriptor_limit(first: i32) -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: closes descriptors of this fresh child only.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } == 0 {
        return first;
    }
    4096
}
