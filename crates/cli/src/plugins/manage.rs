//! Installing plugins and removing them, switching them on and off, and approving them again. What becomes active is
//! shown in full by each command that makes something active.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_config::plugins::{self as plugin, Installed, MARKET, PluginError, folder_of};
use qoder_config::settings::{Change, change};
use qoder_runtime::setup::Setup;
use serde_json::Value;

use super::arguments::PluginScope;
use super::show::active;
use super::validate::alone;
use crate::exit::{Exit, Fault};
use crate::screen::{print_note, print_row};

fn file(setup: &Setup, scope: PluginScope) -> PathBuf {
    let project = setup.config.project_root.join(".qoder");
    match scope {
        PluginScope::User => setup.config.config_root.join("settings.json"),
        PluginScope::Project => project.join("settings.json"),
        PluginScope::Local => project.join("settings.local.json"),
    }
}

/// Shows what the plugin in a folder makes active, and what is wrong with it, at the place where a person can correct it.
fn print_plugin(folder: &Path, original: &Path, setup: &Setup) -> Result<(), Fault> {
    let alone = alone(folder, setup.options.environment.clone())?;
    let mut loaded = alone.extensions(BTreeMap::new())?;
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    for problem in &mut loaded.problems {
        if let Ok(part) = problem.path.strip_prefix(&root) {
            problem.path = original.join(part);
        }
    }
    for plugin in &loaded.plugins {
        active(plugin, &loaded, alone.plugins()).iter().try_for_each(|line| print_row(line))?;
    }
    for problem in &loaded.problems {
        print_note(&format!("warning: {problem}"));
    }
    Ok(())
}

/// Copies a plugin, shows it and switches it on.
pub fn install(setup: &Setup, folder: &Path, scope: PluginScope) -> Result<Exit, Fault> {
    let staged = plugin::stage(&setup.config.config_root, folder)?;
    // The copy is shown: it is what will be used, whatever happens to the folder meanwhile.
    print_plugin(&staged.plugin.root, folder, setup)?;
    let name = staged.plugin.name.clone();
    let installed = staged.install()?;
    write(setup, &name, scope, true)?;
    print_row(&format!("installed {name}{MARKET} in {} and approved it as it is", installed.display()))?;
    Ok(Exit::Success)
}

/// Removes a plugin and what the settings here say about it.
pub fn uninstall(setup: &Setup, name: &str) -> Result<Exit, Fault> {
    plugin::uninstall(&setup.config.config_root, name)?;
    let id = format!("{name}{MARKET}");
    for scope in [PluginScope::User, PluginScope::Project, PluginScope::Local] {
        let path = file(setup, scope);
        let says = setup.config.settings.layers.iter().any(|layer| {
            layer.file.as_ref() == Some(&path)
                && layer.value.get("enabledPlugins").is_some_and(|all| all.get(&id).is_some())
        });
        if says {
            changed(change(&path, &format!("enabledPlugins.{id}"), &Change::Remove))?;
        }
    }
    print_row(&format!("removed {id}"))?;
    let data = setup.config.config_root.join("plugins").join("data").join(name);
    if data.exists() {
        print_row(&format!("its data stays in {}", data.display()))?;
    }
    Ok(Exit::Success)
}

/// Switches a plugin on or off.
pub fn switch(setup: &Setup, name: &str, scope: PluginScope, on: bool) -> Result<Exit, Fault> {
    let installed = Installed::load(&setup.config.config_root);
    let known = installed.names();
    if !known.iter().any(|one| one == name) {
        return Err(PluginError::NotInstalled { name: name.to_owned(), known }.into());
    }
    let folder = folder_of(&setup.config.config_root, name);
    if on {
        match installed.check(name, &folder) {
            Ok(()) => print_plugin(&folder, &folder, setup)?,
            Err(reason) => print_note(&format!("warning: {name} stays unused: {reason}")),
        }
    }
    write(setup, name, scope, on)?;
    let word = if on { "on" } else { "off" };
    print_row(&format!("switched {name}{MARKET} {word} in {}", file(setup, scope).display()))?;
    Ok(Exit::Success)
}

/// Approves a plugin as it lies there.
pub fn approve(setup: &Setup, name: &str) -> Result<Exit, Fault> {
    let known = Installed::load(&setup.config.config_root).names();
    if !known.iter().any(|one| one == name) {
        return Err(PluginError::NotInstalled { name: name.to_owned(), known }.into());
    }
    let folder = folder_of(&setup.config.config_root, name);
    print_plugin(&folder, &folder, setup)?;
    plugin::approve(&setup.config.config_root, name)?;
    print_row(&format!("approved {name}{MARKET} as it is"))?;
    Ok(Exit::Success)
}

fn write(setup: &Setup, name: &str, scope: PluginScope, on: bool) -> Result<(), Fault> {
    let key = format!("enabledPlugins.{name}{MARKET}");
    changed(change(&file(setup, scope), &key, &Change::Set(Value::Bool(on))))?;
    if scope != PluginScope::User && !setup.config.trust.is_trusted() {
        print_note(
            "warning: this folder is not trusted, so its settings are not used; `qodercli trust` changes that",
        );
    }
    Ok(())
}

fn changed(written: Result<(), qoder_config::settings::WriteError>) -> Result<(), Fault> {
    written.map_err(|error| PluginError::Write(error).into())
}
