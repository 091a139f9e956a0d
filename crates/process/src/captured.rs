//! Runs a program of the person's own once, such as a hook: input on its standard input, both output streams kept up to a
//! limit, and an end that takes everything it started with it. A shell gets the command's text as it was written; what
//! the program receives goes through its input and its environment, never into that text.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use qoder_types::CommandEnvironment;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::environment::{bash_path, clean_environment};
use crate::output::unfinished_tail;
use crate::server_process::ServerProcess;
use crate::tree::exit_code;

/// The most bytes that are kept of one stream.
pub const CAPTURED_BYTES: usize = 1024 * 1024;
/// How long the pipes may stay open after everything that could hold them was ended.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// What is to be run.
#[derive(Debug, Clone)]
pub enum CapturedProgram {
    /// A text for bash.
    Bash(String),
    /// A text for PowerShell.
    PowerShell(String),
    /// A program and its arguments, without any shell.
    Direct(String, Vec<String>),
}

/// One stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturedStream {
    /// What it answers.
    Output,
    /// What it says besides.
    Errors,
}

/// Is shown output while it comes.
pub type CapturedListener = Arc<dyn Fn(CapturedStream, &str) + Send + Sync>;

/// A program with its surroundings.
#[derive(Clone)]
pub struct CapturedRun {
    /// What is to be run.
    pub program: CapturedProgram,
    /// Where.
    pub directory: PathBuf,
    /// The environment of commands.
    pub environment: Arc<CommandEnvironment>,
    /// Variables on top.
    pub added: Vec<(String, String)>,
    /// What it reads.
    pub input: Vec<u8>,
    /// Told of output.
    pub listener: Option<CapturedListener>,
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// As a shell reports it.
    pub exit_code: i32,
    /// The first MiB of its output.
    pub stdout: String,
    /// The first MiB of its error stream.
    pub stderr: String,
    /// True when the output was longer.
    pub is_cut: bool,
}

/// Ends the process with everything it started also when its future is dropped.
struct Running(Option<ServerProcess>);

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut process) = self.0.take() else { return };
        // Without a runtime the drop of the process kills its group, and the watchdog ends what left it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { process.end(Duration::ZERO).await });
        }
    }
}

impl CapturedRun {
    /// Runs it to its end. Dropping the future ends it at once.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn run(self) -> io::Result<Captured> {
        let mut command = self.command()?;
        command
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        clean_environment(&mut command, &self.environment);
        let usable = |(name, value): &&(String, String)| {
            !name.is_empty() && !name.contains('=') && !has_zero(name, value)
        };
        command.envs(self.added.iter().filter(usable).map(|(name, value)| (name, value)));
        let mut process = ServerProcess::start(command)?;
        let (input, output, errors) = (process.take_input(), process.take_output(), process.take_errors());
        let mut running = Running(Some(process));
        let written = self.input;
        let feed = async move {
            if let Some(mut input) = input {
                // A program that does not want to read is free not to.
                let _ = input.write_all(&written).await;
            }
        };
        let reads = async {
            let (one, two) = (&self.listener, &self.listener);
            tokio::join!(
                keep(output, CapturedStream::Output, one.clone()),
                keep(errors, CapturedStream::Errors, two.clone())
            )
        };
        let mut streams = Box::pin(async { tokio::join!(feed, reads).1 });
        let Some(process) = running.0.as_mut() else { return Err(io::Error::other("it was not started")) };
        let mut kept = None;
        let status = {
            let mut wait = Box::pin(process.wait());
            loop {
                tokio::select! {
                    status = &mut wait => break status?,
                    read = &mut streams, if kept.is_none() => kept = Some(read),
                }
            }
        };
        // What it left behind may hold the pipes open and ends with it.
        process.end(Duration::ZERO).await;
        running.0 = None;
        let ((stdout, is_cut), (stderr, _)) = match kept {
            Some(kept) => kept,
            None => tokio::time::timeout(PIPE_GRACE, &mut streams).await.unwrap_or_default(),
        };
        Ok(Captured { exit_code: exit_code(status), stdout, stderr, is_cut })
    }

    fn command(&self) -> io::Result<Command> {
        Ok(match &self.program {
            CapturedProgram::Bash(text) => {
                let mut command = Command::new(bash_path());
                command.arg0("bash").args(["--noprofile", "--norc", "-c", text]);
                command
            }
            CapturedProgram::PowerShell(text) => {
                let path = on_search_path("pwsh").ok_or_else(|| {
                    io::Error::new(io::ErrorKind::NotFound, "there is no `pwsh` on the PATH")
                })?;
                let mut command = Command::new(path);
                command.args(["-NoProfile", "-NonInteractive", "-Command", text]);
                command
            }
            CapturedProgram::Direct(program, arguments) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        })
    }
}

fn has_zero(name: &str, value: &str) -> bool {
    name.contains('\0') || value.contains('\0')
}

/// A program in an absolute directory of the search path.
fn on_search_path(name: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    let absolute = std::env::split_paths(&search).filter(|directory| Path::is_absolute(directory));
    absolute.map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Reads a stream to its end and keeps its beginning. All of it is read: a program must not hang because it says much.
async fn keep<R: AsyncRead + Unpin>(
    stream: Option<R>,
    which: CapturedStream,
    listener: Option<CapturedListener>,
) -> (String, bool) {
    let Some(mut stream) = stream else { return (String::new(), false) };
    let mut buffer = vec![0_u8; 16 * 1024];
    let (mut bytes, mut shown, mut is_cut) = (Vec::new(), 0, false);
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let room = CAPTURED_BYTES - bytes.len();
        is_cut |= count > room;
        bytes.extend_from_slice(&buffer[..count.min(room)]);
        let complete = bytes.len() - unfinished_tail(&bytes);
        if let Some(listener) = listener.as_ref().filter(|_| complete > shown) {
            listener(which, &String::from_utf8_lossy(&bytes[shown..complete]));
            shown = complete;
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(text: &str) -> CapturedRun {
        CapturedRun {
            program: CapturedProgram::Bash(text.to_owned()),
            directory: std::env::temp_dir(),
            environment: Arc::default(),
            added: vec![("GIVEN".to_owned(), "value".to_owned())],
            input: b"told".to_vec(),
            listener: None,
        }
    }

    #[tokio::test]
    async fn input_environment_streams_and_code_are_the_programs_own() {
        let ended = bash("read -r line; echo \"$line $GIVEN\"; echo bad >&2; exit 3").run().await.unwrap();
        let streams = (ended.stdout.as_str(), ended.stderr.as_str());
        assert_eq!((ended.exit_code, streams), (3, ("told value\n", "bad\n")));
    }

    #[tokio::test]
    async fn much_output_is_read_and_cut() {
        let ended = bash("head -c 20000000 /dev/zero | tr '\\0' x").run().await.unwrap();
        assert_eq!((ended.stdout.len(), ended.is_cut, ended.exit_code), (CAPTURED_BYTES, true, 0));
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_does_not_hold_the_end_up() {
        let ended = tokio::time::timeout(Duration::from_secs(30), bash("sleep 1000 & echo done").run());
        assert_eq!(ended.await.unwrap().unwrap().stdout, "done\n");
    }

    #[tokio::test]
    async fn arguments_are_literal_without_a_shell() {
        let program =
            CapturedProgram::Direct("printf".to_owned(), vec!["%s".to_owned(), "$(id) `x`".to_owned()]);
        let ended = CapturedRun { program, ..bash("") }.run().await.unwrap();
        assert_eq!(ended.stdout, "$(id) `x`");
    }
}
