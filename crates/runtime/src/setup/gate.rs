//! The gate of a session: the rules of all layers and of the servers' descriptions, the mode that was chosen, the places, and
//! what a question means where nobody can answer it.

use std::sync::{Mutex, RwLock};

use super::{Setup, SetupError, mode};
use crate::gate::{Gate, Unattended};
use crate::mcp::McpServers;

impl Setup {
    pub(super) fn gate(&self, servers: &McpServers) -> Result<Gate, SetupError> {
        let mut roots = self.roots()?;
        roots.extend(self.options.main_memory.clone());
        Ok(Gate {
            rules: RwLock::new(self.rules_with(servers)),
            mode: self.mode,
            mode_is_explicit: self.mode_is_explicit,
            mode_holds_anywhere: self.mode_is_explicit,
            trusted: self.trust.is_trusted(),
            mode_after_plan: mode::after_plan(&self.settings, self.trust),
            workspace: self.workspace(roots),
            unattended: self.unattended(),
            compiled: Mutex::default(),
        })
    }

    /// What an ask means without anyone. Loading has refused any other word.
    fn unattended(&self) -> Unattended {
        match self.settings.text("permissions.unattended") {
            Some("park") => Unattended::Park,
            _ => Unattended::Deny,
        }
    }
}
