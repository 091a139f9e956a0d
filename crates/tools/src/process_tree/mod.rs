//! A program and everything it starts, as one thing that ends whole: with its call, with its session, with our death.
//!
//! On Linux a supervisor stands between us and the program and holds on to whatever the program starts; a confined
//! program also has a PID namespace, which the kernel ends with its first process. Elsewhere it is the process group.

#[cfg(target_os = "linux")]
mod adopted;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(not(target_os = "linux"))]
mod group;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod supervised;
#[cfg(target_os = "linux")]
mod supervisor;

use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use adopted::{forget, remember, starting};
#[cfg(not(target_os = "linux"))]
pub(crate) use group::{Launch, Leash, ProcessTree};
#[cfg(target_os = "linux")]
pub(crate) use launch::Launch;
#[cfg(target_os = "linux")]
pub(crate) use supervised::{Leash, ProcessTree};

/// How long processes may take to end when they are asked to.
pub(crate) const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// Declares that every process below this one was started by the tools, so that none of them may outlive its call. For
/// programs of our own; a host that starts other processes must not call it.
pub fn own_process_tree() {
    #[cfg(target_os = "linux")]
    adopted::own();
}

/// What ends the processes of an ordinary command here, for people.
pub(crate) const CONTAINMENT: &str =
    if cfg!(target_os = "linux") { "supervisor (child subreaper)" } else { "process group" };
