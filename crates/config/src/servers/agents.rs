//! The servers that agents of files describe for themselves, as lists and approvals show them. Nothing is started here:
//! such a server runs while its agent works.

use super::inline::place_of;
use super::{Described, Place};
use crate::agents::{AgentList, ServerReference, Standing};

/// A server of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct OfAgent {
    /// The agent.
    pub agent: String,
    /// Its description.
    pub server: Described,
}

/// The servers of all agents that count. In a folder that is not trusted only those of the person's own agents.
#[must_use]
pub fn of_agents(agents: &AgentList) -> Vec<OfAgent> {
    let mut all = Vec::new();
    for one in agents.all().filter(|one| one.standing == Standing::Active) {
        let file = one.definition.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        for reference in one.definition.mcp_servers.iter().flatten() {
            match reference {
                ServerReference::Name(_) => {}
                ServerReference::Inline { name, config } => all.push(OfAgent {
                    agent: one.name.clone(),
                    server: Described {
                        name: name.clone(),
                        value: config.clone(),
                        place: place_of(&one.definition.origin),
                        at: format!("{file}, agent {}", one.name),
                        variables: Vec::new(),
                    },
                }),
            }
        }
    }
    all
}

impl OfAgent {
    /// True when it came with the folder.
    #[must_use]
    pub fn is_of_folder(&self) -> bool {
        self.server.place == Place::Project
    }
}
