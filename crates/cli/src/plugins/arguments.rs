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
    /// The project's .qoder/settings.json: everybody who works on it.
    Project,
    /// The project's .qoder/settings.local.json: you, in this project.
    Local,
}

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub enum PluginsAction {
    /// The installed plugins, whether each is on, what it brings, and what is wrong with it.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Where,
    },
    /// Install a plugin: copy its folder, show what becomes active, and switch it on.
    Install {
        /// The plugin's folder.
        folder: PathBuf,
        /// Where to switch it on.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Remove an installed plugin. What it wrote into its data folder stays.
    Uninstall {
        /// Its name, or name@local.
        name: String,
        #[command(flatten)]
        place: Where,
    },
    /// Switch an installed plugin on.
    Enable {
        /// Its name, or name@local.
        name: String,
        /// Where to switch it on.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Switch an installed plugin off.
    Disable {
        /// Its name, or name@local.
        name: String,
        /// Where to switch it off.
        #[arg(short, long, value_enum, default_value = "user")]
        scope: PluginScope,
        #[command(flatten)]
        place: Where,
    },
    /// Show what an installed plugin does now, and approve it as it is: after its files have changed.
    Approve {
        /// Its name, or name@local.
        name: String,
        #[command(flatten)]
        place: Where,
    },
    /// Look for mistakes in a plugin's folder, each with file and line, and show what would become active.
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
