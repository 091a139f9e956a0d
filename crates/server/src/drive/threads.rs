//! The threads of a session that has a seat: the logs of its agents, with what is appended to them and not committed yet.

use std::collections::BTreeMap;

use qoder_core::ports::LogStoreError;
use qoder_store::line::{Line, Owner};
use qoder_types::Record;
use serde_json::Value;

use crate::model::ids::{EventId, SessionId, ThreadId};
use crate::model::status::StopReason;
use crate::model::toolset::Toolset;
use crate::model::usage::SessionUsage;
use crate::project::{Previews, Projected, Projector, ThreadPlace};
use crate::store::{self, DbError, NewRecord, ThreadAppend, ThreadRow};

/// What projecting the logs of agents needs.
#[derive(Debug, Clone)]
pub(super) struct Crew {
    pub(super) session: SessionId,
    /// The name of the session's own agent.
    pub(super) name: String,
    pub(super) credit_usd: f64,
    /// The tools of each agent, by its name.
    pub(super) toolsets: BTreeMap<String, Toolset>,
}

impl Crew {
    /// The session's own thread.
    pub(super) fn primary(&self) -> ThreadPlace {
        self.place(ThreadId::primary(self.session), &self.name)
    }

    fn place(&self, thread: ThreadId, name: &str) -> ThreadPlace {
        ThreadPlace {
            id: thread,
            name: name.to_owned(),
            parent: ThreadId::primary(self.session),
            parent_name: self.name.clone(),
        }
    }

    fn projector(&self, place: &ThreadPlace) -> Projector {
        let toolset = self.toolsets.get(&place.name).cloned().unwrap_or_default();
        Projector::new(self.session, toolset, self.credit_usd).of_thread(place.clone())
    }
}

/// One thread.
struct ThreadState {
    place: ThreadPlace,
    projector: Projector,
    previews: Previews,
    sidecar: Value,
    /// Its log, for those who open it again; empty once it is over.
    lines: Vec<Line>,
    appended: u64,
    /// Appended and not committed yet.
    records: Vec<NewRecord>,
    /// What it had used before this seat, when its log was not read.
    earlier: SessionUsage,
    is_changed: bool,
    sidecar_is_new: bool,
    is_open: bool,
    is_parked: bool,
    is_over: bool,
}

impl ThreadState {
    fn usage(&self) -> SessionUsage {
        self.projector.usage().plus(&self.earlier)
    }
}

/// The threads of a session.
pub(super) struct Threads {
    crew: Crew,
    by_agent: BTreeMap<String, ThreadState>,
}

impl Threads {
    /// Takes up the threads that a session has.
    pub(super) fn new(crew: Crew, rows: Vec<ThreadRow>) -> Result<Self, DbError> {
        let mut by_agent = BTreeMap::new();
        for row in rows {
            let place = crew.place(row.thread, &row.agent_name);
            let mut projector = crew.projector(&place);
            let mut previews = Previews::default();
            let mut lines = Vec::with_capacity(row.records.len());
            for record in &row.records {
                let line = store::decode(record)?;
                if let Line::Record(record) = &line {
                    projector.project(record, &mut previews);
                }
                lines.push(line);
            }
            let earlier = if row.is_over {
                serde_json::from_str(&row.usage).unwrap_or_default()
            } else {
                SessionUsage::default()
            };
            let is_parked = projector.has_turn() && !row.is_running;
            let state = ThreadState {
                place,
                projector,
                previews,
                sidecar: row.sidecar,
                lines,
                appended: row.record_seq,
                records: Vec::new(),
                earlier,
                is_changed: false,
                sidecar_is_new: false,
                is_open: false,
                is_parked,
                is_over: row.is_over,
            };
            by_agent.insert(row.thread.agent(), state);
        }
        Ok(Self { crew, by_agent })
    }

    /// The agents, in the order of their ids.
    pub(super) fn agents(&self) -> Vec<String> {
        self.by_agent.keys().cloned().collect()
    }

    pub(super) fn sidecar(&self, agent: &str) -> Option<Value> {
        self.by_agent.get(agent).map(|thread| thread.sidecar.clone())
    }

