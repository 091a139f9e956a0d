//! The events of a session that another process drives: from its log, and from those of its agents that run, because their
//! questions are asked there. It ends when no process drives the session.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_protocol::{BoxFuture, EventStream, SessionEvent};
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::sessions::LogEvents;
use qoder_runtime::store::StoreError;
use qoder_store::lease;
use qoder_types::AGENT_TASK;

/// How often it is looked whether the log of an agent that was just started is there.
const LOOK: Duration = Duration::from_millis(100);

/// The events.
pub struct AttachedEvents {
    session: LogEvents,
    paths: SessionPaths,
    /// Agents that run and whose logs are read, by their ids.
    agents: BTreeMap<String, Agent>,
    /// Agents that run and have no log yet, with the files they are looked for at.
    expected: BTreeMap<String, Expected>,
    /// Completes when no process drives the session.
    released: BoxFuture<'static, ()>,
    is_released: bool,
    is_over: bool,
}

/// An agent whose log is read.
struct Agent {
    events: LogEvents,
    paths: SessionPaths,
    tool_use_id: String,
}

/// An agent whose log is expected.
struct Expected {
    paths: SessionPaths,
    tool_use_id: String,
}

/// Where an event comes from: the session itself, or an agent.
type Origin = Option<String>;

impl AttachedEvents {
    /// The events of a session, from its start.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn open(paths: &SessionPaths, session_id: &str) -> Result<Self, StoreError> {
        let lease = paths.clone();
        Ok(Self {
            session: LogEvents::open(paths, session_id)?,
            paths: paths.clone(),
            agents: BTreeMap::new(),
            expected: BTreeMap::new(),
            released: async move { lease::released(&lease).await }.boxed(),
            is_released: false,
            is_over: false,
        })
    }

    /// What becomes of an event for the reader. Agents that start and end are followed.
    fn pass(&mut self, origin: &Origin, event: SessionEvent) -> Option<SessionEvent> {
        if let SessionEvent::Message(message) = &event
            && let StreamMessage::System(message) = &**message
        {
            self.follow_tasks(origin, message);
        }
        let Some(agent) = origin else {
            self.is_over = self.is_over || matches!(event, SessionEvent::Ended { .. });
            return Some(event);
        };
        match event {
            SessionEvent::Message(mut message) => {
                let call = self.agents.get(agent)?.tool_use_id.clone();
                match &mut *message {
                    StreamMessage::Assistant(reply) => {
                        reply.parent_tool_use_id.get_or_insert(call);
                        Some(SessionEvent::Message(message))
                    }
                    StreamMessage::User(_)
                    | StreamMessage::System(_)
                    | StreamMessage::Result(_)
                    | StreamMessage::PromptSuggestion(_) => None,
                }
            }
            SessionEvent::Asked(_) | SessionEvent::Resolved { .. } => Some(event),
            SessionEvent::Ended { .. } => {
                self.agents.remove(agent);
                None
            }
            SessionEvent::Partial { .. }
            | SessionEvent::ToolOutput { .. }
            | SessionEvent::Warning(_)
            | SessionEvent::Elicited(_)
            | SessionEvent::ElicitationClosed { .. }
            | SessionEvent::CaughtUp
            | SessionEvent::Lagged(_) => None,
        }
    }

    fn follow_tasks(&mut self, origin: &Origin, message: &SystemMessage) {
        match message {
            SystemMessage::TaskStarted { task_id, tool_use_id, task_type, .. } if task_type == AGENT_TASK => {
                let parent = match origin {
                    Some(agent) => self.agents.get(agent).map(|agent| &agent.paths),
                    None => Some(&self.paths),
                };
                if let Some(parent) = parent {
                    let paths = parent.agent(task_id);
                    let tool_use_id = tool_use_id.clone();
                    self.expected.insert(task_id.clone(), Expected { paths, tool_use_id });
                }
            }
            SystemMessage::TaskNotification { task_id, .. } => {
                self.expected.remove(task_id);
                self.agents.remove(task_id);
            }
            _ => {}
        }
    }

    /// Begins to read the logs that are there by now.
    fn look_for_agents(&mut self) {
        let there: Vec<String> = self
            .expected
            .iter()
            .filter(|(_, expected)| expected.paths.log.is_file())
            .map(|(id, _)| id.clone())
            .collect();
        for id in there {
            let Some(Expected { paths, tool_use_id }) = self.expected.remove(&id) else { continue };
            if let Ok(events) = LogEvents::open(&paths, &id) {
                let events = events.of_agent(&id);
                self.agents.insert(id, Agent { events, paths, tool_use_id });
            }
        }
    }

    /// What happens next in one of the logs.
    async fn arrival(
        session: &mut LogEvents,
        agents: &mut BTreeMap<String, Agent>,
    ) -> (Origin, SessionEvent) {
        let main = async { (None, session.next().await) }.boxed();
        let others = agents
            .iter_mut()
            .map(|(id, agent)| async move { (Some(id.clone()), agent.events.next().await) }.boxed());
        let (arrived, _, _) = select_all(std::iter::once(main).chain(others)).await;
        arrived
    }
}

impl EventStream for AttachedEvents {
    fn next(&mut self) -> BoxFuture<'_, SessionEvent> {
        async move {
            loop {
                if let Some(event) = self.try_next() {
                    return event;
                }
                if self.is_over {
                    return std::future::pending().await;
                }
                let expects = !self.expected.is_empty();
                let Self { session, agents, released, .. } = self;
                tokio::select! {
                    biased;
                    (origin, event) = Self::arrival(session, agents) => {
                        if let Some(event) = self.pass(&origin, event) {
                            return event;
                        }
                    }
                    // What its holder wrote last is read before it counts.
                    () = released => self.is_released = true,
                    () = tokio::time::sleep(LOOK), if expects => {}
                }
            }
        }
        .boxed()
    }

    fn try_next(&mut self) -> Option<SessionEvent> {
        loop {
            if self.is_over {
                return None;
            }
            self.look_for_agents();
            let arrived = match self.session.try_next() {
                Some(event) => Some((None, event)),
                None => self
                    .agents
                    .iter_mut()
                    .find_map(|(id, agent)| Some((Some(id.clone()), agent.events.try_next()?))),
            };
            match arrived {
                Some((origin, event)) => {
                    if let Some(event) = self.pass(&origin, event) {
                        return Some(event);
                    }
                }
                None if self.is_released => {
                    self.is_over = true;
                    return Some(SessionEvent::Ended { problem: None });
                }
                None => return None,
            }
        }
    }
}
