//! Subscriptions: the messages of a session from a record's number on, then as they come, without gap or repeat. What waits
//! unread is bounded: a reader that falls behind loses deltas first, and reads the messages that it missed from the log.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::{Projector, SessionEvent};
use qoder_store::SessionLocation;
use qoder_store::follow::{Follow, Followed};
use qoder_store::line::Line;
use qoder_types::Record;
use tokio::sync::Notify;

use crate::elicitations::{Elicitations, Listener};
use crate::events::{AttachedSink, Event, Hub, Sink, Wants};

/// How many events may wait.
const MOST_UNREAD: usize = 1_024;
/// How many bytes of pieces may wait before a reader that is paced holds the driver up.
const MOST_PACED: usize = 256 * 1024;
/// How many may wait before output of tools is dropped for such a reader.
const MOST_OUTPUT: usize = 1024 * 1024;

/// The events of a session, for one reader.
pub struct Subscription {
    replay: Option<Replay>,
    backlog: Arc<Backlog>,
    _attachment: AttachedSink,
}

/// The messages of the log that come before what is live.
struct Replay {
    log: Log,
    projector: Projector,
    /// Messages that were given from the log; one of them that is also live is left out there.
    given: HashSet<String>,
}

/// What is read of a log.
enum Log {
    /// A file, line by line.
    File(Box<Follow>),
    /// The records of another store, read at once.
    Records(VecDeque<Record>),
}

impl Log {
    /// The log from a record's number on; `None` when it cannot be read.
    fn open(location: &SessionLocation, after: u64) -> Option<Self> {
        if let Some(paths) = location.files() {
            return Some(Self::File(Box::new(Follow::open(&paths, Some(after)).ok()?)));
        }
        let mut records = VecDeque::new();
        let read = location.read(|line| match line {
            Line::Record(record) if record.seq > after => records.push_back(record),
            Line::Record(_) | Line::Foreign(_) => {}
        });
        read.ok().map(|_| Self::Records(records))
    }

    /// The next record; `None` at the end.
    fn next(&mut self) -> Option<Record> {
        match self {
            Self::Records(records) => records.pop_front(),
            Self::File(log) => loop {
                match log.try_next() {
                    Ok(Followed::Line(Line::Record(record))) => return Some(record),
                    Ok(Followed::Line(Line::Foreign(_))) => {}
                    Ok(Followed::Nothing | Followed::Deleted) | Err(_) => return None,
                }
            },
        }
    }
}

/// What waits for a reader.
struct Backlog {
    wants: Wants,
    waiting: Mutex<Waiting>,
    arrived: Notify,
    /// The reader has read what was too much.
    caught_up: Arc<Notify>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<SessionEvent>,
    /// How many bytes of pieces are among them.
    bytes: usize,
    lost: u64,
    given: HashSet<String>,
}

impl Subscription {
    pub(super) fn new(
        hub: &Arc<Hub>,
        location: &SessionLocation,
        (session_id, after): (&str, Option<u64>),
        wants: Wants,
    ) -> Self {
        let backlog = Arc::new(Backlog {
            wants,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            caught_up: Arc::default(),
        });
        // Attached before the log is read: what comes meanwhile waits, and is distinguished from what was read by its id.
        let attachment = hub.attach(Arc::clone(&backlog) as Arc<dyn Sink>);
        hub.put_questions().into_iter().for_each(|question| backlog.push(SessionEvent::Asked(question)));
        let replay = after.and_then(|after| {
            let log = Log::open(location, after)?;
            let mut projector = Projector::new(session_id);
            projector.replays_prompts = true;
            Some(Replay { log, projector, given: HashSet::new() })
        });
        Self { replay, backlog, _attachment: attachment }
    }

    /// Reports questions of servers, too.
    pub(super) fn hear_of(&self, elicitations: &Elicitations) {
        elicitations.listen(&self.backlog);
    }

    /// The next event; waits for it.
    pub async fn next(&mut self) -> SessionEvent {
        loop {
            if let Some(event) = self.try_next() {
                return event;
            }
            self.backlog.arrived.notified().await;
        }
    }

    /// The next event, if there is one.
    pub fn try_next(&mut self) -> Option<SessionEvent> {
        while let Some(replay) = &mut self.replay {
            match replay.log.next() {
                Some(record) => {
                    if let Some(message) = replay.projector.project(&record) {
                        replay.given.insert(message.uuid().to_owned());
                        return Some(SessionEvent::Message(Box::new(message)));
                    }
                }
                None => {
                    let given = self.replay.take().map(|replay| replay.given).unwrap_or_default();
                    self.backlog.lock().given = given;
                    return Some(SessionEvent::CaughtUp);
                }
            }
        }
        self.backlog.next()
    }
}

