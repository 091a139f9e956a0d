//! Writing to the terminal on a thread of its own: a terminal that takes nothing, behind a slow link or after Ctrl+S, holds no
//! key and no event up. At most one frame is on its way; the next one is made from the newest state when it has arrived.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as channel;

use tokio::sync::Notify;

use super::record::Recording;

/// Writes frames.
pub(crate) struct Writer {
    frames: channel::SyncSender<Vec<u8>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    busy: AtomicBool,
    failed: AtomicBool,
    done: Notify,
}

impl Writer {
    /// Starts the thread; a recording is shown everything that is written.
    pub(crate) fn start(mut recording: Option<Recording>) -> std::io::Result<Self> {
        let (frames, waiting) = channel::sync_channel::<Vec<u8>>(1);
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while let Ok(frame) = waiting.recv() {
                if write(&frame).is_err() {
                    shared.failed.store(true, Ordering::SeqCst);
                }
                if let Some(recording) = &mut recording {
                    recording.output(&frame);
                }
                shared.busy.store(false, Ordering::SeqCst);
                shared.done.notify_one();
            }
        })?;
        Ok(Self { frames, state })
    }

    /// True while a frame is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.busy.load(Ordering::SeqCst)
    }

    /// True when the terminal is gone.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.failed.load(Ordering::SeqCst)
    }

    /// Hands a frame over. The caller has seen that none is on its way.
    pub(crate) fn write(&self, frame: Vec<u8>) {
        if frame.is_empty() {
            return;
        }
        self.state.busy.store(true, Ordering::SeqCst);
        if self.frames.send(frame).is_err() {
            self.state.failed.store(true, Ordering::SeqCst);
            self.state.busy.store(false, Ordering::SeqCst);
        }
    }

    /// Completes when no frame is on its way.
    pub(crate) async fn idle(&self) {
        while self.is_busy() {
            self.state.done.notified().await;
        }
    }
}

fn write(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
