//! Subscriptions: the messages of a session from a record's number on, then as they come, without gap or repeat. What waits
//! unread is bounded: a reader that falls behind loses deltas first, and reads the messages that it missed from the log.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_protocol::messages::StreamMessage;
use qoder_protocol::{ActionId, Projector, Question, Resolution};
use qoder_store::follow::{Follow, Followed};
use qoder_store::layout::SessionPaths;
use qoder_store::line::Line;
use tokio::sync::Notify;

use crate::events::{Attachment, Event, Hub, Sink, Wants};

/// How many events may wait.
const MOST_UNREAD: usize = 1_024;

/// What a subscriber reads.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A message.
    Message(Box<StreamMessage>),
    /// A piece of a reply.
    Partial {
        /// The JSON text of an Anthropic-shaped stream event.
        event: String,
        /// The `Agent` call this belongs to; none on the main thread.
        parent_tool_use_id: Option<String>,
    },
    /// A piece of a running tool's output.
    ToolOutput {
        /// The call.
        tool_use_id: String,
        /// The piece.
        text: String,
    },
    /// Something a person should know that no message carries.
    Warning(String),
    /// A question is open.
    Asked(Arc<Question>),
    /// A question is closed.
    Resolved {
        /// The question.
        action: ActionId,
        /// What became of it.
        resolution: Resolution,
    },
    /// The reader fell behind: this many events are not here. Messages of records among them are in the log.
    Lagged(u64),
}

/// The events of a session, for one reader.
pub struct Subscription {
    replay: Option<Replay>,
    queue: Arc<Queue>,
    _attachment: Attachment,
}

/// The messages of the log that come before what is live.
struct Replay {
    log: Follow,
    projector: Projector,
    /// Messages that were given from the log; one of them that is also live is left out there.
    given: HashSet<String>,
}

/// What waits for a reader.
struct Queue {
    wants: Wants,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<SessionEvent>,
    lost: u64,
    given: HashSet<String>,
}

impl Subscription {
    pub(super) fn new(
        hub: &Arc<Hub>,
        paths: Option<&SessionPaths>,
        (session_id, after): (&str, Option<u64>),
        wants: Wants,
    ) -> Self {
        let queue = Arc::new(Queue { wants, waiting: Mutex::default(), arrived: Notify::new() });
        // Attached before the log is read: what comes meanwhile waits, and is distinguished from what was read by its id.
        let attachment = hub.attach(Arc::clone(&queue) as Arc<dyn Sink>);
        let replay = after.zip(paths).and_then(|(after, paths)| {
            let log = Follow::open(paths, Some(after)).ok()?;
            let mut projector = Projector::new(session_id);
            projector.replays_prompts = true;
            Some(Replay { log, projector, given: HashSet::new() })
        });
        Self { replay, queue, _attachment: attachment }
    }

    /// The next event; waits for it.
    pub async fn next(&mut self) -> SessionEvent {
        loop {
            if let Some(event) = self.try_next() {
                return event;
            }
            self.queue.arrived.notified().await;
        }
    }

    /// The next event, if there is one.
    pub fn try_next(&mut self) -> Option<SessionEvent> {
        while let Some(replay) = &mut self.replay {
            match replay.log.try_next() {
                Ok(Followed::Line(Line::Record(record))) => {
                    if let Some(message) = replay.projector.project(&record) {
                        replay.given.insert(message.uuid().to_owned());
                        return Some(SessionEvent::Message(Box::new(message)));
                    }
                }
                Ok(Followed::Line(Line::Foreign(_))) => {}
                Ok(Followed::Nothing | Followed::Deleted) | Err(_) => {
                    let given = self.replay.take().map(|replay| replay.given).unwrap_or_default();
                    self.queue.lock().given = given;
                }
            }
        }
        self.queue.lock().next()
    }
}

impl Waiting {
    fn next(&mut self) -> Option<SessionEvent> {
        if self.lost > 0 {
            return Some(SessionEvent::Lagged(std::mem::take(&mut self.lost)));
        }
        loop {
            let event = self.events.pop_front()?;
            let known = match &event {
                SessionEvent::Message(message) => self.given.remove(message.uuid()),
                SessionEvent::Partial { .. }
                | SessionEvent::ToolOutput { .. }
                | SessionEvent::Warning(_)
                | SessionEvent::Asked(_)
                | SessionEvent::Resolved { .. }
                | SessionEvent::Lagged(_) => false,
            };
            if !known {
                return Some(event);
            }
        }
    }

    fn push(&mut self, event: SessionEvent) {
        if self.events.len() >= MOST_UNREAD {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Queue {
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
        self.lock().push(event);
        self.arrived.notify_one();
        Ok(())
    }
}
