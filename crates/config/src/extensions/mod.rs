//! What files outside the program define for a session: agents, skills, commands and hooks of the person, of a trusted
//! project and of plugins. This file owns the set that was read last; which plugins there are and what `/name` stands for
//! have files of their own. A file that cannot be read is a [`Problem`], never a failure.

mod changes;
mod commands;
mod plugins;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::agents::AgentList;
use crate::commands::CommandList;
use crate::hooks;
use crate::plugins::Plugin;
use crate::skills::SkillList;
use crate::sources::{Kind, Origin, Problem};

pub use commands::{CommandRow, rows_of};
pub use plugins::{PluginSet, switched_on};

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The plugins, in the order in which they were named.
    pub plugins: Vec<Plugin>,
    /// The agents of all sources.
    pub agents: Arc<AgentList>,
    /// The skills of all sources.
    pub skills: Arc<SkillList>,
    /// The commands of all sources.
    pub commands: Arc<CommandList>,
    /// What could not be used.
    pub problems: Vec<Problem>,
    /// Where skills and agents were looked for.
    pub places: Vec<(Kind, PathBuf)>,
    /// The same for sets whose plugins were read at one time.
    pub reading: Arc<()>,
}

/// A set that could not be read anew, because settings or options cannot be used as they are now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ReloadError {
    /// What is wrong, and what to do about it.
    pub problem: String,
}

impl ReloadError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "definitions_reload"
    }
}

/// Reads a set anew, or says why it cannot.
pub type ReadAgain = Arc<dyn Fn() -> Result<Loaded, ReloadError> + Send + Sync>;

impl Loaded {
    /// How many definitions of each kind a plugin brings.
    #[must_use]
    pub fn brought_by(&self, plugin: &Plugin) -> Vec<(&'static str, usize)> {
        let origin = Origin::Plugin(plugin.name.clone());
        let agents = self.agents.all().filter(|one| one.definition.origin == origin).count();
        let commands = self.commands.iter().filter(|one| one.origin == origin).count();
        let skills = self.skills.iter().filter(|one| one.origin == origin).count();
        let hooks = hooks::of_plugin(plugin).0.len();
        vec![("commands", commands), ("agents", agents), ("skills", skills), ("hooks", hooks)]
    }
}

/// What was read last. It is replaced as a whole, so a holder of one set sees no change in it.
#[derive(Default)]
pub struct Extensions {
    current: RwLock<Arc<Loaded>>,
    reader: Mutex<Option<ReadAgain>>,
    seen: Mutex<changes::Seen>,
}

impl Extensions {
    /// Begins with this set.
    #[must_use]
    pub fn new(loaded: Loaded) -> Self {
        let seen = Mutex::new(changes::look(&loaded.places));
        Self { current: RwLock::new(Arc::new(loaded)), reader: Mutex::default(), seen }
    }

    /// Reads it anew in this way from now on.
    pub fn read_by(&self, reader: ReadAgain) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// The set that counts now.
    #[must_use]
    pub fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another set in its place.
    pub fn replace(&self, loaded: Loaded) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = changes::look(&loaded.places);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
    }

    /// The files of skills and agents that changed since the last look.
    #[must_use]
    pub fn changed(&self) -> Vec<(Kind, PathBuf)> {
        let now = changes::look(&self.current().places);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changes::differences(&seen, &now);
        *seen = now;
        changed
    }

    /// Reads agents, skills and commands again; those of the kinds in `kept` stay, and so do plugins with what else they
    /// bring. Answers with what is wrong now and was not before.
    ///
    /// # Errors
    /// When settings or options cannot be used as they are now.
    pub fn read_again(&self, kept: &[Kind]) -> Result<Vec<Problem>, ReloadError> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(reader) = reader else { return Ok(Vec::new()) };
        let (before, mut now) = (self.current(), reader()?);
        now.plugins.clone_from(&before.plugins);
        now.reading = Arc::clone(&before.reading);
        for kind in kept {
            match kind {
                Kind::Agents => now.agents = Arc::clone(&before.agents),
                Kind::Skills => now.skills = Arc::clone(&before.skills),
                Kind::Commands => now.commands = Arc::clone(&before.commands),
            }
        }
        let is_new = |problem: &&Problem| !before.problems.contains(problem);
        let problems = now.problems.iter().filter(is_new).cloned().collect();
        self.replace(now);
        Ok(problems)
    }
}
