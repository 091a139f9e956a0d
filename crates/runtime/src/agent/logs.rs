//! The logs of the agents that a session has started, those of their own agents included: found by their names, with what
//! the sidecars beside them say.

use std::path::Path;

use super::FOLDER;
use super::sidecar::{PREFIX, Sidecar};
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
    SessionPaths::new(&side.join(FOLDER), &format!("{PREFIX}{id}"))
}

/// The ids of the agents that a session, or an agent, with this side folder has started, in order.
#[must_use]
pub fn agent_ids(side: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(side.join(FOLDER)).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut ids: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".jsonl")?.strip_prefix(PREFIX)?.to_owned()))
        .collect();
    ids.sort();
    ids
}

/// The logs of all agents of a session; parents before their own agents.
#[must_use]
pub fn agent_logs(session: &SessionPaths) -> Vec<AgentLog> {
    let mut logs = Vec::new();
    collect(&session.side, DEPTH, &mut logs);
    logs
}

fn collect(side: &Path, depth: usize, logs: &mut Vec<AgentLog>) {
    let folder = side.join(FOLDER);
    for id in agent_ids(side) {
        if logs.len() >= MOST {
            return;
        }
        let sidecar = Sidecar::read(&folder, &id);
        let paths = agent_paths(side, &id);
        let side = paths.side.clone();
        logs.push(AgentLog {
            agent_id: id,
            paths,
            agent_type: sidecar.as_ref().map(|one| one.agent_type.clone()),
            tool_use_id: sidecar.as_ref().map(|one| one.tool_use_id.clone()),
            parent_agent_id: sidecar.as_ref().and_then(|one| one.parent_agent_id.clone()),
            description: sidecar.map(|one| one.description),
        });
        if depth > 0 {
            collect(&side, depth - 1, logs);
        }
    }
}
