//! What files define for a session, read in one go: at its start, and again when somebody asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Setup, SetupError};
use crate::agent::{AgentDefinition, AgentList};
use crate::extensions::Loaded;

impl Setup {
    /// Reads everything. `agents` are those of the front; what is wrong with them is an error, what is wrong with files
    /// is among the problems.
    pub(super) fn extensions(&self, agents: BTreeMap<String, AgentDefinition>) -> Result<Loaded, SetupError> {
        let agents =
            AgentList::new(agents).map_err(|problem| SetupError::Option { option: "agents", problem })?;
        let plugins = Vec::new();
        let mut problems = Vec::new();
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

    /// What files define here, for lists.
    ///
    /// # Errors
    /// When an option cannot be used.
    pub fn definitions(&self) -> Result<Loaded, SetupError> {
        self.extensions(BTreeMap::new())
    }
}
