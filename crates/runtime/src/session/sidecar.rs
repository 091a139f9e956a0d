//! What is kept beside an agent's log: which agent it is and which call started it. It is written before the log, so that
//! every log has a known owner, and by it a call finds the agent that it started in an earlier process.

use qoder_store::{SessionLocation, StoreError};
use qoder_types::Worktree;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most sidecars that are looked at.
const MOST: usize = 10_000;

/// What is known of an agent besides its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sidecar {
    /// Which agent it is.
    pub(crate) agent_type: String,
    /// The call that started it.
    pub(crate) tool_use_id: String,
    /// The agent that started it, when it was not the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent_agent_id: Option<String>,
    /// What its task is about.
    #[serde(default)]
    pub(crate) description: String,
    /// The worktree that it has for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
}

impl Sidecar {
    /// As an entry of the log that is shown to a mirror.
    pub(crate) fn entry(&self) -> Value {
        let mut entry = Map::from_iter([("type".to_owned(), Value::from("agent_metadata"))]);
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            entry.extend(fields);
        }
        Value::Object(entry)
    }

    /// Keeps it beside the log of an agent.
    pub(crate) fn write(&self, agent: &SessionLocation) -> Result<(), StoreError> {
        agent.write_sidecar(&json!(self))
    }

    /// The one of an agent, if it can be read.
    pub(crate) fn read(agent: &SessionLocation) -> Option<Self> {
        serde_json::from_value(agent.sidecar().ok()??).ok()
    }

    /// The agent that a call of `session` has started, if it has. Those that are over do not count: some models use the id
    /// of a call again for another one.
    pub(crate) fn of_call(
        session: &SessionLocation,
        tool_use_id: &str,
        is_over: impl Fn(&str) -> bool,
    ) -> Result<Option<(String, Self)>, StoreError> {
        let agents = session.agents()?.into_iter().take(MOST).filter(|agent| !is_over(agent.key().id()));
        let mut named = agents.filter_map(|agent| Some((agent.key().id().to_owned(), Self::read(&agent)?)));
        Ok(named.find(|(_, sidecar)| sidecar.tool_use_id == tool_use_id))
    }
}

/// How many agents the calls of `session` have started. Those that judged for hooks belong to no call.
pub(crate) fn count(session: &SessionLocation) -> Result<u64, StoreError> {
    let of_a_call =
        |agent: &SessionLocation| Sidecar::read(agent).is_none_or(|sidecar| !sidecar.tool_use_id.is_empty());
    Ok(session.agents()?.iter().take(MOST).filter(|agent| of_a_call(agent)).count() as u64)
}

#[cfg(test)]
mod tests {
    use qoder_store::jsonl::Durability;
    use qoder_store::layout::SessionPaths;

    use super::*;

    #[test]
    fn a_call_finds_the_agent_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let paths = SessionPaths::new(folder.path(), "s");
        let session = SessionLocation::in_files(&paths, Durability::Process);
        let of_call = |call: &str, over: &str| Sidecar::of_call(&session, call, |id| id == over).unwrap();
        assert_eq!(of_call("toolu_1", ""), None);
        let sidecar = |call: &str| Sidecar {
            agent_type: "Explore".to_owned(),
            tool_use_id: call.to_owned(),
            parent_agent_id: None,
            description: "looks".to_owned(),
            worktree: None,
        };
        sidecar("toolu_1").write(&session.agent("aa")).unwrap();
        sidecar("toolu_2").write(&session.agent("bb")).unwrap();
        std::fs::write(paths.agent("cc").sidecar(), "{ broken").unwrap();
        assert_eq!(of_call("toolu_2", ""), Some(("bb".to_owned(), sidecar("toolu_2"))));
        assert_eq!(of_call("toolu_2", "bb"), None);
        assert_eq!(of_call("toolu_3", ""), None);
        sidecar("").write(&session.agent("dd")).unwrap();
        assert_eq!(count(&session).unwrap(), 3);
        assert_eq!(sidecar("toolu_1").entry()["type"], "agent_metadata");
    }
}
