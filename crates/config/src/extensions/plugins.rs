//! Which plugins a session has: those that were named for the run, then the installed ones that settings switch on. A
//! project can switch off any of them and switch on what the person has installed, nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use qoder_types::RuleSource;
use serde_json::Value;

use crate::configuration::Configuration;
use crate::plugins::{INLINE, Installed, MARKET, Plugin, folder_of, manifest};
use crate::servers::{self, Described};
use crate::settings::{Layer, Settings};
use crate::sources::{Origin, Problem};

/// The key of the settings.
const KEY: &str = "enabledPlugins";
/// The most plugins of a session.
const MOST: usize = 100;

/// The plugins of a session.
#[derive(Debug, Clone, Default)]
pub struct PluginSet {
    /// Those to use: first the ones that were named for the run, in their order, then the installed ones by name.
    pub plugins: Vec<Plugin>,
    /// The servers that they describe.
    pub servers: Vec<Described>,
    /// What is wrong with plugins and with the descriptions of their servers.
    pub problems: Vec<Problem>,
}

/// An identifier that the settings switch on or off, and where that stands.
struct Switch<'a> {
    on: bool,
    layer: &'a Layer,
}

/// Whether the settings switch an installed plugin on.
#[must_use]
pub fn switched_on(settings: &Settings, id: &str) -> bool {
    switch(settings, id).is_some_and(|switch| switch.on)
}

/// What counts for an identifier. `--settings` says the last word; what the person switched off in the own settings no
/// project switches on again.
fn switch<'a>(settings: &'a Settings, id: &str) -> Option<Switch<'a>> {
    let mut chosen: Option<Switch<'a>> = None;
    for layer in &settings.layers {
        let said = layer.value.get(KEY).and_then(|switches| switches.get(id)).and_then(Value::as_bool);
        let Some(on) = said else { continue };
        let of_folder = matches!(layer.source, RuleSource::ProjectSettings | RuleSource::LocalSettings);
        let refused = chosen
            .as_ref()
            .is_some_and(|chosen| chosen.layer.source == RuleSource::UserSettings && !chosen.on && of_folder);
        if !refused {
            chosen = Some(Switch { on, layer });
        }
    }
    chosen
}

impl PluginSet {
    /// Looks for everything: `folders` are those that were named for the run.
    #[must_use]
    pub fn look(config: &Configuration, folders: &[PathBuf]) -> Self {
        find(config, folders)
    }
}

fn find(config: &Configuration, folders: &[PathBuf]) -> PluginSet {
    let mut found = PluginSet::default();
    for folder in folders {
        let read = manifest::read(folder, |_| INLINE.to_owned(), &config.config_root, &mut found.problems);
        add(read, &mut found);
    }
    let named = config.settings.layers.iter().filter_map(|layer| layer.value.get(KEY)?.as_object());
    let ids: BTreeSet<&String> = named.flat_map(|switches| switches.keys()).collect();
    let on: BTreeMap<&String, Switch<'_>> = ids
        .into_iter()
        .filter_map(|id| Some((id, switch(&config.settings, id).filter(|switch| switch.on)?)))
        .collect();
    // Nothing of the disk is touched for plugins that are not switched on.
    if !on.is_empty() {
        let installed = Installed::load(&config.config_root);
        for (id, switch) in on {
            add_installed(config, &installed, id, &switch, &mut found);
        }
    }
    for plugin in &found.plugins {
        found.servers.extend(servers::of_plugin(plugin, &mut found.problems));
    }
    found
}

fn add(read: Result<Plugin, Problem>, found: &mut PluginSet) {
    let plugin = match read {
        Ok(plugin) => plugin,
        Err(problem) => {
            found.problems.push(problem);
            return;
        }
    };
    let problem = |text: String| Problem {
        path: plugin.root.clone(),
        line: None,
        text,
        origin: Origin::Plugin(plugin.name.clone()),
    };
    let same = found.plugins.iter().find(|other| other.name == plugin.name);
    match same {
        // Named twice is named once.
        Some(other) if other.root == plugin.root => {}
        // What was named for the run replaces the installed one.
        Some(other) if other.source == INLINE && plugin.source != INLINE => {}
        Some(other) => {
            let text = format!(
                "is left out: {} is a plugin named `{}` too, and came first",
                other.root.display(),
                other.name
            );
            found.problems.push(problem(text));
        }
        None if found.plugins.len() >= MOST => {
            found.problems.push(problem(format!("is left out: a session has at most {MOST} plugins")));
        }
        None => found.plugins.push(plugin),
    }
}

fn add_installed(
    config: &Configuration,
    installed: &Installed,
    id: &str,
    switch: &Switch<'_>,
    found: &mut PluginSet,
) {
    let layer = switch.layer;
    let name = id.rsplit_once('@').map_or(id, |(name, _)| name);
    let told = |text: String| Problem {
        path: layer.file.clone().unwrap_or_else(|| PathBuf::from("--settings")),
        line: layer.lines_at(&[KEY, id]).trim_start_matches(':').parse().ok(),
        text,
        origin: Origin::Plugin(name.to_owned()),
    };
    if found.plugins.iter().any(|plugin| plugin.source == INLINE && plugin.name == name) {
        return;
    }
    if id.strip_suffix(MARKET).is_none_or(|name| manifest::name_problem(name).is_some()) {
        found
            .problems
            .push(told(format!("`{id}` is no installed plugin; accepted are names such as `name{MARKET}`")));
        return;
    }
    let folder = folder_of(&config.config_root, name);
    let problem = match installed.check(name, &folder) {
        Ok(()) => {
            let mut problems = Vec::new();
            let read =
                manifest::read(&folder, |name| format!("{name}{MARKET}"), &config.config_root, &mut problems);
            found.problems.extend(problems);
            add(read, found);
            return;
        }
        Err(problem) => problem,
    };
    found.problems.push(told(format!("`{id}` is switched on and not used: {problem}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(source: RuleSource, value: Value) -> Layer {
        Layer { source, file: None, value, lines: BTreeMap::new() }
    }

    #[test]
    fn the_highest_layer_decides_but_a_project_switches_nothing_on_that_the_person_switched_off() {
        use RuleSource::{FlagSettings, LocalSettings, ProjectSettings, UserSettings};
        for (layers, on) in [
            (vec![(UserSettings, true)], true),
            (vec![(UserSettings, true), (ProjectSettings, false)], false),
            (vec![(UserSettings, false), (ProjectSettings, true)], false),
            (vec![(UserSettings, false), (LocalSettings, true)], false),
            (vec![(UserSettings, false), (FlagSettings, true)], true),
            (vec![(ProjectSettings, true), (LocalSettings, false)], false),
            (vec![(ProjectSettings, true)], true),
            (vec![], false),
        ] {
            let all = layers
                .iter()
                .map(|(source, on)| layer(*source, json!({ "enabledPlugins": { "p@local": on } })));
            let settings = Settings { layers: all.collect(), ..Settings::default() };
            assert_eq!(switched_on(&settings, "p@local"), on, "{layers:?}");
        }
    }
}
