//! Memory files and rules: `AGENTS.md` and `.qoder/rules/**/*.md`, from the user's folder and, in a trusted project,
//! from its top down to the working directory. They are context for the model, never enforcement. This file owns what
//! the model has from the start; what comes later, and what a rule's head says, have files of their own.

mod find;
mod rule;
mod session_memory;
mod watch;

use std::path::{Path, PathBuf};

use crate::settings::Settings;
use crate::sources::Problem;

use find::Finder;
pub use session_memory::Memory;
pub use watch::{LoadedFile, LoadedFiles};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The person's, for everything.
    User,
    /// The project's.
    Project,
    /// The person's, for this project.
    Local,
}

impl Owner {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
        }
    }
}

/// Why the model has a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It had it from the start.
    SessionStart,
    /// It lies beside a file that was worked on.
    NestedTraversal,
    /// It is a rule for a file that was worked on.
    PathGlobMatch,
}

impl Reason {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::NestedTraversal => "nested_traversal",
            Self::PathGlobMatch => "path_glob_match",
        }
    }
}

/// A piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPiece {
    /// Where it came from.
    pub path: PathBuf,
    /// What the model reads.
    pub text: String,
    /// Whose it is.
    pub owner: Owner,
    /// Why the model has it.
    pub reason: Reason,
    /// The patterns of a rule that counts for certain files.
    pub globs: Vec<String>,
    /// The files that it imports.
    pub included: Vec<PathBuf>,
    /// False when the prompt has only its path.
    pub is_whole: bool,
}

/// Where to look.
#[derive(Debug, Clone)]
pub struct MemoryPlaces {
    /// The configuration root.
    pub config_root: PathBuf,
    /// Working directory.
    pub cwd: PathBuf,
    /// Root of the project.
    pub project_root: PathBuf,
    /// Whether the person's own files count.
    pub user: bool,
    /// Whether the project's files count: it is trusted, and its settings are a source.
    pub project: bool,
    /// Whether the person's own files inside the project count.
    pub local: bool,
}

impl MemoryPlaces {
    /// The folders of the project that are looked at, outermost first.
    fn folders(&self, settings: &Settings) -> Vec<&Path> {
        let most =
            settings.get("context.discoveryMaxDirs").and_then(serde_json::Value::as_u64).unwrap_or(200);
        let above = self.cwd.ancestors().take_while(|folder| folder.starts_with(&self.project_root));
        let mut folders: Vec<&Path> = above.take(usize::try_from(most).unwrap_or(usize::MAX)).collect();
        folders.reverse();
        folders
    }

    /// The folder that a file of this owner may not lead out of.
    fn root(&self, owner: Owner) -> &Path {
        match owner {
            Owner::User => &self.config_root,
            Owner::Project | Owner::Local => &self.project_root,
        }
    }
}

/// What the model has from the start, and what is wrong with some of it.
#[derive(Debug, Default)]
pub struct Discovered {
    /// Everything, outermost first.
    pub pieces: Vec<MemoryPiece>,
    /// Heads of rules that cannot be read.
    pub problems: Vec<Problem>,
}

/// Finds and reads everything that counts from the start.
#[must_use]
pub fn discover(places: &MemoryPlaces, settings: &Settings) -> Discovered {
    let names = file_names(settings);
    let mut finder = Finder::new(excludes(settings), &places.project_root);
    if places.user {
        for name in &names {
            finder.file(&places.config_root.join(name), &places.config_root, Owner::User);
        }
        finder.rules(&places.config_root.join("rules"), &places.config_root, Owner::User);
    }
    for folder in places.folders(settings) {
        for name in &names {
            if places.project {
                finder.file(&folder.join(name), &places.project_root, Owner::Project);
            }
            if let Some(stem) = name.strip_suffix(".md").filter(|_| places.local) {
                finder.file(&folder.join(format!("{stem}.local.md")), &places.project_root, Owner::Local);
            }
        }
        if places.project {
            finder.rules(&folder.join(".qoder/rules"), &places.project_root, Owner::Project);
        }
    }
    Discovered { pieces: finder.pieces, problems: finder.problems }
}

/// The files of the project that [`discover`] would read, by name alone.
pub fn candidates(places: &MemoryPlaces, settings: &Settings) -> Vec<PathBuf> {
    let (names, excluded) = (file_names(settings), excludes(settings));
    let mut found = Vec::new();
    for folder in places.folders(settings) {
        for name in &names {
            if places.project {
                found.push(folder.join(name));
            }
            if let Some(stem) = name.strip_suffix(".md").filter(|_| places.local) {
                found.push(folder.join(format!("{stem}.local.md")));
            }
        }
        if places.project {
            found.extend(find::rule_files(&folder.join(".qoder/rules")));
        }
    }
    found.retain(|path| path.is_file() && !excluded.is_match(path));
    found
}

fn file_names(settings: &Settings) -> Vec<String> {
    let names = settings.list("context.fileName");
    if names.is_empty() { vec!["AGENTS.md".to_owned()] } else { names }
}

fn excludes(settings: &Settings) -> globset::GlobSet {
    let mut set = globset::GlobSetBuilder::new();
    for glob in settings.list("agentsMdExcludes") {
        if let Ok(glob) = globset::Glob::new(&glob) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| globset::GlobSet::empty())
}
