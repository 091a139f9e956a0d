//! Where definitions come from: who wrote one, where files of each kind lie, and what is wrong with a file. Reading a
//! Markdown file with a head, and listing folders within bounds, have files of their own.

mod digest;
mod document;
pub(crate) mod files;
pub(crate) mod head;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

pub use digest::digest;
pub use document::Document;

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

    /// What precedes the names of commands and skills: the plugin's name and a colon.
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

/// What shows that a file has changed.
pub type Stamp = (Option<SystemTime>, u64);

/// The stamp of a path; `None` when nothing is there.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let facts = path.metadata().ok()?;
    Some((facts.modified().ok(), facts.len()))
}

/// What a JSON value is, for people.
#[must_use]
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