    /// Keeps what is known of an agent; a thread begins with it. It is committed before anything that refers to the agent.
    pub(super) fn write_sidecar(&mut self, agent: &str, sidecar: &Value) -> Result<(), String> {
        if let Some(thread) = self.by_agent.get_mut(agent) {
            thread.sidecar_is_new |= thread.sidecar != *sidecar;
            thread.is_changed |= thread.sidecar_is_new;
            thread.sidecar = sidecar.clone();
            return Ok(());
        }
        let id = ThreadId::of_agent(agent).ok_or_else(|| format!("`{agent}` is not the ID of an agent"))?;
        let place = self.crew.place(id, sidecar["agentType"].as_str().unwrap_or_default());
        let thread = ThreadState {
            projector: self.crew.projector(&place),
            place,
            previews: Previews::default(),
            sidecar: sidecar.clone(),
            lines: Vec::new(),
            appended: 0,
            records: Vec::new(),
            earlier: SessionUsage::default(),
            is_changed: true,
            sidecar_is_new: true,
            is_open: false,
            is_parked: false,
            is_over: false,
        };
        self.by_agent.insert(agent.to_owned(), thread);
        Ok(())
    }

    /// Opens the log of an agent; `None` when it is open already or is not there.
    pub(super) fn open(&mut self, agent: &str) -> Option<(Vec<Line>, u64)> {
        let thread = self.by_agent.get_mut(agent).filter(|thread| !thread.is_open && !thread.is_over)?;
        thread.is_open = true;
        Some((thread.lines.clone(), thread.appended))
    }

    pub(super) fn close(&mut self, agent: &str) {
        if let Some(thread) = self.by_agent.get_mut(agent) {
            thread.is_open = false;
        }
    }

    pub(super) fn lines(&self, agent: &str) -> Option<(Vec<Line>, u64)> {
        self.by_agent.get(agent).map(|thread| (thread.lines.clone(), thread.appended))
    }

    /// Takes a record of an agent over.
    pub(super) fn append(&mut self, agent: &str, record: &Record) -> Result<Projected, LogStoreError> {
        let place = format!("of agent {agent}");
        let Some(thread) = self.by_agent.get_mut(agent) else { return Err(LogStoreError::Ended { place }) };
        let session = self.crew.session.to_string();
        let owner = Owner { session_id: &session, agent_id: Some(agent) };
        let row = store::encode(record, owner)
            .map_err(|error| LogStoreError::Failed { place, problem: error.to_string() })?;
        let mut projected = thread.projector.project(record, &mut thread.previews);
        if std::mem::replace(&mut thread.is_parked, false) {
            projected.events.insert(0, thread.place.running());
        }
        thread.records.push(row);
        thread.lines.push(Line::Record(record.clone()));
        thread.appended = record.seq;
        thread.is_changed = true;
        Ok(projected)
    }

    /// An agent waits for answers; the event that reports it.
    pub(super) fn park(&mut self, agent: &str) -> Option<crate::model::event::NewEvent> {
        let thread = self.by_agent.get_mut(agent)?;
        thread.is_parked = true;
        thread.is_changed = true;
        let waiting = thread.projector.all_waiting();
        Some(thread.place.idle(&StopReason::requires(&waiting)))
    }

    /// An agent has come to its end; the event by which the session gets what it said last.
    pub(super) fn end(&mut self, agent: &str) -> Option<crate::model::event::NewEvent> {
        let thread = self.by_agent.get_mut(agent)?;
        thread.is_over = true;
        thread.is_changed = true;
        thread.lines = Vec::new();
        let texts = thread.projector.last_texts();
        (!texts.is_empty()).then(|| thread.place.received(texts))
    }

    /// The event of a call of an agent that waits.
    pub(super) fn waiting(&self, agent: &str, call: &str) -> Option<EventId> {
        self.by_agent.get(agent)?.projector.waiting(call)
    }

    /// What all of them have used.
    pub(super) fn usage(&self) -> SessionUsage {
        self.by_agent.values().fold(SessionUsage::default(), |sum, thread| sum.plus(&thread.usage()))
    }

    pub(super) fn has_changes(&self) -> bool {
        self.by_agent.values().any(|thread| thread.is_changed)
    }

    /// Cuts what the next commit contains of them.
    pub(super) fn cut(&mut self) -> Vec<ThreadAppend> {
        let changed = self.by_agent.values_mut().filter(|thread| thread.is_changed);
        let cut = changed.map(|thread| {
            thread.is_changed = false;
            let records = std::mem::take(&mut thread.records);
            let is_new = std::mem::replace(&mut thread.sidecar_is_new, false);
            ThreadAppend {
                thread: thread.place.id,
                agent_name: thread.place.name.clone(),
                sidecar: is_new.then(|| thread.sidecar.clone()),
                expected: thread.appended - records.len() as u64,
                records,
                is_running: !thread.is_over && !thread.is_parked && thread.projector.has_turn(),
                usage: serde_json::to_string(&thread.usage()).unwrap_or_else(|_| "{}".to_owned()),
                is_over: thread.is_over,
            }
        });
        cut.collect()
    }
}
