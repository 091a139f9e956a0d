//! Child processes: cargo with a clean environment, output captured
//! as one text, and a deadline as a guard against a child that
//! hangs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a finished child left behind.
pub struct Finished {
    /// Its exit code; `None` when a signal ended it or the deadline passed.
    pub code: Option<i32>,
    /// Standard output and standard error in the order in which they were written.
    pub output: String,
}

impl Finished {
    /// True for exit code 0.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

/// A cargo command in the repository. The variables that `cargo run` set for this program are removed, because a nested
/// cargo would take them for a change of the build.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end and captures what it wrote.
pub fn capture(command: &mut Command) -> Result<Finished> {
    capture_within(command, Duration::from_secs(3 * 60 * 60))
}

/// Like [`capture`], but kills the child after `limit`. The output goes through a file: a child that leaves a process
/// behind with our pipe open could otherwise hold us for ever.
pub fn capture_within(command: &mut Command, limit: Duration) -> Result<Finished> {
    let scratch = Scratch::new("output")?;
    let path = scratch.path().join("output");
    let mut file = File::options().create_new(true).append(true).read(true).open(&path)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let start = Instant::now();
    let mut timed_out = false;
    let code = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if start.elapsed() > limit {
            timed_out = true;
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut output = String::from_utf8_lossy(&bytes).into_owned();
    if timed_out {
        output.push_str(&format!("\nstopped after {} s without an end\n", limit.as_secs()));
    }
    Ok(Finished { code, output })
}

/// Runs a command, lets it write to the terminal, and fails if it fails.
pub fn insist(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command and fails if it fails, with what it wrote. Nothing is printed, because other commands run meanwhile.
pub fn quietly(command: &mut Command) -> Result<()> {
    let finished = capture(command)?;
    if !finished.succeeded() {
        bail!("{command:?} ended with {:?}\n{}", finished.code, finished.output.trim_end());
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub fn target_directory(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root.join(directory),
        None => root.join("target"),
    }
}

/// A folder outside the repository that vanishes with this value.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder with `name` in its name.
    pub fn new(name: &str) -> Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("xtask-{name}-{}-{number}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(Self { path: path.canonicalize()? })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover in the temporary folder is harmless, and a drop cannot report it.
        std::fs::remove_dir_all(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_captured_with_the_exit_code() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let finished = capture(&mut command).unwrap();
        assert_eq!(finished.code, Some(3));
        assert_eq!(finished.output, "out\nerr\n");
        assert!(!finished.succeeded());
    }

    #[test]
    fn a_failed_command_is_an_error_with_its_output() {
        let mut command = Command::new("sh");
        let error = quietly(command.args(["-c", "echo reason; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("Some(3)") && error.ends_with("reason"), "{error}");
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let finished = capture_within(&mut command, Duration::from_millis(50)).unwrap();
        assert_eq!(finished.code, None);
        assert!(finished.output.contains("without an end"));
    }
}
