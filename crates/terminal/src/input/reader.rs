//! The thread that reads the terminal. It can be paused while another program has the terminal, and it knows how long an
//! escape may wait for the rest of its sequence: longer over a network.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::parser::{Input, Parser};

/// How long an escape waits for more, here and over a network.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(100));
/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// What was typed, and when.
#[derive(Debug)]
pub(crate) struct Typed {
    /// When it was read.
    pub(crate) at: Instant,
    /// What it was.
    pub(crate) inputs: Vec<Input>,
}

/// Reads the terminal until it is dropped.
pub(crate) struct Reader {
    /// What was typed; ends with the terminal.
    pub(crate) typed: mpsc::UnboundedReceiver<Typed>,
    control: Arc<Control>,
    wake: OwnedFd,
}

#[derive(Default)]
struct Control {
    state: Mutex<Wish>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Read,
    Pause,
    /// The thread reads nothing.
    Paused,
    Stop,
}

impl Reader {
    /// Starts the thread.
    pub(crate) fn start(over_network: bool) -> std::io::Result<Self> {
        let (sender, typed) = mpsc::unbounded_channel();
        let (wakened, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&control);
        let patience = if over_network { PATIENCE.1 } else { PATIENCE.0 };
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            read(&shared, &wakened, &sender, patience);
        })?;
        Ok(Self { typed, control, wake })
    }

    /// Reads nothing from now on. Blocks until the thread has stopped, which is at once.
    pub(crate) fn pause(&self) {
        let mut state = self.control.lock();
        if *state != Wish::Read {
            return;
        }
        *state = Wish::Pause;
        self.awaken();
        while *state == Wish::Pause {
            state = self.control.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads again.
    pub(crate) fn resume(&self) {
        *self.control.lock() = Wish::Read;
        self.control.changed.notify_all();
    }

    fn awaken(&self) {
        // The pipe is only full when the thread has a reason to wake up already.
        let _ = rustix::io::write(&self.wake, b"x");
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        *self.control.lock() = Wish::Stop;
        self.control.changed.notify_all();
        self.awaken();
    }
}

impl Control {
    fn lock(&self) -> std::sync::MutexGuard<'_, Wish> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while nothing is to be read. False when the thread shall end.
    fn may_read(&self) -> bool {
        let mut state = self.lock();
        if *state == Wish::Pause {
            *state = Wish::Paused;
            self.changed.notify_all();
        }
        while *state == Wish::Paused {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *state != Wish::Stop
    }
}

fn read(control: &Control, wakened: &OwnedFd, sender: &mpsc::UnboundedSender<Typed>, patience: Duration) {
    let mut parser = Parser::default();
    let mut buffer = vec![0; PIECE];
    while control.may_read() {
        let stdin = std::io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(wakened, PollFlags::IN)];
        let timeout =
            parser.is_waiting().then(|| Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let (has_keys, is_wakened) = (!polled[0].revents().is_empty(), !polled[1].revents().is_empty());
        if is_wakened {
            let _ = rustix::io::read(wakened, &mut buffer[..64]);
            continue;
        }
        let inputs = if has_keys {
            match rustix::io::read(&stdin, &mut buffer) {
                // The terminal is gone.
                Ok(0) => return,
                Ok(count) => parser.feed(&buffer[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                Err(_) => return,
            }
        } else {
            parser.give_up_waiting()
        };
        if !inputs.is_empty() && sender.send(Typed { at: Instant::now(), inputs }).is_err() {
            return;
        }
    }
}
