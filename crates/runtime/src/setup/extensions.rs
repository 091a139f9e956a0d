//! What files define for a session, read in one go: at its start, and again when somebody asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Setup, SetupError};
use crate::agent::AgentDefinition;
use crate::extensions::Loaded;

impl Setup {
    /// Reads everything. `agents` are those of the front; what is wrong with files is among the problems.
    ///
    /// # Errors
    /// When settings about what was read cannot be used.
    pub fn extensions(&self, agents: BTreeMap<String, AgentDefinition>) -> Result<Loaded, SetupError> {
        let plugins = Vec::new();
        let mut problems = Vec::new();
        let agents = self.agents(&plugins, agents, &mut problems)?;
        let skills = self.skills(&plugins, &mut problems);
        let commands = self.commands(&plugins, &mut problems);
        Ok(Loaded {
            plugins,
            agents: Arc::new(agents),
            skills: Arc::new(skills),
            commands: Arc::new(commands),
            problems,
        })
    }
}
