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
        let found = self.plugins();
        let mut problems = found.problems.clone();
        let agents = self.agents(&found.plugins, agents, &mut problems)?;
        Ok(Loaded { plugins: found.plugins.clone(), agents: Arc::new(agents), problems })
    }
}
