//! SIGINT ends the turn with a proper result, a second one the program at once. SIGTERM and SIGHUP end the program and leave
//! the turn to be resumed; a hang-up that the parent chose to ignore (`nohup`) stays ignored. SIGUSR2 moves running commands
//! to the background. SIGXFSZ does nothing, so that a write beyond the limit on file sizes fails like one on a full disk.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::signal::unix::{Signal as Receiver, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::screen;

pub use qoder_stdio::Signal;

/// The signals that stop something, as they come.
pub struct Signals {
    interrupt: Option<Receiver>,
    terminate: Option<Receiver>,
    hang_up: Option<Receiver>,
}

impl Signals {
    /// Takes the signals over. Without handlers a signal ends the program, which is safe: the session is resumed from its
    /// log.
    pub fn new() -> Self {
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            hang_up: hang_up().ok().flatten(),
        }
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            () = received(&mut self.interrupt) => Signal::Interrupt,
            () = received(&mut self.terminate) => Signal::End("SIGTERM"),
            () = received(&mut self.hang_up) => Signal::End("SIGHUP"),
        }
    }
}

impl qoder_stdio::Signals for Signals {
    fn next(&mut self) -> BoxFuture<'_, Signal> {
        Signals::next(self).boxed()
    }
}

async fn received(receiver: &mut Option<Receiver>) {
    let received = match receiver {
        Some(receiver) => receiver.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Takes the signal over that a write beyond the limit on file sizes brings: such a write then fails with an error that is
/// reported. It is handled and not ignored, because commands would inherit that.
pub fn survive_file_limits() {
    let number = rustix::process::Signal::XFSZ.as_raw();
    if is_ignored(number) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    // The handler stays when the runtime is gone. Without it the signal ends the program, and its log can be resumed.
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        drop(signal(SignalKind::from_raw(number)));
    }
}

/// Turns SIGUSR2 into moves of foreground commands to the background, until it is dropped.
pub fn watch_moves(moves: Arc<dyn Fn() -> usize + Send + Sync>) -> Moves {
    // Without a handler the signal ends the program, which is what it does to programs that know nothing of it.
    let asked = signal(SignalKind::user_defined2()).ok();
    Moves(asked.map(|mut asked| {
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                let text = match moves() {
                    0 => "no command that could be moved runs in the foreground".to_owned(),
                    1 => "a command moves to the background".to_owned(),
                    count => format!("{count} commands move to the background"),
                };
                screen::print_note(&text);
            }
        })
    }))
}

/// See [`watch_moves`].
pub struct Moves(Option<JoinHandle<()>>);

impl Drop for Moves {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// The hang-up signal, unless it is to be ignored: taking it over would undo what the parent asked for.
fn hang_up() -> std::io::Result<Option<Receiver>> {
    let kind = SignalKind::hangup();
    if is_ignored(kind.as_raw_value()) { Ok(None) } else { signal(kind).map(Some) }
}

/// True when the parent asked to ignore the signal of this number.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Bit 0 is signal 1.
    mask >> (number - 1) & 1 == 1
}
