//! A child process that speaks on its pipes: one message a line. It starts from an argument vector in a cleaned
//! environment, in a process group of its own, and ends with everything it started. What it writes on its error stream is
//! kept in a small ring for the day something goes wrong; what it prints beside messages is ignored up to a limit.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qoder_process::ServerProcess;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::events::shortened;
use super::fault::Fault;
use super::{PeerContext, wire};

/// Bytes of the error stream that are kept.
const KEPT_ERRORS: usize = 8 * 1024;
/// Characters of a line that is no message.
const LONGEST_NOISE: usize = 200;
/// Lines in a row that are no messages.
const MOST_NOISE: u32 = 1_000;
/// How long the end of the process is waited for once its output has ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);
/// Read from the pipe at once.
const BUFFER: usize = 64 * 1024;

/// What a process wrote beside its messages: the end of its error stream, and the first line that was no message.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    errors: Mutex<VecDeque<u8>>,
    noise: Mutex<Option<String>>,
}

impl Leftovers {
    fn add(&self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_ERRORS)..];
        let mut kept = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (kept.len() + bytes.len()).saturating_sub(KEPT_ERRORS);
        kept.drain(..excess);
        kept.extend(bytes);
    }

    fn add_noise(&self, line: &[u8]) {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.get_or_insert_with(|| shortened(&String::from_utf8_lossy(line), LONGEST_NOISE));
    }

    /// The end of the error stream, as text.
    fn text(&self) -> String {
        let kept = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let shown = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
        // What colours a terminal must not get to one by way of an error.
        String::from_utf8_lossy(&bytes).chars().filter(shown).collect::<String>().trim().to_owned()
    }
}

/// How a child process is started.
pub(super) struct Start<'a> {
    pub(super) command: &'a str,
    pub(super) arguments: &'a [String],
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) directory: Option<&'a Path>,
}

/// The pipes of a child process.
pub(super) struct Pipes {
    process: ServerProcess,
    input: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    ready: VecDeque<RxJsonRpcMessage<RoleClient>>,
    noise: u32,
    leftovers: Arc<Leftovers>,
    error_reader: JoinHandle<()>,
    fault: Arc<Fault>,
    longest: usize,
    ending: Duration,
}

