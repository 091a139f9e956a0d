//! What files define for a session, read in one go: at its start, and again when somebody asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Setup, SetupError};
use crate::agent::{AgentDefinition, AgentList};
use crate::extensions::Loaded;

impl Setup {
    /// What files alone define, for commands that show it.
    ///
    /// # Errors
    /// When settings that concern definitions cannot be used.
    pub fn defined_by_files(&self) -> Result<Loaded, SetupError> {
        self.extensions(BTreeMap::new())
    }

    /// Reads everything. `agents` are those of the front; what is wrong with them is an error, what is wrong with files
    /// is among the problems.
    pub(crate) fn extensions(&self, agents: BTreeMap<String, AgentDefinition>) -> Result<Loaded, SetupError> {
        let agents =
            AgentList::new(agents).map_err(|problem| SetupError::Option { option: "agents", problem })?;
        let found = self.plugins();
        Ok(Loaded { plugins: found.plugins.clone(), agents: Arc::new(agents), problems: found.problems.clone() })
    }
}
