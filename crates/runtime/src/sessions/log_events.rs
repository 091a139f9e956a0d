//! Events of a session that are read from its log alone: of an agent, and of a session that another process drives. There are
//! no pieces of replies; messages come when they are complete. Questions are made from their records.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use qoder_protocol::{
    ActionId, Answer, BoxFuture, EventStream, Projector, Question, Resolution, SessionEvent,
};
use qoder_store::StoreError;
use qoder_store::follow::{Follow, Followed};
use qoder_store::layout::SessionPaths;
use qoder_store::line::Line;
use qoder_types::record::{Answered, Asked, RecordBody};
use qoder_types::{ContentBlock, Record};
use serde_json::Value;

/// The events of a log.
pub struct LogEvents {
    log: Follow,
    projector: Projector,
    agent_id: Option<String>,
    /// Inputs of calls that have no result yet.
    inputs: HashMap<String, Value>,
    /// Calls that wait for an answer.
    open: Vec<String>,
    waiting: std::collections::VecDeque<SessionEvent>,
    is_caught_up: bool,
    is_over: bool,
}

impl LogEvents {
    /// The events of a log, from its start.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(paths: &SessionPaths, session_id: &str) -> Result<Self, StoreError> {
        let mut projector = Projector::new(session_id);
        projector.replays_prompts = true;
        Ok(Self {
            log: Follow::open(paths, None)?,
            projector,
            agent_id: None,
            inputs: HashMap::new(),
            open: Vec::new(),
            waiting: std::collections::VecDeque::new(),
            is_caught_up: false,
            is_over: false,
        })
    }

    /// Marks questions with the agent whose log it is.
    #[must_use]
    pub fn of_agent(mut self, agent_id: &str) -> Self {
        self.agent_id = Some(agent_id.to_owned());
        self
    }

    fn take(&mut self, followed: Result<Option<Line>, StoreError>) {
        match followed {
            Ok(Some(Line::Record(record))) => self.see(&record),
            Ok(Some(Line::Foreign(_))) => {}
            Ok(None) => self.end(Some("the session was deleted".to_owned())),
            Err(error) => self.end(Some(error.to_string())),
        }
    }

    fn end(&mut self, problem: Option<String>) {
        self.is_over = true;
        self.waiting.push_back(SessionEvent::Ended { problem });
    }

    fn see(&mut self, record: &Record) {
        match &record.body {
            RecordBody::Assistant(entry) => {
                for block in &entry.message.content {
                    if let ContentBlock::ToolUse { id, input, .. } = block {
                        self.inputs.insert(id.clone(), input.clone());
                    }
                }
            }
            RecordBody::Asked(asked) => self.asked(asked),
            RecordBody::Answered(answered) => self.answered(answered),
            // A call that is decided, runs or has its result no longer waits.
            RecordBody::Decided(decided) => self.closed(&decided.tool_use_id),
            RecordBody::Interrupted(interrupted) if !interrupted.leaves_turn_open() => {
                for id in std::mem::take(&mut self.open) {
                    self.withdraw(&id);
                }
            }
            _ => {}
        }
        if let Some(message) = self.projector.project(record) {
            self.waiting.push_back(SessionEvent::Message(Box::new(message)));
        }
    }

    fn action(&self, tool_use_id: &str) -> ActionId {
        ActionId { agent_id: self.agent_id.clone(), tool_use_id: tool_use_id.to_owned() }
    }

    fn asked(&mut self, asked: &Asked) {
        let input = self.inputs.get(&asked.tool_use_id).cloned().unwrap_or(Value::Null);
        self.open.push(asked.tool_use_id.clone());
        self.waiting.push_back(SessionEvent::Asked(Arc::new(Question {
            tool_use_id: asked.tool_use_id.clone(),
            tool_name: asked.tool_name.clone(),
            kind: asked.kind,
            input,
            decision: asked.decision.clone(),
            suggestions: asked.suggestions.clone(),
            agent_id: self.agent_id.clone(),
            place: None,
        })));
    }

    fn answered(&mut self, answered: &Answered) {
        self.open.retain(|open| *open != answered.tool_use_id);
        let answer = Answer {
            allow: answered.allow,
            message: answered.message.clone(),
            updated_input: answered.updated_input.clone(),
            updated_permissions: answered.updated_permissions.clone(),
            interrupt: answered.interrupt,
            result: answered.result.clone(),
            by: answered.by.clone(),
        };
        let action = self.action(&answered.tool_use_id);
        self.waiting.push_back(SessionEvent::Resolved { action, resolution: Resolution::Answered(answer) });
    }

    fn closed(&mut self, tool_use_id: &str) {
        if self.open.iter().any(|open| open == tool_use_id) {
            self.open.retain(|open| open != tool_use_id);
            self.withdraw(tool_use_id);
        }
    }

    fn withdraw(&mut self, tool_use_id: &str) {
        let action = self.action(tool_use_id);
        self.waiting.push_back(SessionEvent::Resolved { action, resolution: Resolution::Withdrawn });
    }
}

impl EventStream for LogEvents {
    fn next(&mut self) -> BoxFuture<'_, SessionEvent> {
        async move {
            loop {
                if let Some(event) = self.try_next() {
                    return event;
                }
                if self.is_over {
                    return std::future::pending().await;
                }
                let followed = self.log.next().await;
                self.take(followed);
            }
        }
        .boxed()
    }

    fn try_next(&mut self) -> Option<SessionEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            match self.log.try_next() {
                Ok(Followed::Line(line)) => self.take(Ok(Some(line))),
                Ok(Followed::Deleted) => self.take(Ok(None)),
                Err(error) => self.take(Err(error)),
                Ok(Followed::Nothing) if self.is_caught_up => return None,
                Ok(Followed::Nothing) => {
                    self.is_caught_up = true;
                    return Some(SessionEvent::CaughtUp);
                }
            }
        }
    }
}
