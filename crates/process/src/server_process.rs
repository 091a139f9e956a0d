//! A child process that lives as long as the session and speaks on its pipes, such as an MCP server. It ends with
//! everything it started: on request, when its owner lets go of it, and when this process is killed without a
//! word.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::sandbox::start::{keep_open, passed_on, program_command};
use crate::sandbox::{Confinement, Running};
#[cfg(target_os = "linux")]
use crate::tree::Confines;
use crate::tree::escaped;
use crate::tree::{Launch, ProcessTree};

/// A running server with everything it started.
#[derive(Debug)]
pub struct ServerProcess {
    tree: ProcessTree,
    /// What a confined process needs; removed after it.
    _running: Option<Running>,
}

impl ServerProcess {
    /// Starts the program that `command` describes; its environment and its pipes are the caller's affair.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(command: Command) -> io::Result<Self> {
        Self::start_in(command, None)
    }

    /// Starts a program confined. `describe` gives it its arguments, its environment and its pipes; what the confinement needs is
    /// added to the environment.
    ///
    /// # Errors
    /// When the program cannot be started or confined.
    pub fn start_confined(
        program: &Path,
        confinement: Confinement,
        describe: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = program_command(program, Some(&confinement));
        describe(&mut command);
        for (name, value) in confinement.environment() {
            command.env(name, value);
        }
        Self::start_in(command, Some(confinement))
    }

    fn start_in(mut command: Command, confinement: Option<Confinement>) -> io::Result<Self> {
        let mark = escaped::new_mark();
        command.env(escaped::VARIABLE, &mark);
        let passed = confinement.as_ref().map(passed_on).unwrap_or_default();
        #[cfg(target_os = "linux")]
        let mut confinement = confinement;
        #[cfg(target_os = "linux")]
        let mut confined = confinement.as_mut().and_then(Confinement::take_child);
        let (connection, mut end) = Launch::new()?.split();
        // SAFETY: the closure runs in the child between fork and exec. It makes only direct system calls, allocates
        // nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                #[cfg(target_os = "linux")]
                end.enter(confined.as_mut().map(|part| part as &mut dyn Confines))?;
                #[cfg(not(target_os = "linux"))]
                end.enter()?;
                keep_open(&passed)
            });
        }
        #[cfg(target_os = "linux")]
        let _starting = crate::tree::starting();
        let child = match (command.spawn(), &confinement) {
            (Ok(child), _) => child,
            (Err(error), Some(confinement)) => return Err(confinement.explain(error)),
            (Err(error), None) => return Err(error),
        };
        let mut process = Self { tree: ProcessTree::new(child, connection, mark)?, _running: None };
        // When this fails the process is dropped, and with that it ends.
        process._running = confinement.map(Confinement::started).transpose()?;
        Ok(process)
    }

    /// Its input, once.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.tree.child.stdin.take()
    }

    /// Its output, once.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.tree.child.stdout.take()
    }

    /// Its error stream, once.
    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.tree.child.stderr.take()
    }

    /// Waits until the process itself has ended.
    ///
    /// # Errors
    /// When the system does not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.tree.wait().await
    }

    /// Ends it with everything it started: gives it `patience` to end by itself, asks, kills.
    pub async fn end(&mut self, patience: Duration) {
        // Whether it ended by itself or not: what matters is that nothing is left.
        let _ = tokio::time::timeout(patience, self.tree.wait()).await;
        self.tree.end_leftovers().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn shell(folder: &Path, script: &str) -> ServerProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        ServerProcess::start(command).unwrap()
    }

    /// The number of a process that wrote it to a file.
    async fn number(folder: &Path) -> String {
        loop {
            match std::fs::read_to_string(folder.join("pid")) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn wait_until_gone(pid: &str) {
        let gone = async {
            while std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    }

    #[tokio::test]
    async fn the_end_takes_everything_that_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000");
        let pid = number(folder.path()).await;
        process.end(Duration::ZERO).await;
        assert!(std::fs::read_to_string(format!("/proc/{pid}/stat")).is_err());
    }

    #[tokio::test]
    async fn what_does_not_listen_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "trap '' TERM; echo $$ > pid; while :; do sleep 1; done");
        let pid = number(folder.path()).await;
        process.end(Duration::ZERO).await;
        wait_until_gone(&pid).await;
    }

    #[tokio::test]
    async fn letting_go_ends_everything() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell(folder.path(), "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000");
        let pid = number(folder.path()).await;
        drop(process);
        wait_until_gone(&pid).await;
    }
}
