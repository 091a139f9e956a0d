//! Starting bash and ending it with everything it started.
//!
//! One process per command: `bash --noprofile --norc -c`, in its own session and process group, without input unless it
//! runs in the background, and without the variables that make a shell read files or change its meaning. The script
//! starts with one line of ours that runs the rest of it and reports the final working directory over a pipe.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use qoder_types::CommandEnvironment;
use rustix::io::FdFlags;

use crate::environment::clean_environment;
use crate::sandbox::start::{keep_open, passed_on, shell_command};
use crate::sandbox::{Confinement, Running};
#[cfg(target_os = "linux")]
use crate::tree::Confines;
use crate::tree::escaped;
use crate::tree::{Launch, ProcessTree};

/// Variables by which a terminal multiplexer outside would be given processes that no call ends.
const MULTIPLEXERS: [&str; 3] = ["TMUX", "TMUX_PANE", "STY"];

/// Where the error stream of a command goes, and where its input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStream {
    /// Into a pipe of its own; there is no input.
    Apart,
    /// Into the pipe of the output, which keeps the order of both; the input is a pipe, too, because no call waits for a
    /// background task and the model may write to it.
    WithOutput,
}

/// A running shell with everything it started.
#[derive(Debug)]
pub struct Shell {
    /// The shell's process with everything it started.
    pub tree: ProcessTree,
    directory_report: PipeReader,
    /// What a confined command needs; removed after its processes.
    _running: Option<Running>,
}

impl Shell {
    /// Starts `command` in `directory`, confined when there is a confinement.
    pub fn start(
        command: &str,
        directory: &Path,
        environment: &CommandEnvironment,
        added: &[(String, String)],
        errors: ErrorStream,
        confinement: Option<Confinement>,
    ) -> io::Result<Self> {
        let (directory_report, report_writer) = io::pipe()?;
        let script = script(command, report_writer.as_raw_fd(), errors);
        let mut builder = shell_command(confinement.as_ref());
        builder
            .args(["--noprofile", "--norc", "-c"])
            .arg(script)
            .current_dir(directory)
            .stdin(match errors {
                ErrorStream::Apart => Stdio::null(),
                ErrorStream::WithOutput => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mark = escaped::new_mark();
        clean_environment(&mut builder, environment);
        for name in MULTIPLEXERS.iter().filter(|name| !environment.changed.contains_key(**name)) {
            builder.env_remove(name);
        }
        builder.env(escaped::VARIABLE, &mark);
        builder.envs(added.iter().map(|(name, value)| (name, value)));
        for (name, value) in confinement.iter().flat_map(Confinement::environment) {
            builder.env(name, value);
        }
        let passed = confinement.as_ref().map(passed_on).unwrap_or_default();
        #[cfg(target_os = "linux")]
        let mut confinement = confinement;
        #[cfg(target_os = "linux")]
        let mut confined = confinement.as_mut().and_then(Confinement::take_child);
        let (connection, mut end) = Launch::new()?.split();
        // SAFETY: the closure runs in the child between fork and exec. It makes only direct system calls, allocates
        // nothing and takes no lock; `report_writer` is owned by it and therefore open.
        unsafe {
            builder.pre_exec(move || {
                #[cfg(target_os = "linux")]
                end.enter(confined.as_mut().map(|part| part as &mut dyn Confines))?;
                #[cfg(not(target_os = "linux"))]
                end.enter()?;
                rustix::io::fcntl_setfd(report_writer.as_fd(), FdFlags::empty())?;
                keep_open(&passed)
            });
        }
        #[cfg(target_os = "linux")]
        let _starting = crate::tree::starting();
        let child = match (builder.spawn(), &confinement) {
            (Ok(child), _) => child,
            (Err(error), Some(confinement)) => return Err(confinement.explain(error)),
            (Err(error), None) => return Err(error),
        };
        let tree = ProcessTree::new(child, connection, mark)?;
        let mut shell = Self { tree, directory_report, _running: None };
        // When this fails the shell is dropped, and with that its processes end.
        shell._running = confinement.map(Confinement::started).transpose()?;
        Ok(shell)
    }

    /// The directory in which the command ended, when the shell came to say so.
    pub fn final_directory(&mut self) -> Option<PathBuf> {
        // A process left behind may hold the other end: read what is there and never wait for more.
        rustix::io::ioctl_fionbio(self.directory_report.as_fd(), true).ok()?;
        let mut bytes = Vec::new();
        let mut buffer = [0_u8; 8192];
        while bytes.len() < 64 * 1024 {
            match self.directory_report.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        directory_from_report(&bytes)
    }
}

/// The shell reports at its normal end and again from its exit trap, unless the command replaced the trap: one or two
/// equal paths, each followed by a newline.
fn directory_from_report(bytes: &[u8]) -> Option<PathBuf> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let one = if first == second { first } else { bytes };
    let path = one.strip_suffix(b"\n")?;
    path.starts_with(b"/").then(|| PathBuf::from(OsString::from_vec(path.to_vec())))
}

/// Our line and the command. The line evaluates everything behind its own end, so the command keeps its line numbers,
/// its here-documents, its comments and its positional parameters, and `exit` inside it still reports through the trap.
fn script(command: &str, descriptor: i32, errors: ErrorStream) -> String {
    let report = format!("builtin pwd -P >&{descriptor} 2>/dev/null");
    let redirection = match errors {
        ErrorStream::Apart => "",
        ErrorStream::WithOutput => "exec 2>&1; ",
    };
    format!(
        "{redirection}trap '{report}' EXIT; eval \"${{BASH_EXECUTION_STRING#*$'\\n'}}\"; \
         qoder_exit_status=$?; {report}; exit $qoder_exit_status\n{command}"
    )
}

/// Whether a start failed because the directory is gone, and not because bash is missing.
pub fn directory_is_missing(directory: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !directory.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_may_come_once_or_twice_and_hold_newlines() {
        let read =
            |bytes: &[u8]| directory_from_report(bytes).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(read(b"/a/b\n"), Some("/a/b".to_owned()));
        assert_eq!(read(b"/a/b\n/a/b\n"), Some("/a/b".to_owned()));
        assert_eq!(read(b"/a\nb\n/a\nb\n"), Some("/a\nb".to_owned()));
        assert_eq!(read(b""), None);
        assert_eq!(read(b"rubbish\n"), None);
    }
}
