//! What files outside the program define for a session: agents, skills, commands and hooks of the person, of a trusted
//! project and of plugins. This file owns where such files lie and who wrote them, and the set that was read last; what
//! each kind of file means is read in a place of its own. A file that cannot be read is a [`Problem`], never a failure.

mod changes;
mod document;
pub(crate) mod files;
pub(crate) mod head;
pub mod plugin;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use qoder_types::RuleSource;

use crate::agent::AgentList;
use crate::commands::CommandList;
use crate::hooks::files as hook_files;
use crate::setup::Setup;
use crate::skills::SkillList;

pub use document::Document;
pub use plugin::{Found, Plugin, PluginParts};

/// Who wrote a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It comes with the program.
    BuiltIn,
    /// The person, in the configuration root.
    User,
    /// The project, in its `.qoder` folder.
    Project,
    /// The plugin of this name.
    Plugin(String),
    /// The command line, or the program that embeds this one.
    Flag,
}

impl Origin {
    /// The word for it on the wire and to people.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin(_) => "plugin",
            Self::Flag => "flag",
        }
    }

    /// What stands in front of the names of commands and skills: the plugin's name and a colon.
    #[must_use]
    pub fn qualified(&self, name: &str) -> String {
        match self {
            Self::Plugin(plugin) => format!("{plugin}:{name}"),
            Self::BuiltIn | Self::User | Self::Project | Self::Flag => name.to_owned(),
        }
    }
}

/// Something in a definition that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// What is wrong, and what is accepted.
    pub text: String,
    /// Whose file it is.
    pub origin: Origin,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}", self.text)
    }
}

/// A folder, or a single file, with definitions of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Who wrote what lies there.
    pub origin: Origin,
    /// The folder or file; it need not exist.
    pub path: PathBuf,
}

/// The kinds of files that lie in folders of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `agents/*.md`.
    Agents,
    /// `skills/<name>/SKILL.md`.
    Skills,
    /// `commands/**/*.md`.
    Commands,
}

impl Kind {
    /// The folder's name.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Skills => "skills",
            Self::Commands => "commands",
        }
    }
}

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
    pub(crate) places: Vec<(Kind, PathBuf)>,
    /// The same for sets whose plugins were read at one time.
    pub(crate) reading: Arc<()>,
}

/// Reads a set anew, or says why it cannot.
pub type ReadAgain = Arc<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

impl Loaded {
    /// How many definitions of each kind a plugin brings.
    #[must_use]
    pub fn brought_by(&self, plugin: &Plugin) -> Vec<(&'static str, usize)> {
        let origin = Origin::Plugin(plugin.name.clone());
        let agents = self.agents.all().filter(|one| one.definition.origin == origin).count();
        let commands = self.commands.iter().filter(|one| one.origin == origin).count();
        let skills = self.skills.iter().filter(|one| one.origin == origin).count();
        let hooks = hook_files::of_plugin(plugin).0.len();
        vec![("commands", commands), ("agents", agents), ("skills", skills), ("hooks", hooks)]
    }
}

/// What was read last. It is replaced as a whole, so whoever holds one set sees nothing change under it.
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
    pub(crate) fn changed(&self) -> Vec<(Kind, PathBuf)> {
        let now = changes::look(&self.current().places);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changes::differences(&seen, &now);
        *seen = now;
        changed
    }

    /// Reads agents, skills and commands again; those of the kinds in `kept` stay, and so do plugins with what else they
    /// bring. Answers with what is wrong now and was not before.
    pub(crate) fn read_again(&self, kept: &[Kind]) -> Result<Vec<Problem>, String> {
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

impl Setup {
    /// Where definitions of a kind lie, lowest first: the person's, the project's when it is trusted, those of plugins.
    /// Setting sources that are left out leave their definitions out too.
    #[must_use]
    pub fn places(&self, kind: Kind, plugins: &[Plugin]) -> Vec<Place> {
        let wanted = |source| self.options.setting_sources.as_ref().is_none_or(|all| all.contains(&source));
        let place = |origin, root: &Path| Place { origin, path: root.join(kind.folder()) };
        let mut places = Vec::new();
        if wanted(RuleSource::UserSettings) {
            places.push(place(Origin::User, &self.config_root));
        }
        if wanted(RuleSource::ProjectSettings) && self.trust.is_trusted() {
            places.push(place(Origin::Project, &self.project_root.join(".qoder")));
        }
        for plugin in plugins {
            let paths = match kind {
                Kind::Agents => &plugin.parts.agents,
                Kind::Skills => &plugin.parts.skills,
                Kind::Commands => &plugin.parts.commands,
            };
            let origin = Origin::Plugin(plugin.name.clone());
            places.extend(paths.iter().map(|path| Place { origin: origin.clone(), path: path.clone() }));
        }
        places
    }
}
