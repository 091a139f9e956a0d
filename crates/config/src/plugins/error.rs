//! Why a plugin cannot be installed, approved or removed. What is wrong with a part of a plugin is no error of this kind:
//! it is reported as a problem while the rest is used.

use std::path::PathBuf;

use crate::settings::WriteError;
use crate::sources::Problem;

/// Something that prevents installing, approving or removing a plugin.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The plugin as a whole cannot be used.
    #[error("{0}")]
    Unusable(Problem),
    /// The folder holds nothing that a session could use.
    #[error("{} has no part of a plugin", .0.display())]
    NoParts(PathBuf),
    /// It is too much to be copied and watched.
    #[error("{} is too large for a plugin: {limit}", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// The limit that it breaks.
        limit: String,
    },
    /// A link leads out of the plugin, or to a folder.
    #[error("{} is a link that a plugin cannot have: {problem}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        problem: String,
    },
    /// Something that is neither a file nor a folder.
    #[error("{} is neither a file nor a folder", .0.display())]
    Special(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {problem}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// There is no installed plugin of this name.
    #[error("there is no installed plugin named `{name}`")]
    NotInstalled {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A file of the configuration cannot be changed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl PluginError {
    pub(super) fn io(action: &'static str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), problem: error.to_string() }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unusable(_) => "plugin_unusable",
            Self::NoParts(_) => "plugin_without_parts",
            Self::TooLarge { .. } => "plugin_too_large",
            Self::Link { .. } => "plugin_link",
            Self::Special(_) => "plugin_special_file",
            Self::Io { .. } => "plugin_io",
            Self::NotInstalled { .. } => "plugin_not_installed",
            Self::Write(_) => "plugin_write",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unusable(_) => "correct it and try again; docs/plugins.md shows what a plugin is".to_owned(),
            Self::NoParts(_) => {
                "a plugin has at least one of commands/, agents/, skills/, hooks/hooks.json, .mcp.json, output-styles/ \
                 and bin/"
                    .to_owned()
            }
            Self::TooLarge { .. } => {
                "leave out what the plugin does not need, such as caches and dependencies".to_owned()
            }
            Self::Link { .. } => "put the file itself there".to_owned(),
            Self::Special(_) => "take it out of the plugin".to_owned(),
            Self::Io { .. } => "check the path and its permissions".to_owned(),
            Self::NotInstalled { known, .. } if known.is_empty() => {
                "`qodercli plugins install DIR` installs one".to_owned()
            }
            Self::NotInstalled { known, .. } => format!("installed are: {}", known.join(", ")),
            Self::Write(_) => "check the configuration folder and its permissions".to_owned(),
        }
    }
}

/// Why the files of a plugin do not count.
#[derive(Debug, thiserror::Error)]
pub enum NotApproved {
    /// It is not in the list.
    #[error("it is not installed; `qodercli plugins install DIR` installs one")]
    NotInstalled,
    /// Its files are others than those that the person approved.
    #[error(
        "its files in {} are not those that were approved; look at them, then run `qodercli plugins approve {name}`",
        folder.display()
    )]
    Changed {
        /// The plugin.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// Its files cannot be compared.
    #[error(transparent)]
    Unreadable(#[from] PluginError),
}

impl NotApproved {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotInstalled => "plugin_not_installed",
            Self::Changed { .. } => "plugin_changed",
            Self::Unreadable(error) => error.code(),
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotInstalled => "run `qodercli plugins install DIR`".to_owned(),
            Self::Changed { name, .. } => {
                format!("look at the files, then run `qodercli plugins approve {name}`")
            }
            Self::Unreadable(error) => error.hint(),
        }
    }
}
