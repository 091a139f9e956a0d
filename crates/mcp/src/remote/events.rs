//! What a server sends, on its way to the listener: silent once the owner gave up the connection, bounded in
//! length and in number, and the end is reported once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{PeerEvent, PeerEvents};

/// Characters of a log message that are passed on.
const LONGEST_LOG: usize = 2_000;
/// Log messages that are passed on in one window.
const MOST_LOGS: u32 = 100;
/// The window.
const WINDOW: Duration = Duration::from_secs(1);

/// The listener of one connection.
pub(super) struct Events {
    sink: PeerEvents,
    silent: AtomicBool,
    window: Mutex<(Instant, u32)>,
}

impl Events {
    pub(super) fn new(sink: PeerEvents) -> Self {
        Self { sink, silent: AtomicBool::new(false), window: Mutex::new((Instant::now(), 0)) }
    }

    /// Reports nothing from here on.
    pub(super) fn silence(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// Reports an event, unless silenced.
    pub(super) fn report(&self, event: PeerEvent) {
        if !self.silent.load(Ordering::SeqCst) {
            (self.sink)(event);
        }
    }

    /// The last event, at most once.
    pub(super) fn report_closed(&self, reason: String) {
        if !self.silent.swap(true, Ordering::SeqCst) {
            (self.sink)(PeerEvent::Closed(reason));
        }
    }

    /// A message for a log; a flood of them is cut.
    pub(super) fn log(&self, level: &str, text: &str) {
        let count = {
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            if window.0.elapsed() >= WINDOW {
                *window = (Instant::now(), 0);
            }
            window.1 = window.1.saturating_add(1);
            window.1
        };
        let text = match count.cmp(&MOST_LOGS) {
            std::cmp::Ordering::Less => shortened(text, LONGEST_LOG),
            std::cmp::Ordering::Equal => "the server logs too much; messages were left out".to_owned(),
            std::cmp::Ordering::Greater => return,
        };
        self.report(PeerEvent::Log { level: level.to_owned(), text });
    }
}

/// At most so many characters, with a sign that there was more.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_flood_is_cut_and_the_end_is_told_once() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let events = Events::new(Arc::new(move |event| sink.lock().unwrap().push(event)));
        for _ in 0..10_000 {
            events.log("info", "x");
        }
        // A slow machine may open a few windows meanwhile.
        assert!(heard.lock().unwrap().len() < 5_000);
        heard.lock().unwrap().clear();
        events.report_closed("gone".to_owned());
        events.report_closed("again".to_owned());
        events.log("info", "late");
        assert_eq!(*heard.lock().unwrap(), [PeerEvent::Closed("gone".to_owned())]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(shortened("äöü", 3), "äöü");
    }
}
