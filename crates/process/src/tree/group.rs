//! A program with its process group, for systems without child subreapers: what leaves the group is not found.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::process::Child;

use super::TERMINATION_GRACE;
use crate::tree::signal_group;
use crate::tree::watchdog::{self, Watched};

/// How often a group that shall end is looked at.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// A start that is prepared.
#[derive(Debug)]
pub struct Launch;

/// What the fresh child process has.
#[derive(Debug)]
pub struct ChildEnd(Option<&'static std::os::unix::net::UnixStream>);

impl Launch {
    /// Prepares a start.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Gives the child's part away.
    pub fn split(self) -> ((), ChildEnd) {
        ((), ChildEnd(watchdog::connection()))
    }
}

impl ChildEnd {
    /// Gives the process a session of its own and puts it on the watchdog's list.
    ///
    /// # Safety
    /// Only in a child process between fork and exec.
    pub unsafe fn enter(&mut self) -> io::Result<()> {
        rustix::process::setsid()?;
        if let Some(watchdog) = self.0 {
            watchdog::send_number(watchdog, rustix::process::getpid().as_raw_pid());
        }
        Ok(())
    }
}

/// What a program is held by.
#[derive(Debug)]
pub struct Leash(Pid);

impl Leash {
    /// Kills the group.
    pub fn kill(&self) {
        signal_group(self.0, Signal::KILL);
    }
}

/// A running program with its group.
#[derive(Debug)]
pub struct ProcessTree {
    /// The program.
    pub child: Child,
    leash: Arc<Leash>,
    over: bool,
    left: bool,
    _watched: Watched,
}

impl ProcessTree {
    /// The tree of a program that was started.
    pub fn new(child: Child, (): (), _mark: String) -> io::Result<Self> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the started process has no id"))?;
        let leash = Arc::new(Leash(pid));
        Ok(Self { child, leash, over: false, left: false, _watched: Watched::new(pid) })
    }

    /// What kills it at once.
    pub fn leash(&self) -> Arc<Leash> {
        Arc::clone(&self.leash)
    }

    /// Waits until the program itself has ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the group: asks, waits two seconds, kills. Returns how the program ended.
    pub async fn terminate(&mut self) -> io::Result<ExitStatus> {
        let group = self.leash.0;
        signal_group(group, Signal::TERM);
        let ended = async {
            let status = self.child.wait().await;
            while exists(group) {
                tokio::time::sleep(GROUP_POLL).await;
            }
            status
        };
        let status = match tokio::time::timeout(TERMINATION_GRACE, ended).await {
            Ok(status) => status,
            Err(_) => {
                signal_group(group, Signal::KILL);
                // A killed process ends at once, unless it is stuck inside the kernel: then waiting for it is useless.
                let killed = tokio::time::timeout(TERMINATION_GRACE, self.child.wait()).await;
                killed.unwrap_or_else(|_| Err(io::Error::other("the killed process does not end")))
            }
        };
        self.over = true;
        status
    }

    /// Ends what the program left in its group; true when there was something.
    pub async fn end_leftovers(&mut self) -> bool {
        if !self.over && exists(self.leash.0) {
            self.left = true;
            drop(self.terminate().await);
        }
        self.over = true;
        self.left
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.over {
            self.leash.kill();
        }
    }
}

fn exists(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}
