//! The supervisor: the process between us and a program, which outlives the program until nothing of it is left.
//!
//! It is a child subreaper, so whatever loses its parent becomes its child, however it left its group, its session or its
//! environment. A subreaper without children has no descendants: that is how it knows that everything has ended. It is a
//! fork of this program that never executes another one, so it makes system calls and nothing else.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::descendants::{Scan, kill_children};

/// The one order besides the end of the connection: ask everything to end, then kill it.
pub(crate) const TERMINATE: u8 = b'T';

/// First number of a message: the program ended, with its wait status and whether it left processes behind.
pub(crate) const ENDED: i32 = 1;
/// First number of a message: everything has ended, with whether something had to be ended.
pub(crate) const EMPTY: i32 = 2;
/// The numbers of a message.
pub(crate) const MESSAGE: usize = 3;

/// Milliseconds between asking and killing.
const GRACE: i64 = 2_000;
/// Milliseconds after which what cannot be killed is given up: it belongs to another user or hangs in the kernel.
const PATIENCE: i64 = 5_000;
/// Rounds of killing without a pause. Programs that fork and exit all the time are caught by being quick.
const QUICK_ROUNDS: u32 = 20_000;

const CONNECTION: RawFd = 0;
const CHILDREN_ENDED: RawFd = 1;

/// What the supervisor is responsible for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its descendants.
    Descendants,
    /// Every process of the PID namespace whose first process it is.
    Namespace,
    /// The first process of a PID namespace, which supervises the rest.
    FirstProcess,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Asked to end; killed at this time.
    Asked(i64),
    /// Being killed; given up at this time.
    Killing(i64),
}

struct Supervisor {
    program: i32,
    reach: Reach,
    phase: Phase,
    /// Whether anything had to be ended after the program.
    left: bool,
    program_ended: bool,
    rounds: u32,
}

/// The whole life of a supervisor of `program`.
///
/// # Safety
/// Only in a fresh child process that forked `program`; it closes every descriptor but `connection`.
pub(crate) unsafe fn supervise(connection: &OwnedFd, program: i32, reach: Reach) -> ! {
    // SAFETY: plain system calls on numbers, here and below.
    unsafe {
        let mut every: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut every);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const every, std::ptr::null_mut());
        // An inherited "ignore" would make the kernel collect the program before us.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_NAME, c"qoder-keeper".as_ptr());
        // A folder must not stay busy because of us.
        libc::chdir(c"/".as_ptr());
        libc::dup2(connection.as_raw_fd(), CONNECTION);
        close_others();
        let mut wanted: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGCHLD);
        libc::signalfd(-1, &raw const wanted, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        Supervisor { program, reach, phase: Phase::Running, left: false, program_ended: false, rounds: 0 }
            .run()
    }
}

/// Closes everything but the connection, so that no pipe and no lock stays open because of us.
unsafe fn close_others() {
    // SAFETY: closes descriptors of this process, which uses none of them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, CHILDREN_ENDED, u32::MAX, 0) != 0 {
            for descriptor in CHILDREN_ENDED..4096 {
                libc::close(descriptor);
            }
        }
    }
}

impl Supervisor {
    unsafe fn run(&mut self) -> ! {
        // SAFETY: as in `supervise`; `polled` is a local of the size that is passed.
        unsafe {
            loop {
                self.collect();
                self.advance();
                // The first process of the namespace reads the orders; here only the end of the connection counts.
                let events = if self.reach == Reach::FirstProcess {
                    libc::POLLRDHUP
                } else {
                    libc::POLLIN | libc::POLLRDHUP
                };
                let connection = if matches!(self.phase, Phase::Killing(_)) { -1 } else { CONNECTION };
                let mut polled = [
                    libc::pollfd { fd: connection, events, revents: 0 },
                    libc::pollfd { fd: CHILDREN_ENDED, events: libc::POLLIN, revents: 0 },
                ];
                if libc::poll(polled.as_mut_ptr(), 2, self.pause()) < 0 {
                    continue;
                }
                if polled[1].revents != 0 {
                    let mut information = [0_u8; 1024];
                    libc::read(CHILDREN_ENDED, information.as_mut_ptr().cast(), information.len());
                }
                if polled[0].revents != 0 {
                    self.take_order();
                }
            }
        }
    }

