//! The mark that the descendants of a program carry in their environment.
//!
//! Nothing rests on it, because a process can erase it. It helps where everything else is gone: when a supervisor was
//! killed inside a program that is not ours to reap for, and when we were killed right after a supervisor.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};

/// The variable that carries the mark.
pub(crate) const VARIABLE: &str = "QODER_SHELL_MARK";
/// How often what was killed is looked for again.
const POLL: Duration = Duration::from_millis(20);
/// How often at most.
const ROUNDS: usize = 50;

/// What all marks of this process begin with.
pub(crate) fn mark_of_process() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}.{}.", std::process::id(), since.as_nanos())
    })
}

/// A mark for one program.
pub(crate) fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}{}.", mark_of_process(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills what carries `mark`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there are no supervisors"))]
pub(crate) async fn end_marked(mark: &str) {
    let entry = format!("{VARIABLE}={mark}");
    for _ in 0..ROUNDS {
        let found = marked(&entry);
        if found.is_empty() {
            return;
        }
        for pid in found {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        tokio::time::sleep(POLL).await;
    }
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

/// A process that has ended no longer has an environment.
fn holds(process: &Path, entry: &str) -> bool {
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(entry.as_bytes()))
}
