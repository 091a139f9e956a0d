//! The file beside an agent's log that says which agent it is and which call started it. It is written before the log,
//! so that every log has a known owner, and by it a call finds the agent that it started in an earlier process.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use qoder_types::Worktree;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::layout::SessionPaths;
use crate::store::folders;

/// The most bytes of a sidecar.
const LARGEST: u64 = 64 * 1024;
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

    /// Writes it beside the log of an agent of `session`, in one step, so that it survives a loss of power: without it
    /// the agent cannot be resumed.
    pub(crate) fn write(&self, session: &SessionPaths, agent_id: &str) -> std::io::Result<()> {
        folders::create(&session.agents())?;
        let path = session.sidecar(agent_id);
        let unfinished = path.with_extension("new");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        std::fs::rename(unfinished, path)?;
        folders::sync(&session.agents())
    }

    /// The one of this agent, if it can be read.
    pub(super) fn read(session: &SessionPaths, agent_id: &str) -> Option<Self> {
        read(&session.sidecar(agent_id))
    }

    /// The agent that a call has started, if it has. Those that are over do not count: some models use the id of a call
    /// again for another one.
    pub(super) fn of_call(
        session: &SessionPaths,
        tool_use_id: &str,
        is_over: impl Fn(&str) -> bool,
    ) -> Option<(String, Self)> {
        let open = session.sidecars().take(MOST).filter(|(id, _)| !is_over(id));
        let mut named = open.filter_map(|(id, path)| Some((id, read(&path)?)));
        named.find(|(_, sidecar)| sidecar.tool_use_id == tool_use_id)
    }
}

/// How many agents that calls of `session` have started left a sidecar. Those that judged for hooks belong to no call.
pub(super) fn count(session: &SessionPaths) -> u64 {
    let of_a_call = |path: &Path| read(path).is_none_or(|sidecar| !sidecar.tool_use_id.is_empty());
    session.sidecars().take(MOST).filter(|(_, path)| of_a_call(path)).count() as u64
}

fn read(path: &Path) -> Option<Sidecar> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_finds_the_agent_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionPaths::new(folder.path(), "s");
        assert_eq!(Sidecar::of_call(&session, "toolu_1", |_| false), None);
        let sidecar = |call: &str| Sidecar {
            agent_type: "Explore".to_owned(),
            tool_use_id: call.to_owned(),
            parent_agent_id: None,
            description: "looks".to_owned(),
            worktree: None,
        };
        sidecar("toolu_1").write(&session, "aa").unwrap();
        sidecar("toolu_2").write(&session, "bb").unwrap();
        std::fs::write(session.sidecar("cc"), "{ broken").unwrap();
        assert_eq!(
            Sidecar::of_call(&session, "toolu_2", |_| false),
            Some(("bb".to_owned(), sidecar("toolu_2")))
        );
        assert_eq!(Sidecar::of_call(&session, "toolu_2", |id| id == "bb"), None);
        assert_eq!(Sidecar::of_call(&session, "toolu_3", |_| false), None);
        sidecar("").write(&session, "dd").unwrap();
        assert_eq!(count(&session), 3);
        assert_eq!(sidecar("toolu_1").entry()["type"], "agent_metadata");
    }
}
