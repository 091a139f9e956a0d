//! A place to run the program in: a temporary home, a temporary project, and an
//! environment with nothing of the caller's in it but the path. Everything vanishes with
//! the value.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::ScriptedServer;

/// A guard against a program that hangs; no test depends on how long it is.
const HANG_LIMIT: Duration = Duration::from_secs(180);

/// A temporary home and project.
pub struct Sandbox {
    // Held for its drop, which removes the folder.
    _folder: TempDir,
    home: PathBuf,
    project: PathBuf,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::expect_used, reason = "a test whose sandbox is broken cannot continue")]
impl Sandbox {
    /// Makes an empty home and an empty project.
    ///
    /// # Panics
    /// When the temporary folder cannot be written.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("qoder-test-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the temporary folder has a real path");
        let (home, project) = (root.join("home"), root.join("project"));
        std::fs::create_dir(&home).expect("a home");
        std::fs::create_dir(&project).expect("a project");
        Self { _folder: folder, home, project }
    }

    /// The home; real path.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The project, which is the working directory of commands; real path.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The configuration directory (`QODER_CONFIG_DIR`).
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.home.join(".qoder")
    }

    /// Writes a file, with its folders. A relative path is taken from the project. Returns the file's path.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project.join(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("its folders");
        std::fs::write(&path, text).expect("the file is written");
        path
    }

    /// The program in the project with a clean environment: only `PATH`, `HOME`, `QODER_CONFIG_DIR` and `LANG`.
    pub fn command(&self, binary: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(binary);
        command.current_dir(&self.project).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("QODER_CONFIG_DIR", self.config()).env("LANG", "C.UTF-8");
        command
    }

    /// Like [`Sandbox::command`], with a scripted server as the model.
    pub fn command_with(&self, binary: impl AsRef<OsStr>, server: &ScriptedServer) -> Command {
        let mut command = self.command(binary);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "test");
        command
    }

    /// Runs the program with arguments to its end, without a model server.
    ///
    /// # Panics
    /// As [`Sandbox::finish`].
    pub fn run(&self, binary: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
        let mut command = self.command(binary);
        command.args(arguments);
        Self::finish(command)
    }

    /// Runs the program with arguments to its end, with a scripted server as the model.
    ///
    /// # Panics
    /// As [`Sandbox::finish`].
    pub fn run_with(&self, binary: impl AsRef<OsStr>, server: &ScriptedServer, arguments: &[&str]) -> Output {
        let mut command = self.command_with(binary, server);
        command.args(arguments);
        Self::finish(command)
    }

    /// Runs a command with empty input to its end.
    ///
    /// # Panics
    /// When it cannot be started, or has not ended after three minutes.
    #[must_use]
    pub fn finish(mut command: Command) -> Output {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = drain(child.stdout.take().expect("standard output is a pipe"));
        let stderr = drain(child.stderr.take().expect("standard error is a pipe"));
        let status = wait(&mut child, &command);
        let join = |reader: JoinHandle<Vec<u8>>| reader.join().expect("the reader ends");
        Output { status, stdout: join(stdout), stderr: join(stderr) }
    }

    /// Every line of every session file (`projects/*/*.jsonl`), files in the order of their names.
    ///
    /// # Panics
    /// When a line is not JSON.
    #[must_use]
    pub fn transcript_lines(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for file in self.session_files() {
            let text = std::fs::read_to_string(&file).expect("a session file is text");
            for line in text.lines() {
                lines.push(serde_json::from_str(line).expect("a line of a session file is JSON"));
            }
        }
        lines
    }

    /// Every session file (`projects/*/*.jsonl`), by name.
    #[must_use]
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for project in entries(&self.config().join("projects")) {
            files.extend(
                entries(&project)
                    .into_iter()
                    .filter(|path| path.is_file() && path.extension().is_some_and(|name| name == "jsonl")),
            );
        }
        files.sort();
        files
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).into_iter().flatten();
    listing.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

/// Reads a pipe on a thread of its own, so that a full pipe never blocks the program.
fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before a fault of the pipe is still worth showing.
        pipe.read_to_end(&mut bytes).ok();
        bytes
    })
}

#[expect(clippy::expect_used, reason = "a test whose program hangs cannot continue")]
fn wait(child: &mut Child, command: &Command) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the program can be waited for") {
            return status;
        }
        if start.elapsed() > HANG_LIMIT {
            child.kill().expect("the program can be killed");
            child.wait().expect("the program ends when it is killed");
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
