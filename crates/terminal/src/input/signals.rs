//! Signals: another size, the end, a stop from outside. Without a handler a signal ends the program, and the session is resumed
//! from its log.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that concerns the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The terminal has another size.
    Resized,
    /// An interrupt from outside: it stops the turn, and without one the program.
    Interrupt,
    /// The program ends by this one.
    End(&'static str),
    /// The program shall stop until it is continued.
    Suspend,
}

/// The signals, as they come.
pub(crate) struct Signals {
    all: Vec<(Sign, Signal)>,
}

impl Signals {
    /// Takes them over.
    pub(crate) fn new() -> Self {
        let kinds = [
            (Sign::Resized, SignalKind::window_change()),
            (Sign::Interrupt, SignalKind::interrupt()),
            (Sign::End("SIGTERM"), SignalKind::terminate()),
            (Sign::End("SIGHUP"), SignalKind::hangup()),
            (Sign::End("SIGQUIT"), SignalKind::quit()),
            (Sign::Suspend, SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw())),
        ];
        let taken = kinds.into_iter().filter_map(|(sign, kind)| Some((sign, signal(kind).ok()?)));
        Self { all: taken.collect() }
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Sign {
        std::future::poll_fn(|context| {
            for (sign, signal) in &mut self.all {
                if let std::task::Poll::Ready(Some(())) = signal.poll_recv(context) {
                    return std::task::Poll::Ready(*sign);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
