//! A plugin: a folder with a name of its own that brings commands, agents, skills, hooks and servers.

use std::path::PathBuf;

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
    /// Files like `.mcp.json`.
    pub servers: Vec<PathBuf>,
}
