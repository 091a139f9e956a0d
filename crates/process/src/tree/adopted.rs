//! Processes that became our children because their supervisor was killed.
//!
//! A program of our own is a child subreaper, too: without a supervisor, what it held on to comes to us. Such processes
//! are told from children that we started ourselves by their session, which no process of ours shares.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

use super::TERMINATION_GRACE;

/// How often what was killed is looked for again.
const POLL: Duration = Duration::from_millis(1);

static OWNS_TREE: AtomicBool = AtomicBool::new(false);
static KNOWN: Mutex<Vec<i32>> = Mutex::new(Vec::new());
static STARTING: RwLock<()> = RwLock::new(());

/// Held while a child is started and until it is remembered, so that it is not taken for an adopted one.
pub(crate) fn starting() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of what loses its own.
pub(crate) fn own() {
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        OWNS_TREE.store(true, Ordering::Relaxed);
    }
}

/// A child that we started with a session of its own.
pub(crate) fn remember(pid: Pid) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push(pid.as_raw_pid());
}

/// A child that has been waited for.
pub(crate) fn forget(pid: Pid) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = known.iter().position(|known| *known == pid.as_raw_pid()) {
        known.swap_remove(place);
    }
}

/// Kills everything that came to us, and what comes from that.
pub(crate) async fn end() {
    if !OWNS_TREE.load(Ordering::Relaxed) {
        return;
    }
    let ended = async {
        loop {
            let children = adopted();
            if children.is_empty() {
                return;
            }
            for pid in children {
                // It may have ended by itself; then it only has to be collected.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
            tokio::time::sleep(POLL).await;
        }
    };
    // What cannot be killed belongs to another user or hangs in the kernel.
    let _ = tokio::time::timeout(TERMINATION_GRACE, ended).await;
}

/// Children of a session that is not ours, and that we did not start.
fn adopted() -> Vec<Pid> {
    let _nobody_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let own = session("self");
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let listed: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let unknown = listed.into_iter().filter(|pid| !known.contains(pid)).filter_map(Pid::from_raw);
    unknown.filter(|pid| session(&pid.as_raw_pid().to_string()) != own).collect()
}

/// The session of a process. It is 0 where its leader is outside our PID namespace, as in many containers; `getsid` of
/// `rustix` takes that for impossible.
fn session(process: &str) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold spaces and brackets; state, parent, group and session follow its last bracket.
    let (_, fields) = status.rsplit_once(')')?;
    fields.split_whitespace().nth(3)?.parse().ok()
}
