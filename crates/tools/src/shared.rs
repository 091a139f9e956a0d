//! What the tools of one session share: its background tasks.
//!
//! A task is a whole process group. It leaves the register when it has ended; a session that ends stops the rest, and a
//! register that is dropped without that kills them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use crate::process::{GROUP_POLL, TERMINATION_GRACE, group_exists, signal_group};

/// What the tools of one session share. Goes into `ToolContext::shared`.
#[derive(Debug)]
pub struct SessionShared {
    tasks: Mutex<HashMap<String, Task>>,
    running: watch::Sender<usize>,
}

#[derive(Debug)]
struct Task {
    group: Pid,
    stopped: bool,
}

impl SessionShared {
    /// Nothing runs yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { tasks: Mutex::default(), running: watch::Sender::new(0) })
    }

    /// How many background tasks run.
    #[must_use]
    pub fn running_tasks(&self) -> usize {
        *self.running.borrow()
    }

    /// Stops every background task with all its processes: asks, waits up to two seconds, kills.
    pub async fn shutdown(&self) {
        let groups = self.ask_all_to_stop();
        if groups.is_empty() {
            return;
        }
        let mut running = self.running.subscribe();
        // The leader may be gone while others of its group still ignore the request: both must have ended.
        let ended = async {
            drop(running.wait_for(|count| *count == 0).await);
            while groups.iter().copied().any(group_exists) {
                tokio::time::sleep(GROUP_POLL).await;
            }
        };
        if tokio::time::timeout(TERMINATION_GRACE, ended).await.is_err() {
            for group in &groups {
                signal_group(*group, Signal::KILL);
            }
            let mut running = self.running.subscribe();
            // A killed process is reaped at once; the limit only guards against one stuck inside the kernel.
            drop(tokio::time::timeout(TERMINATION_GRACE, running.wait_for(|count| *count == 0)).await);
        }
    }

    fn ask_all_to_stop(&self) -> Vec<Pid> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks
            .values_mut()
            .map(|task| {
                task.stopped = true;
                signal_group(task.group, Signal::TERM);
                task.group
            })
            .collect()
    }

    /// Enters a task.
    pub(crate) fn enter(&self, id: &str, group: Pid) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.insert(id.to_owned(), Task { group, stopped: false });
        self.running.send_replace(tasks.len());
    }

    /// Takes a task out; tells whether it had been asked to stop.
    pub(crate) fn leave(&self, id: &str) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = tasks.remove(id).is_some_and(|task| task.stopped);
        self.running.send_replace(tasks.len());
        stopped
    }
}

impl Drop for SessionShared {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.values() {
            signal_group(task.group, Signal::KILL);
        }
    }
}
