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

/// The logs of all agents of a session; parents before their own agents.
#[must_use]
pub fn agent_logs(session: &SessionPaths) -> Vec<AgentLog> {
    let mut logs = Vec::new();
    collect(&session.side, DEPTH, &mut logs);
    logs
}

fn collect(side: &Path, depth: usize, logs: &mut Vec<AgentLog>) {
    let folder = side.join(FOLDER);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut stems: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    stems.sort();
    for stem in stems {
        let Some(id) = stem.strip_prefix(PREFIX).filter(|_| logs.len() < MOST) else { continue };
        let sidecar = Sidecar::read(&folder, id);
        let paths = SessionPaths::new(&folder, &stem);
        let side = paths.side.clone();
        logs.push(AgentLog {
            agent_id: id.to_owned(),
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
