//! The logs of the agents that a session has started, those of their own agents included: found by their names, with what
//! the sidecars beside them say.

use std::path::Path;

use super::sidecar::Sidecar;
use crate::layout::SessionPaths;

/// How deep folders of agents may lie in one another.
const DEPTH: usize = 8;
/// The most logs that are listed.
const MOST: usize = 10_000;

/// The log of an agent.
#[derive(Debug, Clone)]
pub struct AgentLog {
    /// Identifies the agent.
    pub agent_id: String,
    /// Its files.
    pub paths: SessionPaths,
    /// Which agent it is, if its sidecar says so.
    pub agent_type: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<String>,
    /// The agent that started it, when it was not the session itself.
    pub parent_agent_id: Option<String>,
    /// What its task is about.
    pub description: Option<String>,
}

/// The files of the agent `id` that a session, or an agent, with this side folder has started.
#[must_use]
pub fn agent_paths(side: &Path, id: &str) -> SessionPaths {
    SessionPaths::of_side(side).agent(id)
}

/// The ids of the agents that a session, or an agent, with this side folder has started, in order.
#[must_use]
pub fn agent_ids(side: &Path) -> Vec<String> {
    SessionPaths::of_side(side).agent_ids()
}

/// The logs of all agents of a session; parents before their own agents.
#[must_use]
pub fn agent_logs(session: &SessionPaths) -> Vec<AgentLog> {
    let mut logs = Vec::new();
    collect(session, DEPTH, &mut logs);
    logs
}

fn collect(session: &SessionPaths, depth: usize, logs: &mut Vec<AgentLog>) {
    for id in session.agent_ids() {
        if logs.len() >= MOST {
            return;
        }
        let sidecar = Sidecar::read(session, &id);
        let paths = session.agent(&id);
        logs.push(AgentLog {
            agent_id: id,
            paths: paths.clone(),
            agent_type: sidecar.as_ref().map(|one| one.agent_type.clone()),
            tool_use_id: sidecar.as_ref().map(|one| one.tool_use_id.clone()),
            parent_agent_id: sidecar.as_ref().and_then(|one| one.parent_agent_id.clone()),
            description: sidecar.map(|one| one.description),
        });
        if depth > 0 {
            collect(&paths, depth - 1, logs);
        }
    }
}
