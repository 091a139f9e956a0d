//! A plugin: a folder with a name of its own that brings commands, agents, skills, hooks and servers. Those of a session
//! are named for the run or installed and switched on; what lies in the parts is read where each kind of part is read.

mod content;
mod error;
mod installed;
pub(crate) mod manifest;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sources::{Origin, Problem};

pub use error::{NotApproved, PluginError};
pub use installed::{Installed, MARKET, Staged, approve, folder_of, stage, uninstall};
pub use manifest::line_and_text;

/// The source of a plugin that was named for this run.
pub const INLINE: &str = "inline";

/// A plugin that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// From its manifest, else the folder's name.
    pub name: String,
    /// Its folder; real path.
    pub root: PathBuf,
    /// A folder that it may write into; made when it is first needed.
    pub data: PathBuf,
    /// From its manifest.
    pub version: Option<String>,
    /// From its manifest.
    pub description: Option<String>,
    /// `inline` for one that was named for this run, else its identifier such as `name@local`.
    pub source: String,
    /// Where its parts lie.
    pub parts: PluginParts,
    /// For people: what it has that this version does nothing with.
    pub notes: Vec<String>,
}

/// Where the parts of a plugin lie: folders or files inside it that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginParts {
    /// Folders of commands, or single files.
    pub commands: Vec<PathBuf>,
    /// Folders of agents, or single files.
    pub agents: Vec<PathBuf>,
    /// Folders that hold one folder per skill.
    pub skills: Vec<PathBuf>,
    /// Files like `hooks/hooks.json`.
    pub hooks: Vec<PathBuf>,
    /// Files like `.mcp.json`; the manifest itself when it describes servers.
    pub servers: Vec<PathBuf>,
}

impl PluginParts {
    /// True when there is nothing that a session could use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { commands, agents, skills, hooks, servers } = self;
        [commands, agents, skills, hooks, servers].into_iter().all(Vec::is_empty)
    }
}

impl Plugin {
    /// What its hooks and the descriptions of its servers may name: its folder and the one that it may write into.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 2] {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [("QODER_PLUGIN_ROOT", text(&self.root)), ("QODER_PLUGIN_DATA", text(&self.data))]
    }

    /// As the message that opens a turn has it.
    #[must_use]
    pub fn row(&self) -> Value {
        let mut row = json!({ "name": self.name, "path": self.root, "source": self.source });
        if let Some(version) = &self.version {
            row["version"] = json!(version);
        }
        row
    }

    /// Makes the folder that it may write into, for programs that it brings.
    pub fn prepare_data(&self) {
        use std::os::unix::fs::DirBuilderExt;
        if !(self.parts.hooks.is_empty() && self.parts.servers.is_empty()) {
            // A program that cannot write there says so itself, and many never want to.
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.data);
        }
    }
}

/// What is wrong with plugins, as the message that opens a turn has it.
#[must_use]
pub fn error_rows(problems: &[Problem]) -> Vec<Value> {
    let row = |problem: &Problem| match &problem.origin {
        Origin::Plugin(name) => Some(json!({
            "plugin": name, "type": "load_error", "message": problem.to_string(), "path": problem.path,
        })),
        Origin::BuiltIn | Origin::User | Origin::Project | Origin::Flag => None,
    };
    problems.iter().filter_map(row).collect()
}
