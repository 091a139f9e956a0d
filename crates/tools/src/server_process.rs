//! A child process that lives as long as the session and speaks on its pipes, such as an MCP server. It has its own session
//! and process group, stands on the guard's list before it can do anything, and ends with everything it started: when it is
//! told to, when its owner lets go of it, and when this process is killed without a word.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::escaped;
use crate::guard::{self, Guarded};
use crate::process::{GROUP_POLL, TERMINATION_GRACE, die_with_parent, group_exists, signal_group};

/// A running server with its process group.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    group: Pid,
    mark: String,
    armed: bool,
    _guarded: Guarded,
}

impl ServerProcess {
    /// Starts the program that `command` describes; its environment and its pipes are the caller's affair.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mark = escaped::new_mark();
        command.env(escaped::VARIABLE, &mark);
        let parent = rustix::process::getpid();
        let guard = guard::pipe();
        // SAFETY: the closure runs in the child between fork and exec. It makes only direct system calls, allocates
        // nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                match guard {
                    Some(guard) => {
                        let own = rustix::process::getpid().as_raw_pid();
                        rustix::io::write(guard, &own.to_ne_bytes()).map(drop)?;
                        Ok(())
                    }
                    // The signal comes with the end of the thread that started the child, which may be long before ours:
                    // only where there is no guard is that better than nothing.
                    None => die_with_parent(parent),
                }
            });
        }
        let child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the started process has no id"))?;
        escaped::remember(group);
        Ok(Self { child, group, mark, armed: true, _guarded: Guarded::new(group) })
    }

    /// Its input, once.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its output, once.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its error stream, once.
    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The number of the process, which is that of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the process itself has ended.
    ///
    /// # Errors
    /// When the system does not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends it with everything it started: gives it `patience` to end by itself, asks the group, kills it.
    pub async fn end(&mut self, patience: Duration) {
        // Whether it ended by itself or not: what matters is whether the group is empty.
        let _ = tokio::time::timeout(patience, self.child.wait()).await;
        if group_exists(self.group) {
            signal_group(self.group, Signal::TERM);
            if tokio::time::timeout(TERMINATION_GRACE, self.gone()).await.is_err() {
                signal_group(self.group, Signal::KILL);
                // A killed process ends at once, unless it is stuck inside the kernel: then nobody can wait for it.
                let _ = tokio::time::timeout(TERMINATION_GRACE, self.child.wait()).await;
            }
        }
        escaped::end_marked(&self.mark).await;
        self.armed = false;
    }

    async fn gone(&mut self) {
        // How it ended is of no interest here.
        let _ = self.child.wait().await;
        while group_exists(self.group) {
            tokio::time::sleep(GROUP_POLL).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.armed {
            signal_group(self.group, Signal::KILL);
        }
        escaped::forget(self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn shell(script: &str) -> ServerProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        ServerProcess::start(command).unwrap()
    }

    async fn wait_until_gone(group: Pid) {
        let gone = async {
            while group_exists(group) {
                tokio::time::sleep(GROUP_POLL).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    }

    #[tokio::test]
    async fn the_end_takes_everything_that_was_started() {
        let mut process = shell("sleep 1000 & sleep 1000");
        let group = process.group;
        assert!(group_exists(group));
        process.end(Duration::ZERO).await;
        assert!(!group_exists(group));
    }

    #[tokio::test]
    async fn what_does_not_listen_is_killed() {
        let mut process = shell("trap '' TERM; while :; do sleep 1; done");
        let group = process.group;
        process.end(Duration::ZERO).await;
        wait_until_gone(group).await;
    }

    #[tokio::test]
    async fn letting_go_ends_the_group() {
        let process = shell("sleep 1000 & sleep 1000");
        let group = process.group;
        drop(process);
        wait_until_gone(group).await;
    }
}
