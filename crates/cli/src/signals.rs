//! SIGINT and SIGTERM: the first ends the turn with a proper result, a second SIGINT ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_runtime::interrupt::Interrupt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::exit::Exit;

/// Watches for signals until it is dropped.
pub struct Watch {
    task: Option<JoinHandle<()>>,
    interrupt: Interrupt,
}

impl Watch {
    /// Completes at the first signal.
    pub async fn interrupted(&self) {
        self.interrupt.cancelled().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Turns signals into `interrupt`.
pub fn watch(interrupt: Interrupt) -> Watch {
    let told = interrupt.clone();
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers a signal ends the program, which is safe: the session is resumed from its log.
        return Watch { task: None, interrupt };
    };
    let asked = Arc::new(AtomicBool::new(false));
    let task = tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = int.recv() => {
                    if asked.swap(true, Ordering::Relaxed) {
                        std::process::exit(Exit::Interrupted as i32);
                    }
                }
                _ = term.recv() => {}
            }
            told.trigger();
        }
    });
    Watch { task: Some(task), interrupt }
}
