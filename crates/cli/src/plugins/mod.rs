//! `qodercli plugins`: install plugins, switch them on and off, approve them again after a change, and look for mistakes.

mod arguments;
mod list;
mod manage;
mod show;
mod validate;

use std::collections::BTreeMap;

use qoder_config::plugins::{MARKET, PluginError};

use crate::exit::{Exit, Fault};
use crate::mcp::prepare;

pub use arguments::{HELP, PluginsAction};

/// Runs a command about plugins.
pub fn run(action: PluginsAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        PluginsAction::List { json, place } => list::run(&prepare(&place, environment)?, json),
        PluginsAction::Install { folder, scope, place } => {
            manage::install(&prepare(&place, environment)?, &folder, scope)
        }
        PluginsAction::Uninstall { name, place } => {
            manage::uninstall(&prepare(&place, environment)?, plain_name(&name))
        }
        PluginsAction::Enable { name, scope, place } => {
            manage::switch(&prepare(&place, environment)?, plain_name(&name), scope, true)
        }
        PluginsAction::Disable { name, scope, place } => {
            manage::switch(&prepare(&place, environment)?, plain_name(&name), scope, false)
        }
        PluginsAction::Approve { name, place } => {
            manage::approve(&prepare(&place, environment)?, plain_name(&name))
        }
        PluginsAction::Validate { folder, json } => validate::run(&folder, json, environment),
    }
}

/// A plugin may be named by its identifier too.
fn plain_name(name: &str) -> &str {
    name.strip_suffix(MARKET).unwrap_or(name)
}

impl From<PluginError> for Fault {
    fn from(error: PluginError) -> Self {
        let exit = match &error {
            PluginError::Write(_) => Exit::Configuration,
            PluginError::Unusable(_)
            | PluginError::NoParts(_)
            | PluginError::TooLarge { .. }
            | PluginError::Link { .. }
            | PluginError::Special(_)
            | PluginError::Io { .. }
            | PluginError::NotInstalled { .. } => Exit::Input,
        };
        Self { exit, message: error.to_string(), hint: error.hint() }
    }
}
