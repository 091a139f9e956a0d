//! The gate of a session: the rules of all layers and of the servers' descriptions, the mode that was chosen, the places, and
//! what a question means where no one can answer it.

use std::path::PathBuf;
use std::sync::{Mutex, RwLock};

use qoder_policy::Workspace;
use serde_json::Value;

use super::mode;
use crate::mcp::McpServers;
use crate::permissions::{Gate, Unattended};
use crate::setup::{Setup, SetupError};
use qoder_config::extensions::Loaded;
use qoder_config::scripts;

impl Setup {
    pub(in crate::setup) fn gate(&self, servers: &McpServers, loaded: &Loaded) -> Result<Gate, SetupError> {
        let mut roots = self.roots()?;
        roots.extend(self.options.main_memory.clone());
        let protected = self.scripts(loaded);
        Ok(Gate {
            rules: RwLock::new(self.rules_with(servers)),
            mode: self.mode,
            mode_is_explicit: self.mode_is_explicit,
            mode_holds_anywhere: self.mode_is_explicit,
            trusted: self.config.trust.is_trusted(),
            mode_after_plan: mode::after_plan(&self.config.settings, self.config.trust),
            workspace: Workspace { protected, ..self.workspace(roots) },
            unattended: self.unattended(),
            policies: self.options.tool_policies.clone(),
            option_names: self.options.option_names,
            compiled: Mutex::default(),
        })
    }

    /// What runs by itself later although it has no name that says so: the scripts of hooks, and plugins that lie outside
    /// the program's own folder.
    fn scripts(&self, loaded: &Loaded) -> Vec<PathBuf> {
        let mut folders = vec![self.config.project_root.as_path()];
        folders.extend((self.cwd != self.config.project_root).then_some(self.cwd.as_path()));
        let layers = self.config.settings.layers.iter().filter_map(|layer| layer.value.get("hooks"));
        let agents = loaded.agents.all().filter_map(|listed| listed.definition.hooks.as_ref());
        let hooks: Vec<&Value> = layers.chain(agents).collect();
        let mut found: Vec<PathBuf> = loaded.plugins.iter().map(|plugin| plugin.root.clone()).collect();
        for folder in folders {
            found.extend(hooks.iter().flat_map(|hooks| scripts::named(hooks, folder)));
        }
        found.sort();
        found.dedup();
        found
    }

    /// What an ask means without anyone. Loading has refused any other word.
    fn unattended(&self) -> Unattended {
        match self.config.settings.text("permissions.unattended") {
            Some("park") => Unattended::Park,
            _ => Unattended::Deny,
        }
    }
}
