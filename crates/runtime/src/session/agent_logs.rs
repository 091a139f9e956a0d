//! The logs of the agents that a session has started, those of their own agents included, with what the sidecars beside them
//! say.

use qoder_store::{SessionLocation, StoreError};

use super::sidecar::Sidecar;

/// How deep agents may lie in one another.
const DEPTH: usize = 8;
/// The most logs that are listed.
const MOST: usize = 10_000;

/// The log of an agent.
#[derive(Debug, Clone)]
pub struct AgentLog {
    /// Identifies the agent.
    pub agent_id: String,
    /// Where it is kept.
    pub location: SessionLocation,
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
///
/// # Errors
/// When the store cannot list them.
pub fn agent_logs(session: &SessionLocation) -> Result<Vec<AgentLog>, StoreError> {
    let mut logs = Vec::new();
    collect(session, DEPTH, &mut logs)?;
    Ok(logs)
}

fn collect(session: &SessionLocation, depth: usize, logs: &mut Vec<AgentLog>) -> Result<(), StoreError> {
    for agent in session.agents()? {
        if logs.len() >= MOST {
            break;
        }
        let sidecar = Sidecar::read(&agent);
        logs.push(AgentLog {
            agent_id: agent.key().id().to_owned(),
            location: agent.clone(),
            agent_type: sidecar.as_ref().map(|one| one.agent_type.clone()),
            tool_use_id: sidecar.as_ref().map(|one| one.tool_use_id.clone()),
            parent_agent_id: sidecar.as_ref().and_then(|one| one.parent_agent_id.clone()),
            description: sidecar.map(|one| one.description),
        });
        if depth > 0 {
            collect(&agent, depth - 1, logs)?;
        }
    }
    Ok(())
}
