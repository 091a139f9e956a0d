//! Subscriptions: the messages of a session from a record's number on, then as they come, without gap or repeat. What waits
//! unread is bounded: a reader that falls behind loses deltas first, and is given the messages that it missed from the log.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::messages::StreamMessage;
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
/// How many messages from the log are remembered, because they may also be live.
const MOST_GIVEN: usize = 2 * MOST_UNREAD;
/// How many messages are remembered that were live, to find the place in the log behind them.
const MOST_LIVE: usize = 64;
/// How many bytes of pieces may wait before a reader that is paced holds the driver up.
const MOST_PACED: usize = 256 * 1024;
/// How many may wait before output of tools is dropped for such a reader.
const MOST_OUTPUT: usize = 1024 * 1024;

/// The events of a session, for one reader.
pub struct Subscription {
    replay: Option<Replay>,
    backlog: Arc<Backlog>,
    location: SessionLocation,
    session_id: String,
    /// The messages of all records up to this one were given, or not wanted; unknown to one that began with what follows.
    read: Option<u64>,
    /// The messages that were given last and did not come from the log.
    live: VecDeque<String>,
    is_caught_up: bool,
    _attachment: AttachedSink,
}

/// The messages of the log that come before what is live.
struct Replay {
    log: Log,
    projector: Projector,
    /// The reader has the messages of records up to this one.
    after: u64,
    /// Messages that were given from the log; one of them that is also live is left out there.
    given: VecDeque<String>,
}

impl Replay {
    /// The messages of records behind `after`. They are made as if the log had been read from `from` on.
    fn open(location: &SessionLocation, session_id: &str, (from, after): (u64, u64)) -> Option<Self> {
        let log = Log::open(location, from)?;
        let mut projector = Projector::new(session_id);
        projector.replays_prompts = true;
        Some(Self { log, projector, after, given: VecDeque::new() })
    }

    /// The next message with the number of its record; the message is `None` for most records.
    fn next(&mut self) -> Option<(u64, Option<StreamMessage>)> {
        let record = self.log.next()?;
        let message = self.projector.project(&record).filter(|_| record.seq > self.after);
        if let Some(message) = &message {
            keep(&mut self.given, message.uuid(), MOST_GIVEN);
        }
        Some((record.seq, message))
    }
}

/// Remembers an id, and forgets the oldest when there are too many.
fn keep(ids: &mut VecDeque<String>, id: &str, most: usize) {
    if ids.len() == most {
        ids.pop_front();
    }
    ids.push_back(id.to_owned());
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
    /// The first messages among what was lost.
    lost_messages: Vec<String>,
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
        let location = location.clone();
        let replay = after.and_then(|after| Replay::open(&location, session_id, (after, after)));
        let (session_id, is_caught_up) = (session_id.to_owned(), replay.is_none());
        let (read, live) = (after, VecDeque::new());
        Self { replay, backlog, location, session_id, read, live, is_caught_up, _attachment: attachment }
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
        if let Some(event) = self.try_replayed() {
            return Some(event);
        }
        let event = self.backlog.next()?;
        match &event {
            SessionEvent::Lagged(_) => {
                let lost = std::mem::take(&mut self.backlog.lock().lost_messages);
                self.replay = if lost.is_empty() { None } else { self.missed(&lost) };
            }
            SessionEvent::Message(message) => keep(&mut self.live, message.uuid(), MOST_LIVE),
            SessionEvent::Partial { .. }
            | SessionEvent::ToolOutput { .. }
            | SessionEvent::Warning(_)
            | SessionEvent::Asked(_)
            | SessionEvent::Resolved { .. }
            | SessionEvent::Elicited(_)
            | SessionEvent::ElicitationClosed { .. }
            | SessionEvent::CaughtUp
            | SessionEvent::Ended { .. } => {}
        }
        Some(event)
    }

    /// The next event of the log, while that is read.
    fn try_replayed(&mut self) -> Option<SessionEvent> {
        let replay = self.replay.as_mut()?;
        while let Some((seq, message)) = replay.next() {
            self.read = Some(seq);
            if let Some(message) = message {
                return Some(SessionEvent::Message(Box::new(message)));
            }
        }
        let given = self.replay.take().map(|replay| replay.given).unwrap_or_default();
        self.live.clear();
        self.backlog.lock().knows(given);
        (!std::mem::replace(&mut self.is_caught_up, true)).then_some(SessionEvent::CaughtUp)
    }

    /// The messages that a reader missed: those behind the last one that it has, or from the first one that it lost. Some
    /// of both have no record.
    fn missed(&self, lost: &[String]) -> Option<Replay> {
        let from = self.read.unwrap_or(0);
        let open = |after| Replay::open(&self.location, &self.session_id, (from, after));
        if self.read.is_some() && self.live.is_empty() {
            return open(from);
        }
        let (mut had, mut missing) = (None, None);
        let mut look = open(from)?;
        while let Some((seq, message)) = look.next() {
            let Some(message) = message else { continue };
            if self.live.iter().any(|id| id == message.uuid()) {
                had = Some(seq);
            } else if missing.is_none() && lost.iter().any(|id| id == message.uuid()) {
                missing = Some(seq - 1);
            }
        }
        open(had.or(missing).or(self.read)?)
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

    /// Drops the oldest event of a kind, or the oldest message, which the log has, or the oldest of all.
    fn drop_one(&mut self, is_meant: impl Fn(&SessionEvent) -> bool) {
        let is_message = |event: &SessionEvent| matches!(event, SessionEvent::Message(_));
        let place = self.events.iter().position(is_meant);
        let place = place.or_else(|| self.events.iter().position(is_message)).unwrap_or(0);
        if let Some(dropped) = self.events.remove(place) {
            if let SessionEvent::Message(message) = &dropped
                && self.lost_messages.len() < MOST_LIVE
            {
                self.lost_messages.push(message.uuid().to_owned());
            }
            self.bytes -= piece_size(&dropped);
            self.lost += 1;
        }
    }

    /// These messages were given; those that were given before and do not wait are forgotten.
    fn knows(&mut self, given: VecDeque<String>) {
        let waiting: HashSet<&str> = self
            .events
            .iter()
            .filter_map(|event| {
                let SessionEvent::Message(message) = event else { return None };
                Some(message.uuid())
            })
            .collect();
        self.given.retain(|id| waiting.contains(id.as_str()));
        self.given.extend(given);
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
