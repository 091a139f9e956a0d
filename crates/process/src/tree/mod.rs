//! A program and everything it starts, as one thing that ends whole: with its call, with its session, with our death.
//!
//! On Linux a supervisor runs between us and the program and adopts whatever the program starts; a confined
//! program also has a PID namespace, which the kernel ends with its first process. Elsewhere it is the process group.

#[cfg(target_os = "linux")]
mod adopted;
#[cfg(target_os = "linux")]
mod descendants;
pub(crate) mod escaped;
#[cfg(not(target_os = "linux"))]
mod group;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod supervised;
#[cfg(target_os = "linux")]
mod supervisor;
pub(crate) mod terminal;
pub(crate) mod watchdog;

use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};

#[cfg(target_os = "linux")]
pub(crate) use adopted::{forget, remember, starting};
#[cfg(not(target_os = "linux"))]
pub(crate) use group::Launch;
#[cfg(not(target_os = "linux"))]
pub use group::{Leash, ProcessTree};
#[cfg(target_os = "linux")]
pub(crate) use launch::{Confines, Launch};
#[cfg(target_os = "linux")]
pub use supervised::{Leash, ProcessTree};

pub use terminal::{hold_terminal, set_terminal_overlay, set_terminal_taken};

/// How long processes may take to end when they are asked to.
pub const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// Declares that every process below this one was started by the tools, so that none of them may outlive its call. For
/// programs of our own; a host that starts other processes must not call it.
pub fn own_process_tree() {
    #[cfg(target_os = "linux")]
    adopted::own();
}

/// What ends the processes of an ordinary command here, for people.
pub(crate) const CONTAINMENT: &str =
    if cfg!(target_os = "linux") { "supervisor (child subreaper)" } else { "process group" };

/// Sends a signal to a whole group; a group that is gone already is what was wanted.
pub fn signal_group(group: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(group, signal);
}

/// The exit code as a shell reports it: 128 and the number of the signal for a process that was killed.
#[must_use]
pub fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
