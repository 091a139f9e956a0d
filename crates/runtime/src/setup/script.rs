//! Scripts of the program that opens a session, run before it: in its working directory, with the environment of its commands, and
//! confined as they are.

use std::io;
use std::time::Duration;

use qoder_process::sandbox::{Sandbox, SandboxError};
use qoder_process::shell::{ErrorStream, Shell};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::options::SetupError;
use super::{Setup, sandbox};

/// The most bytes of each stream that are kept: the last ones.
const KEPT: usize = 4 * 1024;

/// A script that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The session has no sandbox.
    #[error("commands of the session are not confined, and a script is not run otherwise")]
    Unconfined,
    /// The places of the session cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The sandbox cannot be made.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The script cannot be started.
    #[error("the script cannot be started: {0}")]
    Start(#[from] io::Error),
    /// It took too long.
    #[error("the script took longer than {} seconds and was ended", .0.as_secs())]
    Late(Duration),
}

impl ScriptError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unconfined => "script_unconfined",
            Self::Setup(_) => "script_places",
            Self::Sandbox(_) => "script_sandbox",
            Self::Start(_) => "script_start",
            Self::Late(_) => "script_late",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unconfined => "open the session with `sandbox`",
            Self::Setup(_) => "check the directories of the session",
            Self::Sandbox(_) | Self::Start(_) => "`qodercli sandbox check` says what this machine lacks",
            Self::Late(_) => "make the script shorter, or give it more time",
        }
    }
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEnd {
    /// As a shell reports it.
    pub exit_code: i32,
    /// The end of what it printed, errors last.
    pub output: String,
}

impl Setup {
    /// Runs a script before the session is opened. Nothing that it started is left when it ends.
    ///
    /// # Errors
    /// When it cannot be confined or started, or takes too long.
    pub async fn run_script(&self, script: &str, patience: Duration) -> Result<ScriptEnd, ScriptError> {
        if !self.sandbox.enabled {
            return Err(ScriptError::Unconfined);
        }
        let roots = self.roots()?;
        let places = sandbox::places(&self.rules, &self.workspace(roots.clone()));
        let confinement = Sandbox::new(self.sandbox.clone(), places).confine(&self.cwd, &roots)?;
        let environment = self.command_environment();
        let mut shell =
            Shell::start(script, &self.cwd, &environment, &[], ErrorStream::Apart, Some(confinement))?;
        let (stdout, stderr) = (shell.tree.child.stdout.take(), shell.tree.child.stderr.take());
        let printed = tokio::spawn(async move { tokio::join!(tail(stdout), tail(stderr)) });
        let ended = tokio::time::timeout(patience, shell.tree.wait()).await;
        let status = match ended {
            Ok(status) => Ok(status?),
            Err(_) => {
                shell.tree.terminate().await?;
                Err(ScriptError::Late(patience))
            }
        };
        shell.tree.end_leftovers().await;
        let status = status?;
        // Everything that could hold the pipes has ended.
        let (stdout, stderr) = printed.await.unwrap_or_default();
        let exit_code = qoder_process::tree::exit_code(status);
        Ok(ScriptEnd { exit_code, output: [stdout, stderr].concat() })
    }
}

/// The end of a stream.
async fn tail(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), vec![0; KEPT]);
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