    unsafe fn take_order(&mut self) {
        let mut order = 0_u8;
        // SAFETY: reads one byte into a local.
        unsafe {
            let read = match self.reach {
                Reach::FirstProcess => 0,
                Reach::Descendants | Reach::Namespace => {
                    libc::recv(CONNECTION, (&raw mut order).cast(), 1, libc::MSG_DONTWAIT)
                }
            };
            if read == 1 && order == TERMINATE {
                if self.phase == Phase::Running {
                    self.collect();
                    self.left = self.program_ended;
                    self.ask();
                    self.phase = Phase::Asked(now() + GRACE);
                }
            } else if read == 0 {
                self.phase = Phase::Killing(now() + PATIENCE);
            }
        }
    }

    /// Collects what has ended; leaves when nothing is left.
    unsafe fn collect(&mut self) {
        // SAFETY: the kernel writes one number.
        unsafe {
            loop {
                let mut status = 0;
                let pid = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                if pid == self.program {
                    self.program_ended = true;
                    if self.reach != Reach::FirstProcess {
                        report([ENDED, status, 0]);
                    }
                } else if pid == 0 {
                    return;
                } else if pid < 0 && errno() == libc::ECHILD {
                    if self.reach != Reach::FirstProcess {
                        report([EMPTY, i32::from(self.left), 0]);
                    }
                    libc::_exit(0);
                } else if pid < 0 && errno() != libc::EINTR {
                    return;
                }
            }
        }
    }

    unsafe fn advance(&mut self) {
        // SAFETY: signals go to what this process is responsible for.
        unsafe {
            match self.phase {
                Phase::Asked(deadline) if now() >= deadline => {
                    self.phase = Phase::Killing(now() + PATIENCE);
                    self.advance();
                }
                Phase::Running | Phase::Asked(_) => {}
                Phase::Killing(deadline) => {
                    self.kill();
                    self.rounds = self.rounds.saturating_add(1);
                    self.collect();
                    if now() >= deadline {
                        libc::_exit(1);
                    }
                }
            }
        }
    }

    unsafe fn ask(&self) {
        // SAFETY: as in `advance`.
        unsafe {
            match self.reach {
                Reach::Descendants => {
                    let scan = Scan::of_descendants();
                    scan.signal(libc::SIGTERM);
                    // What is stopped takes the request only after it continues.
                    scan.signal(libc::SIGCONT);
                }
                Reach::Namespace => {
                    libc::kill(-1, libc::SIGTERM);
                    libc::kill(-1, libc::SIGCONT);
                }
                Reach::FirstProcess => {}
            }
        }
    }

    unsafe fn kill(&self) {
        // SAFETY: as in `advance`.
        unsafe {
            match self.reach {
                Reach::Descendants => {
                    // Children first: with a parent gone its children become ours, and the next round finds them.
                    kill_children();
                    if self.rounds.is_multiple_of(64) {
                        Scan::of_descendants().signal(libc::SIGKILL);
                    }
                }
                Reach::Namespace => {
                    libc::kill(-1, libc::SIGKILL);
                }
                // The kernel ends a namespace with its first process.
                Reach::FirstProcess => {
                    libc::kill(self.program, libc::SIGKILL);
                }
            }
        }
    }

    fn pause(&self) -> i32 {
        match self.phase {
            Phase::Running => -1,
            Phase::Asked(deadline) => i32::try_from((deadline - now()).max(0)).unwrap_or(0),
            Phase::Killing(_) if self.rounds < QUICK_ROUNDS => 0,
            Phase::Killing(_) => 5,
        }
    }
}

unsafe fn report(message: [i32; MESSAGE]) {
    // SAFETY: sends a local; there may be no reader.
    unsafe {
        libc::send(
            CONNECTION,
            message.as_ptr().cast(),
            size_of_val(&message),
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        );
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Milliseconds of the clock that never jumps.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
