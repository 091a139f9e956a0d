//! The places where servers are described, lowest first, and reading them. A project's file that cannot be read is
//! reported and left out; an invalid description on the command line is an error.

use std::path::{Path, PathBuf};

use qoder_types::RuleSource;
use qoder_types::server::Scope;
use serde_json::Value;

use crate::configuration::Configuration;
use crate::settings::{Layer, SettingsError, read_plain, read_plain_text};

/// What `--mcp-config` says cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--mcp-config: {problem}")]
pub struct McpConfigError {
    /// What is wrong and what is accepted.
    pub problem: String,
}

impl McpConfigError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "mcp_config_flag"
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "Pass a file, or JSON such as {\"mcpServers\": {\"name\": {\"command\": \"…\"}}}"
    }
}

/// The key under which servers are described.
pub(super) const KEY: &str = "mcpServers";

/// Where a description is, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A plugin.
    Plugin,
    /// `.qoder/settings.json` of the project.
    ProjectSettings,
    /// `.mcp.json` of the project.
    Project,
    /// The user's settings.
    User,
    /// `.qoder/settings.local.json` of the project.
    Local,
    /// `--settings`.
    Settings,
    /// `--mcp-config`.
    Flag,
}

impl Place {
    /// The scope that status rows and commands name.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Self::Plugin => Scope::Plugin,
            Self::ProjectSettings | Self::Project => Scope::Project,
            Self::User => Scope::User,
            Self::Local => Scope::Local,
            Self::Settings | Self::Flag => Scope::Flag,
        }
    }

    /// True when the description came with the folder, or may have: a local file may have been written here or
    /// unpacked with the rest.
    #[must_use]
    pub fn is_of_folder(self) -> bool {
        match self {
            Self::ProjectSettings | Self::Project | Self::Local => true,
            Self::Plugin | Self::User | Self::Settings | Self::Flag => false,
        }
    }
}

/// A description as it is in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The server's name.
    pub name: String,
    /// What is written, variables included.
    pub value: Value,
    /// Where.
    pub place: Place,
    /// The file and line, for people.
    pub at: String,
    /// Variables that only this description may name, besides those of the environment.
    pub variables: Vec<(&'static str, String)>,
}

/// Everything that files describe, and plugins with them, lowest place first. In a folder that is not trusted only the user's own and those of
/// plugins.
#[must_use]
pub fn described(
    config: &Configuration,
    of_plugins: &[Described],
    warnings: &mut Vec<String>,
) -> Vec<Described> {
    let mut all = of_plugins.to_vec();
    for layer in &config.settings.layers {
        let place = match layer.source {
            RuleSource::UserSettings => Place::User,
            RuleSource::ProjectSettings => Place::ProjectSettings,
            RuleSource::LocalSettings => Place::Local,
            RuleSource::FlagSettings | RuleSource::CliArg | RuleSource::Command | RuleSource::Session => {
                Place::Settings
            }
        };
        match of_layer(layer, place) {
            Ok(found) => all.extend(found),
            Err(problem) => warnings.push(problem),
        }
    }
    let project = RuleSource::ProjectSettings;
    let reads_project = config.setting_sources.as_ref().is_none_or(|list| list.contains(&project));
    if reads_project && config.trust.is_trusted() {
        match read_plain(&project_file(&config.project_root)) {
            Ok(None) => {}
            Ok(Some(layer)) => match of_layer(&layer, Place::Project) {
                Ok(found) => all.extend(found),
                Err(problem) => warnings.push(problem),
            },
            Err(error) => warnings.push(format!("{error}; no server of this file is used")),
        }
    }
    all.sort_by_key(|one| one.place);
    all
}

/// The project's file.
pub(super) fn project_file(project_root: &Path) -> PathBuf {
    project_root.join(".mcp.json")
}

/// What `--mcp-config` describes.
pub(super) fn flags(configs: &[String]) -> Result<Vec<Described>, McpConfigError> {
    let wrong = |problem: String| McpConfigError { problem };
    let mut all = Vec::new();
    for text in configs {
        let layer = if text.trim_start().starts_with('{') {
            read_plain_text("--mcp-config", text)
        } else {
            let path = Path::new(text);
            let missing = || SettingsError::Unreadable {
                path: path.to_path_buf(),
                problem: "there is no such file".to_owned(),
            };
            read_plain(path).and_then(|layer| layer.ok_or_else(missing))
        };
        let layer = layer.map_err(|error| wrong(error.to_string()))?;
        if layer.value.get(KEY).is_none() {
            let problem =
                "has no object `mcpServers`; give {\"mcpServers\": {\"name\": {…}}}, or a file with it";
            return Err(wrong(problem.to_owned()));
        }
        all.extend(of_layer(&layer, Place::Flag).map_err(wrong)?);
    }
    Ok(all)
}

pub(super) fn of_layer(layer: &Layer, place: Place) -> Result<Vec<Described>, String> {
    let name =
        if layer.file.is_none() && place == Place::Flag { "--mcp-config".to_owned() } else { layer.name() };
    let at = |path: &[&str]| format!("{name}{}", layer.lines_at(path));
    match layer.value.get(KEY) {
        None => Ok(Vec::new()),
        Some(Value::Object(servers)) => {
            let one = |(server, value): (&String, &Value)| Described {
                name: server.clone(),
                value: value.clone(),
                place,
                at: at(&[KEY, server]),
                variables: Vec::new(),
            };
            Ok(servers.iter().map(one).collect())
        }
        Some(_) => Err(format!("{}: `{KEY}` must be an object with a server under each name", at(&[KEY]))),
    }
}
