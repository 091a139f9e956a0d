//! Starting bash under a confinement: the program that confines it, and the descriptors that this program reads.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Stdio;

use rustix::io::FdFlags;
use tokio::process::Command;

use super::confinement::Confinement;
use crate::environment::bash_path;

/// Bash, or the program that starts it confined.
pub(crate) fn shell_command(confinement: Option<&Confinement>) -> Command {
    let mut builder = program_command(bash_path(), confinement);
    if confinement.is_none_or(|confinement| confinement.prefix().is_empty()) {
        builder.arg0("bash");
    }
    builder
}

/// A program, or the one that starts it confined.
pub(crate) fn program_command(program: &Path, confinement: Option<&Confinement>) -> Command {
    match confinement.map(Confinement::prefix).and_then(<[OsString]>::split_first) {
        Some((confining, arguments)) => {
            let mut builder = Command::new(confining);
            builder.args(arguments).arg(program);
            builder
        }
        None => Command::new(program),
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
pub(crate) fn passed_on(confinement: &Confinement) -> Vec<i32> {
    confinement.passed().iter().map(AsRawFd::as_raw_fd).collect()
}

/// Lets descriptors go through exec. Runs in the child: nothing but system calls.
pub(crate) fn keep_open(descriptors: &[i32]) -> io::Result<()> {
    for descriptor in descriptors {
        // SAFETY: the descriptor is owned by the confinement, which lives in the parent's memory that this is a copy of.
        let open = unsafe { BorrowedFd::borrow_raw(*descriptor) };
        rustix::io::fcntl_setfd(open, FdFlags::empty())?;
    }
    Ok(())
}
