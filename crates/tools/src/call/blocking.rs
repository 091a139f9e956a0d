//! Long work off the async threads, with a flag that stops it.
//!
//! A blocking thread cannot be cancelled, so it is asked: the flag is raised when the call is cancelled and also when
//! the future that waits for the work is dropped. The caller continues at once; the work ends at its next look.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qoder_core::ports::{Cancelled, ToolOutcome};

use crate::call::refusal::interrupted;

/// Files up to this size are handled without changing the thread, which would cost more than the work.
pub(crate) const INLINE_BYTES: u64 = 1024 * 1024;

/// Raised when the work shall stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Whether the work shall stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Raises the flag when the caller no longer waits for the work.
struct RaiseOnDrop(StopFlag);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread until it ends or the call is cancelled.
pub(crate) async fn off_thread<F>(cancelled: Cancelled, work: F) -> ToolOutcome
where
    F: FnOnce(&StopFlag) -> ToolOutcome + Send + 'static,
{
    let flag = StopFlag::default();
    let _raise = RaiseOnDrop(flag.clone());
    let handle = tokio::task::spawn_blocking(move || work(&flag));
    tokio::select! {
        ended = handle => match ended {
            Ok(outcome) => outcome,
            Err(error) => ToolOutcome::failed(format!("The tool failed inside: {error}. Try another way.")),
        },
        () = cancelled => interrupted(),
    }
}

/// Changes a file of `size` bytes. A change is never given up half-way: cancelling does not reach it, and a large file
/// only moves it off the async threads.
pub(crate) async fn change<F>(size: u64, work: F) -> ToolOutcome
where
    F: FnOnce() -> ToolOutcome + Send + 'static,
{
    if size <= INLINE_BYTES {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            ToolOutcome::failed(format!("The tool failed inside: {error}. Read the file to see its state."))
        }
    }
}