impl Waiting {
    fn next(&mut self) -> Option<SessionEvent> {
        if self.lost > 0 {
            return Some(SessionEvent::Lagged(std::mem::take(&mut self.lost)));
        }
        loop {
            let event = self.events.pop_front()?;
            self.bytes -= piece_size(&event);
            let known = match &event {
                SessionEvent::Message(message) => self.given.remove(message.uuid()),
                SessionEvent::Partial { .. }
                | SessionEvent::ToolOutput { .. }
                | SessionEvent::Warning(_)
                | SessionEvent::Asked(_)
                | SessionEvent::Resolved { .. }
                | SessionEvent::Elicited(_)
                | SessionEvent::ElicitationClosed { .. }
                | SessionEvent::CaughtUp
                | SessionEvent::Lagged(_)
                | SessionEvent::Ended { .. } => false,
            };
            if !known {
                return Some(event);
            }
        }
    }

    fn push(&mut self, event: SessionEvent, paced: bool) {
        if !paced && self.events.len() >= MOST_UNREAD {
            self.drop_one(|event| piece_size(event) > 0);
        } else if paced && self.bytes > MOST_OUTPUT {
            // The driver waits for a reader that is behind, but the output of a tool comes all the same.
            self.drop_one(|event| matches!(event, SessionEvent::ToolOutput { .. }));
        }
        self.bytes += piece_size(&event);
        self.events.push_back(event);
    }

    /// Drops the oldest event of a kind, or the oldest of all.
    fn drop_one(&mut self, is_meant: impl Fn(&SessionEvent) -> bool) {
        let place = self.events.iter().position(is_meant).unwrap_or(0);
        if let Some(dropped) = self.events.remove(place) {
            self.bytes -= piece_size(&dropped);
            self.lost += 1;
        }
    }
}

/// The bytes of a piece of a reply or of output; 0 for everything else.
fn piece_size(event: &SessionEvent) -> usize {
    match event {
        SessionEvent::Partial { event: text, .. } | SessionEvent::ToolOutput { text, .. } => {
            text.len().max(1)
        }
        SessionEvent::Message(_)
        | SessionEvent::Warning(_)
        | SessionEvent::Asked(_)
        | SessionEvent::Resolved { .. }
        | SessionEvent::Elicited(_)
        | SessionEvent::ElicitationClosed { .. }
        | SessionEvent::CaughtUp
        | SessionEvent::Lagged(_)
        | SessionEvent::Ended { .. } => 0,
    }
}

impl Backlog {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<SessionEvent> {
        let mut waiting = self.lock();
        let was_behind = waiting.bytes > MOST_PACED;
        let event = waiting.next();
        if was_behind && waiting.bytes <= MOST_PACED {
            self.caught_up.notify_waiters();
        }
        event
    }

    fn push(&self, event: SessionEvent) {
        self.lock().push(event, self.wants.paced);
        self.arrived.notify_one();
    }
}

impl Listener for Backlog {
    fn hear(&self, event: SessionEvent) {
        self.push(event);
    }
}

impl Sink for Backlog {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        let event = match event {
            Event::Message(message) => SessionEvent::Message(Box::new(message.clone())),
            Event::Partial { event, parent_tool_use_id } => SessionEvent::Partial {
                event: event.to_owned(),
                parent_tool_use_id: parent_tool_use_id.map(str::to_owned),
            },
            Event::ToolOutput { tool_use_id, text } => {
                SessionEvent::ToolOutput { tool_use_id: tool_use_id.to_owned(), text: text.to_owned() }
            }
            Event::Warning(text) => SessionEvent::Warning(text.to_owned()),
            Event::Asked(asking) => SessionEvent::Asked(Arc::clone(&asking.question)),
            Event::Resolved { action, resolution } => {
                SessionEvent::Resolved { action: action.clone(), resolution: resolution.clone() }
            }
        };
        self.push(event);
        Ok(())
    }

    fn answers(&self) -> bool {
        self.wants.answers
    }

    fn is_ready(&self) -> bool {
        !self.wants.paced || self.lock().bytes <= MOST_PACED
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let caught_up = Arc::clone(&self.caught_up);
        let waiting = {
            let mut waiting = Box::pin(caught_up.notified_owned());
            // From here on a read counts, also one before the wait begins.
            waiting.as_mut().enable();
            waiting
        };
        if self.is_ready() { std::future::ready(()).boxed() } else { waiting }
    }
}
