//! Processes that left the group of the shell that started them. Each shell's descendants carry a mark in their
//! environment. A program that owns its process tree becomes the parent of what loses its own, so it notices such
//! processes by one look at its children, and only then searches for the mark.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::process::{GROUP_POLL, TERMINATION_GRACE};

/// The variable that carries the mark.
pub(crate) const VARIABLE: &str = "QODER_SHELL_MARK";

static OWNS_TREE: AtomicBool = AtomicBool::new(false);
static KNOWN: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Declares that every process below this one was started by the tools, so that none of them may outlive its call. For
/// programs of our own; a host that starts other processes must not call it.
pub fn own_process_tree() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        OWNS_TREE.store(true, Ordering::Relaxed);
    }
}

/// What all marks of this process begin with.
pub(crate) fn mark_of_process() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}.{}.", std::process::id(), since.as_nanos())
    })
}

/// A mark for one shell.
pub(crate) fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}{}.", mark_of_process(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A child that is ours to know of.
pub(crate) fn remember(pid: Pid) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push(pid.as_raw_pid());
}

/// A child that has been waited for.
pub(crate) fn forget(pid: Pid) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != pid.as_raw_pid());
}

/// Ends what carries `mark`: asks, waits two seconds, kills. Costs one look at our children when there is nothing.
pub(crate) async fn end_marked(mark: &str) {
    if !OWNS_TREE.load(Ordering::Relaxed) || adopted().is_empty() {
        return;
    }
    let entry = format!("{VARIABLE}={mark}");
    signal(&marked(&entry), Signal::TERM);
    let gone = async {
        while !marked(&entry).is_empty() {
            tokio::time::sleep(GROUP_POLL).await;
        }
    };
    if tokio::time::timeout(TERMINATION_GRACE, gone).await.is_err() {
        signal(&marked(&entry), Signal::KILL);
    }
    for pid in adopted() {
        // Nobody else waits for what we inherited; one that still lives belongs to another call.
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

fn signal(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::kill_process(*pid, signal);
    }
}

/// Children that we did not start ourselves.
fn adopted() -> Vec<Pid> {
    let pid = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers = children.split_whitespace().filter_map(|number| number.parse().ok());
    numbers.filter(|number: &i32| !known.contains(number)).filter_map(Pid::from_raw).collect()
}

/// Living processes whose environment holds `entry`.
fn marked(entry: &str) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |name: &std::ffi::OsStr| name.to_str()?.parse().ok().and_then(Pid::from_raw);
    processes
        .flatten()
        .filter_map(|process| Some((number(&process.file_name())?, process.path())))
        .filter(|(_, path)| holds(path, entry))
        .map(|(pid, _)| pid)
        .collect()
}

/// A process that has ended has no environment any more.
fn holds(process: &Path, entry: &str) -> bool {
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(entry.as_bytes()))
}
