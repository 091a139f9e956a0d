//! Lines that are typed, read on a thread of their own, which ends with the terminal. The terminal itself echoes and edits.

use std::time::Instant;

use tokio::sync::mpsc;

/// Lines with the time at which each was complete.
pub(super) fn lines() -> mpsc::UnboundedReceiver<(Instant, String)> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    lines
}
