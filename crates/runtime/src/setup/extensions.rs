//! What files define for a session, read in one go: at its start, and again on request.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Setup, SetupError, options};
use crate::events::Hub;
use crate::events::Notice;
use qoder_config::agents::AgentDefinition;
use qoder_config::extensions::PluginSet;
use qoder_config::extensions::{Extensions, Loaded, ReadAgain, ReloadError};
use qoder_config::sources::Kind;
use qoder_config::{commands, hooks, skills};

impl Setup {
    /// Reads everything. `agents` are those of the front; what is wrong with files is among the problems.
    ///
    /// # Errors
    /// When settings about what was read cannot be used.
    pub fn extensions(&self, agents: BTreeMap<String, AgentDefinition>) -> Result<Loaded, SetupError> {
        options::check_skills(self.options.skills.as_ref())?;
        let found = self.plugins();
        let plugins = found.plugins.clone();
        let mut problems = found.problems.clone();
        problems.extend(plugins.iter().flat_map(|plugin| hooks::of_plugin(plugin).1));
        let agents = self.agents(&plugins, agents, &mut problems)?;
        let wanted = (self.options.skill_dirs.as_slice(), self.options.skills.as_ref());
        let skills = skills::skills(&self.config, &plugins, wanted, &mut problems);
        let commands = commands::commands(&self.config, &plugins, &mut problems);
        let of_kind =
            |kind| self.config.places(kind, &plugins).into_iter().map(move |place| (kind, place.path));
        let places = [Kind::Skills, Kind::Agents].into_iter().flat_map(of_kind).collect();
        Ok(Loaded {
            places,
            reading: Arc::default(),
            plugins,
            agents: Arc::new(agents),
            skills: Arc::new(skills),
            commands: Arc::new(commands),
            problems,
        })
    }

    /// The plugins of the session; looked for when a caller first asks.
    pub fn plugins(&self) -> &PluginSet {
        self.plugins.get_or_init(|| PluginSet::look(&self.config, &self.options.plugin_dirs))
    }

    /// What counts in a session, and may be read again while it runs. `host` has what is wrong with it.
    pub(super) fn live_extensions(
        &self,
        agents: BTreeMap<String, AgentDefinition>,
        hub: &Hub,
    ) -> Result<Arc<Extensions>, SetupError> {
        let extensions = Arc::new(Extensions::new(self.extensions(agents.clone())?));
        hub.hold(extensions.current().problems.iter().map(|problem| Notice::from(problem.to_string())));
        extensions.read_by(self.reader(agents));
        Ok(extensions)
    }

    /// Reads everything again, with the settings as they are then.
    pub(crate) fn reader(&self, agents: BTreeMap<String, AgentDefinition>) -> ReadAgain {
        let options = self.options.clone();
        let told = |error: SetupError| ReloadError { problem: format!("{error}. {}", error.hint()) };
        Arc::new(move || {
            let setup = Self::prepare(options.clone()).map_err(told)?;
            setup.extensions(agents.clone()).map_err(told)
        })
    }
}
