//! What files define for a session, read in one go: at its start, and again when somebody asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Setup, SetupError, options};
use crate::agent::AgentDefinition;
use crate::extensions::{Extensions, Kind, Loaded, ReadAgain};
use crate::hooks::files;
use crate::notice::Notice;
use crate::redacted_host::RedactedHost;

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
        problems.extend(plugins.iter().flat_map(|plugin| files::of_plugin(plugin).1));
        let agents = self.agents(&plugins, agents, &mut problems)?;
        let skills = self.skills(&plugins, &mut problems);
        let commands = self.commands(&plugins, &mut problems);
        let of_kind = |kind| self.places(kind, &plugins).into_iter().map(move |place| (kind, place.path));
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

    /// What counts in a session, and may be read again while it runs. `host` has what is wrong with it.
    pub(super) fn live_extensions(
        &self,
        agents: BTreeMap<String, AgentDefinition>,
        host: &RedactedHost,
    ) -> Result<Arc<Extensions>, SetupError> {
        let extensions = Arc::new(Extensions::new(self.extensions(agents.clone())?));
        host.hold(extensions.current().problems.iter().map(|problem| Notice::from(problem.to_string())));
        extensions.read_by(self.reader(agents));
        Ok(extensions)
    }

    /// Reads everything again, with the settings as they are then.
    pub(crate) fn reader(&self, agents: BTreeMap<String, AgentDefinition>) -> ReadAgain {
        let options = self.options.clone();
        let told = |error: SetupError| format!("{error}. {}", error.hint());
        Arc::new(move || {
            let setup = Self::prepare(options.clone()).map_err(told)?;
            setup.extensions(agents.clone()).map_err(told)
        })
    }
}
