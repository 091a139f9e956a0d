//! The arguments of `qodercli plugins`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::mcp::Where;

pub const HELP: &str = "\
Examples:
  qodercli plugins validate ./my-plugin
  qodercli plugins install ./my-plugin
  qodercli plugins disable my-plugin
  qodercli -p --plugin-dir ./my-plugin \"/my-plugin:review\"

Scopes: user is settings.json in your configuration (every project), project is .qoder/settings.json, local is
.qoder/settings.local.json. A project can switch off any plugin, and switch on what you have installed.";

/// Which settings file says that a plugin is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PluginScope {
    /// Your configuration: every project.
    User,
    /// The project's .qoder/settings.json: everyone who works on it.
    Project,
    /// The project's .qoder/settings.local.json: you, in this project.
    Local,
}

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub enum PluginsAction {
    /// List installed plugins: whether each is enabled, its contents, and problems.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Install a plugin: copy its folder, print what becomes active, and enable it.
    Install {
        /// The plugin's folder.
        folder: PathBuf,
        /// Where to switch it on.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Uninstall a plugin. Its data folder stays.
    Uninstall {
        /// Its name, or name@local.
        name: String,
        #[command(flatten)]
        place: Where,
    },
    /// Enable an installed plugin.
    Enable {
        /// Its name, or name@local.
        name: String,
        /// Where to switch it on.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Disable an installed plugin.
    Disable {
        /// Its name, or name@local.
        name: String,
        /// Where to switch it off.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Print what an installed plugin does now, and approve it again after its files changed.
    Approve {
        /// Its name, or name@local.
        name: String,
        #[command(flatten)]
        place: Where,
    },
    /// Validate a plugin's folder: print problems with file and line, and what would become active.
    ///
    /// Exit code 42 when there are any.
    Validate {
        /// The plugin's folder.
        folder: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
