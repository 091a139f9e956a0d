//! Our side of a supervised program: waiting for it, ending it with everything it started, and what to do when the
//! supervisor itself was killed.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::Child;

use super::supervisor::{EMPTY, ENDED, MESSAGE, TERMINATE};
use super::{TERMINATION_GRACE, adopted};
use crate::tree::escaped;
use crate::tree::watchdog::Watched;

/// How long the supervisor may take: the time that processes have after they were asked, and what killing takes.
const SUPERVISOR_LIMIT: Duration = Duration::from_millis(2_000 * TERMINATION_GRACE.as_secs() + 1_500);

/// What a program is held by. Closing it kills everything the program started.
#[derive(Debug)]
pub struct Leash(StdUnixStream);

impl Leash {
    /// Kills the program and everything it started, now.
    pub fn kill(&self) {
        // It is over already when the other end is gone.
        let _ = self.0.shutdown(Shutdown::Write);
    }

    fn ask(&self) {
        let order = [TERMINATE];
        // SAFETY: sends a local; there may be no reader.
        unsafe { libc::send(self.0.as_raw_fd(), order.as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running program with everything it started.
#[derive(Debug)]
pub struct ProcessTree {
    /// The supervisor; its pipes are those of the program.
    pub child: Child,
    leash: Arc<Leash>,
    connection: UnixStream,
    message: [u8; MESSAGE * 4],
    filled: usize,
    ended: Option<ExitStatus>,
    left: bool,
    /// Whether the supervisor said that nothing is left.
    empty: bool,
    over: bool,
    pid: Pid,
    mark: String,
    _watched: Watched,
}

impl ProcessTree {
    /// The tree of a supervisor that was started with the other end of `connection`.
    pub fn new(child: Child, connection: StdUnixStream, mark: String) -> io::Result<Self> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the started process has no id"))?;
        adopted::remember(pid);
        let leash = Arc::new(Leash(connection.try_clone()?));
        connection.set_nonblocking(true)?;
        Ok(Self {
            child,
            leash,
            connection: UnixStream::from_std(connection)?,
            message: [0; MESSAGE * 4],
            filled: 0,
            ended: None,
            left: false,
            empty: false,
            over: false,
            pid,
            mark,
            _watched: Watched::new(pid),
        })
    }

    /// What kills it at once.
    pub fn leash(&self) -> Arc<Leash> {
        Arc::clone(&self.leash)
    }

    /// Waits until the program itself has ended. May be dropped at any point and called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended {
                return Ok(status);
            }
            if !self.next_message().await {
                // Only a kill ends a supervisor before its program.
                self.ended = Some(ExitStatus::from_raw(libc::SIGKILL));
            }
        }
    }

    /// Ends the program with everything it started: asks, waits two seconds, kills. Returns how the program ended.
    pub async fn terminate(&mut self) -> io::Result<ExitStatus> {
        self.end().await;
        self.wait().await
    }

    /// Ends what the program left behind; true when there was something.
    pub async fn end_leftovers(&mut self) -> bool {
        if !self.over {
            self.end().await;
        }
        self.left
    }

    async fn end(&mut self) {
        self.leash.ask();
        // A stopped supervisor reads nothing.
        let _ = rustix::process::kill_process(self.pid, Signal::CONT);
        let emptied = async { while self.next_message().await {} };
        let in_time = tokio::time::timeout(SUPERVISOR_LIMIT, emptied).await.is_ok();
        if !(in_time && self.empty) {
            // Killed, or held up: what it held on to is ours now.
            self.left = true;
            self.leash.kill();
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
        // Its end is certain now; a process stuck inside the kernel must not hold us up.
        let _ = tokio::time::timeout(TERMINATION_GRACE, self.child.wait()).await;
        if !self.empty {
            adopted::end().await;
            escaped::end_marked(&self.mark).await;
        }
        if self.ended.is_none() {
            self.ended = Some(ExitStatus::from_raw(libc::SIGKILL));
        }
        self.over = true;
    }

    /// Takes in the next message; false at the end.
    async fn next_message(&mut self) -> bool {
        while self.filled < self.message.len() {
            match self.connection.read(&mut self.message[self.filled..]).await {
                Ok(0) | Err(_) => return false,
                Ok(count) => self.filled += count,
            }
        }
        self.filled = 0;
        let number = |place: usize| {
            let bytes = self.message[place * 4..].first_chunk().copied();
            i32::from_ne_bytes(bytes.unwrap_or_default())
        };
        match number(0) {
            ENDED => self.ended = Some(ExitStatus::from_raw(number(1))),
            EMPTY => {
                self.left |= number(1) != 0;
                self.empty = true;
            }
            _ => {}
        }
        true
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.leash.kill();
        adopted::forget(self.pid);
    }
}