impl Pipes {
    /// Starts the process. The error is for people.
    pub(super) fn start(
        start: &Start<'_>,
        context: &PeerContext,
        fault: Arc<Fault>,
        leftovers: Arc<Leftovers>,
    ) -> Result<Self, String> {
        let directory = start.directory.map_or_else(|| context.cwd.clone(), |path| context.cwd.join(path));
        let mut environment = (*context.environment).clone();
        environment.extend(start.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        let program = find(start.command, environment.get("PATH").map(String::as_str), &directory)?;
        let mut command = Command::new(&program);
        command
            .args(start.arguments)
            .env_clear()
            .envs(&environment)
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = ServerProcess::start(command)
            .map_err(|error| cannot_start(start.command, &program, &directory, &error))?;
        let (Some(input), Some(output), Some(error_stream)) =
            (process.take_input(), process.take_output(), process.take_errors())
        else {
            return Err(format!("`{}` was started without its pipes", start.command));
        };
        let error_reader = tokio::spawn(keep_errors(error_stream, Arc::clone(&leftovers)));
        Ok(Self {
            process,
            input: Arc::new(tokio::sync::Mutex::new(Some(input))),
            output: BufReader::with_capacity(BUFFER, output),
            line: Vec::new(),
            ready: VecDeque::new(),
            noise: 0,
            leftovers,
            error_reader,
            fault,
            longest: context.limits.message,
            ending: context.limits.ending,
        })
    }

    /// Reads until a whole line is in `line`. May be dropped at any point and called again.
    async fn read_line(&mut self) -> Result<(), Ended> {
        loop {
            let available = self.output.fill_buf().await.map_err(Ended::Unreadable)?;
            if available.is_empty() {
                return Err(Ended::Closed);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |at| at + 1);
            if self.line.len() + taken > self.longest + 1 {
                return Err(Ended::TooLong);
            }
            self.line.extend_from_slice(&available[..taken]);
            self.output.consume(taken);
            if newline.is_some() {
                return Ok(());
            }
        }
    }

    /// Takes in what `line` holds; false when the server has printed too much that is no message.
    fn take_line(&mut self) -> bool {
        let line = self.line.trim_ascii();
        let outcome = if line.is_empty() { Ok(Vec::new()) } else { wire::read(line) };
        match outcome {
            Ok(messages) => {
                if !messages.is_empty() {
                    self.noise = 0;
                }
                self.ready.extend(messages);
            }
            Err(_) => {
                self.noise += 1;
                self.leftovers.add_noise(line);
            }
        }
        self.line.clear();
        if self.line.capacity() > BUFFER {
            // One large message must not be paid for until the end.
            self.line = Vec::new();
        }
        self.noise <= MOST_NOISE
    }

    /// Why the output ended, with what the process left behind.
    async fn explain(&mut self, ended: Ended) -> String {
        let text = match ended {
            Ended::TooLong => {
                format!("the server sent a message of more than {} MiB", self.longest / (1024 * 1024))
            }
            Ended::Noise => {
                format!("the server printed {MOST_NOISE} lines that are no messages of the protocol")
            }
            Ended::Unreadable(error) => format!("the server's output cannot be read: {error}"),
            Ended::Closed => match tokio::time::timeout(EXIT_PATIENCE, self.process.wait()).await {
                Ok(Ok(status)) => format!("the server's process ended {}", how(status)),
                Ok(Err(_)) | Err(_) => "the server closed its output".to_owned(),
            },
        };
        // The reader ends with the process; what it started may hold the stream open.
        let _ = tokio::time::timeout(EXIT_PATIENCE, &mut self.error_reader).await;
        with_leftovers(text, &self.leftovers)
    }
}

/// Why there is no further line.
enum Ended {
    Closed,
    TooLong,
    Noise,
    Unreadable(io::Error),
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        let line = serde_json::to_vec(&item).map(|mut line| {
            line.push(b'\n');
            line
        });
        async move {
            let line = line?;
            match &mut *input.lock().await {
                Some(input) => {
                    input.write_all(&line).await?;
                    input.flush().await
                }
                None => Err(io::Error::from(io::ErrorKind::NotConnected)),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let ended = match self.read_line().await {
                Ok(()) if self.take_line() => continue,
                Ok(()) => Ended::Noise,
                Err(ended) => ended,
            };
            let reason = self.explain(ended).await;
            self.fault.fail(reason);
            return None;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A task may be stuck writing to a process that does not read: then the input closes with the process.
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        self.process.end(self.ending).await;
        Ok(())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.error_reader.abort();
    }
}

async fn keep_errors(mut stream: ChildStderr, ring: Arc<Leftovers>) {
    let mut buffer = [0_u8; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        ring.add(&buffer[..count]);
    }
}

/// The text with what the process wrote beside its messages.
pub(super) fn with_leftovers(mut text: String, leftovers: &Leftovers) -> String {
    let noise = leftovers.noise.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(noise) = &*noise {
        text.push_str(&format!("; it printed `{noise}`, which is no message of the protocol"));
    }
    let written = leftovers.text();
    if !written.is_empty() {
        text.push_str("; its error stream ends with:\n");
        text.push_str(&written);
    }
    text
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "without saying how".to_owned(),
    }
}

/// The program: a path as it is, a name in the absolute folders of the search path. A relative folder there would let the
/// project provide it.
fn find(command: &str, search: Option<&str>, directory: &Path) -> Result<PathBuf, String> {
    if command.is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains('/') {
        return Ok(directory.join(command));
    }
    let search = search.unwrap_or("/usr/local/bin:/usr/bin:/bin");
    let candidates = std::env::split_paths(search).filter(|folder| folder.is_absolute());
    let mut refused = None;
    for candidate in candidates.map(|folder| folder.join(command)) {
        match candidate.metadata() {
            Ok(facts) if facts.is_file() && facts.permissions().mode() & 0o111 != 0 => return Ok(candidate),
            Ok(facts) if facts.is_file() => refused = Some(candidate),
            Ok(_) | Err(_) => {}
        }
    }
    Err(match refused {
        Some(path) => format!("{} is not executable", path.display()),
        None => format!("`{command}` was not found in PATH"),
    })
}

fn cannot_start(command: &str, program: &Path, directory: &Path, error: &io::Error) -> String {
    match error.kind() {
        _ if !directory.is_dir() => {
            format!("`{command}` cannot be started: the folder {} does not exist", directory.display())
        }
        io::ErrorKind::NotFound if program.exists() => {
            format!("`{command}` cannot be started: the interpreter that it names does not exist")
        }
        io::ErrorKind::NotFound => format!("`{command}` was not found"),
        io::ErrorKind::PermissionDenied => format!("{} is not executable", program.display()),
        _ => format!("`{command}` cannot be started: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_end() {
        let ring = Leftovers::default();
        for _ in 0..10_000 {
            ring.add(b"0123456789");
        }
        ring.add(b"the end\n");
        let text = ring.text();
        assert!(text.len() <= KEPT_ERRORS && text.ends_with("9the end"), "{}", text.len());
        ring.add(b"\x1b[31mred\r\n\x07");
        assert!(ring.text().ends_with("the end\n[31mred"));
        ring.add(&vec![b'x'; 3 * KEPT_ERRORS]);
        assert_eq!(ring.text(), "x".repeat(KEPT_ERRORS));
    }

    #[test]
    fn a_name_is_looked_up_in_absolute_folders_only() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("tool"), "").unwrap();
        let absolute = directory.path().to_str().unwrap();
        assert_eq!(
            find("tool", Some(absolute), Path::new("/")).unwrap_err(),
            format!("{absolute}/tool is not executable")
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path().join("tool"), mode).unwrap();
        assert_eq!(find("tool", Some(absolute), Path::new("/")).unwrap(), directory.path().join("tool"));
        let problem = find("tool", Some("relative"), directory.path()).unwrap_err();
        assert_eq!(problem, "`tool` was not found in PATH");
        assert_eq!(find("./x", None, Path::new("/d")).unwrap(), Path::new("/d/./x"));
    }
}
