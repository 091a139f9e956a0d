//! The program itself: how it is started, what it writes to stderr, and how it is ended. It gets time to finish after
//! its input has closed, then a polite signal, then none.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use super::arguments;
use crate::error::{Error, Result};
use crate::options::{OnStderr, QoderAgentOptions};
use crate::session::PrivateFiles;

/// How long the program may take after each step of ending it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much of stderr is kept.
const KEPT: usize = 64 * 1024;
/// The longest line of stderr that is passed on as one.
const LONGEST_LINE: u64 = 64 * 1024;

/// How far ending it has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    InputClosed,
    AskedToStop,
    Killed,
}

/// A program that runs.
pub(super) struct Program {
    child: Child,
    stderr: Arc<Mutex<String>>,
    hearing: Option<tokio::task::JoinHandle<()>>,
    step: Step,
    since: Instant,
    // Held for its drop, which removes the files.
    _files: PrivateFiles,
}

impl Program {
    pub(super) fn start(options: &QoderAgentOptions) -> Result<Self> {
        let Some(path) = &options.cli_path else { return Err(Error::Closed) };
        let mut command = Command::new(path);
        let mut files = PrivateFiles::default();
        command.args(arguments::arguments(options, &mut files)?);
        arguments::environment(options, &mut command);
        if let Some(cwd) = &options.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| Error::CliNotFound {
            path: path.display().to_string(),
            problem: error.to_string(),
        })?;
        let stderr = Arc::new(Mutex::new(String::new()));
        let hearing = child
            .stderr
            .take()
            .map(|pipe| tokio::spawn(hear(pipe, Arc::clone(&stderr), options.stderr.clone())));
        Ok(Self { child, stderr, hearing, step: Step::Running, since: Instant::now(), _files: files })
    }

    pub(super) fn stdin(&mut self) -> Result<ChildStdin> {
        self.child.stdin.take().ok_or(Error::Closed)
    }

    pub(super) fn stdout(&mut self) -> Result<ChildStdout> {
        self.child.stdout.take().ok_or(Error::Closed)
    }

    /// Its input was closed because the session shall end.
    pub(super) fn begin_end(&mut self) {
        self.step = Step::InputClosed;
        self.since = Instant::now();
    }

    /// When the next step of ending it is due; `None` while the program may run.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.step {
            Step::Running | Step::Killed => None,
            Step::InputClosed => Some(self.since + PATIENCE),
            Step::AskedToStop => Some(self.since + PATIENCE * 2),
        }
    }

    /// Takes the next step of ending it.
    pub(super) fn advance(&mut self) {
        match self.step {
            Step::Running | Step::Killed => {}
            Step::InputClosed => {
                self.step = Step::AskedToStop;
                let id = self.child.id().and_then(|id| i32::try_from(id).ok());
                if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
                    // It may have ended this moment.
                    let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
                }
            }
            Step::AskedToStop => {
                self.step = Step::Killed;
                // It may have ended this moment.
                let _ = self.child.start_kill();
            }
        }
    }

    /// Waits until it is gone. One that has closed its output and stays is ended.
    pub(super) async fn wait(&mut self) -> ExitStatus {
        if self.step == Step::Running {
            self.begin_end();
        }
        loop {
            let deadline = self.deadline();
            tokio::select! {
                // A program that cannot be waited for has failed.
                status = self.child.wait() => return status.unwrap_or_else(|_| ExitStatus::from_raw(1 << 8)),
                () = until(deadline) => self.advance(),
            }
        }
    }

    /// Ends it because of an error, and gives the error back.
    pub(super) async fn failure(&mut self, error: Error) -> Error {
        // It may have ended this moment.
        let _ = self.child.start_kill();
        self.wait().await;
        error
    }

    /// The error of a program that has ended when it should not have.
    pub(super) async fn ended(&mut self) -> Error {
        let status = self.wait().await;
        if let Some(hearing) = self.hearing.take() {
            // Its last words; a child of its own may hold the pipe open.
            let _ = tokio::time::timeout(Duration::from_secs(1), hearing).await;
        }
        Error::QoderCliProcess {
            exit_code: status.code(),
            signal: status.signal(),
            stderr: self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Completes at a moment; never without one.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Keeps the end of stderr and passes its lines on.
async fn hear(pipe: ChildStderr, kept: Arc<Mutex<String>>, told: Option<OnStderr>) {
    let mut pipe = BufReader::new(pipe);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match (&mut pipe).take(LONGEST_LINE).read_until(b'\n', &mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&buffer);
        if let Some(told) = &told {
            told(line.trim_end_matches(['\r', '\n']));
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(&line);
        if kept.len() > KEPT {
            let mut from = kept.len() - KEPT;
            while !kept.is_char_boundary(from) {
                from += 1;
            }
            kept.drain(..from);
        }
    }
}
