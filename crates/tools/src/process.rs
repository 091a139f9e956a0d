//! Starting bash and ending it with everything it started.
//!
//! One process per command: `bash --noprofile --norc -c`, in its own session and process group, without input unless it
//! runs in the background, and without the variables that make a shell read files or change its meaning. The script
//! starts with one line of ours that runs the rest of it and reports the final working directory over a pipe.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;

use qoder_core::ports::CommandEnvironment;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};
use tokio::process::Command;

use crate::process_tree::{Launch, ProcessTree};
use crate::sandbox::{Confinement, Running};
use crate::{environment, escaped};

/// Variables by which a shell would read a file or behave otherwise than the text of the command says.
const SHELL_VARIABLES: [&str; 13] = [
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "GLOBSORT",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
];

/// Variables by which a terminal multiplexer outside would be given processes that no call ends.
const MULTIPLEXERS: [&str; 3] = ["TMUX", "TMUX_PANE", "STY"];

/// Where the error stream of a command goes, and where its input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorStream {
    /// Into a pipe of its own; there is no input.
    Apart,
    /// Into the pipe of the output, which keeps the order of both; the input is a pipe, too, because nobody waits for a
    /// background task and somebody may have something to tell it.
    WithOutput,
}

/// A running shell with everything it started.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) tree: ProcessTree,
    directory_report: PipeReader,
    /// What a confined command stands on; goes after its processes.
    _running: Option<Running>,
}

impl Shell {
    /// Starts `command` in `directory`, confined when there is a confinement.
    pub(crate) fn start(
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
                end.enter(confined.as_mut())?;
                #[cfg(not(target_os = "linux"))]
                end.enter()?;
                rustix::io::fcntl_setfd(report_writer.as_fd(), FdFlags::empty())?;
                keep_open(&passed)
            });
        }
        #[cfg(target_os = "linux")]
        let _starting = crate::process_tree::starting();
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
    pub(crate) fn final_directory(&mut self) -> Option<PathBuf> {
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

/// Bash, or the program that starts it confined.
fn shell_command(confinement: Option<&Confinement>) -> Command {
    match confinement.map(Confinement::prefix).and_then(<[OsString]>::split_first) {
        Some((program, arguments)) => {
            let mut builder = Command::new(program);
            builder.args(arguments).arg(bash_path());
            builder
        }
        None => {
            let mut builder = Command::new(bash_path());
            builder.arg0("bash");
            builder
        }
    }
}

/// Runs bash once under a program that confines it, and waits for its end.
#[cfg(target_os = "linux")]
pub(crate) fn confined_output(
    confinement: &Confinement,
    words: &[OsString],
) -> io::Result<std::process::Output> {
    let mut builder = shell_command(Some(confinement)).into_std();
    let passed = passed_on(confinement);
    // SAFETY: the closure makes only direct system calls on numbers it owns.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut builder, move || keep_open(&passed)) };
    builder.args(words).stdin(Stdio::null()).output()
}

/// Descriptors that the confining program reads.
fn passed_on(confinement: &Confinement) -> Vec<i32> {
    confinement.passed().iter().map(AsRawFd::as_raw_fd).collect()
}

/// Lets descriptors go through exec. Runs in the child: nothing but system calls.
fn keep_open(descriptors: &[i32]) -> io::Result<()> {
    for descriptor in descriptors {
        // SAFETY: the descriptor is owned by the confinement, which lives in the parent's memory that this is a copy of.
        let open = unsafe { BorrowedFd::borrow_raw(*descriptor) };
        rustix::io::fcntl_setfd(open, FdFlags::empty())?;
    }
    Ok(())
}

/// Gives the shell the session's environment and takes out what would make it read files or behave otherwise than the
/// text of the command says, and what it must not know.
pub(crate) fn clean_environment(builder: &mut Command, environment: &CommandEnvironment) {
    environment::apply(environment, builder);
    environment::keep_absolute_search_path(environment, builder);
    for name in SHELL_VARIABLES {
        builder.env_remove(name);
    }
    environment::remove_functions(environment, builder);
}

/// Where bash is. Looked up once, and only in absolute directories: a relative entry of the search path would let the
/// working directory provide the shell.
pub(crate) fn bash_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let search = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&search)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("bash"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("/bin/bash"))
    })
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

/// Sends a signal to a whole group; a group that is gone already is what was wanted.
pub(crate) fn signal_group(group: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(group, signal);
}

/// The exit code as a shell reports it: 128 and the number of the signal for a process that was killed.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Whether a start failed because the directory is gone, and not because bash is missing.
pub(crate) fn directory_is_missing(directory: &Path, error: &io::Error) -> bool {
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
