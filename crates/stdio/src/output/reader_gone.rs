//! Notices that the output is no longer read, also while nothing is written: a host that was killed leaves its pipes
//! closed, and a turn that only it wanted must not continue.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::watch;

/// Whether the reader of the output is gone.
#[derive(Clone)]
pub struct ReaderGone(watch::Receiver<bool>);

impl ReaderGone {
    /// Begins to watch. What is no pipe never loses its reader.
    pub fn watch() -> Self {
        let (sender, receiver) = watch::channel(false);
        std::thread::spawn(move || {
            let stdout = std::io::stdout();
            loop {
                // No event is asked for: errors and hang-ups are reported in any case, and nothing else wakes us.
                let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
                match poll(&mut fds, None) {
                    Ok(_) if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => break,
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
                if fds[0].revents().contains(PollFlags::NVAL) {
                    return;
                }
            }
            // The receiver may have ended at this moment.
            let _ = sender.send(true);
        });
        Self(receiver)
    }

    /// Completes when the reader is gone.
    pub async fn gone(&mut self) {
        if self.0.wait_for(|gone| *gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
