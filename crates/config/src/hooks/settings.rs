//! The hooks of settings files: which layers bring them, whether a folder's own may run, and whether a file changed. The
//! hooks of a folder that is on the person's list run only as they were when it was put there: their digest is kept with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_types::RuleSource;
use serde_json::{Value, json};

use super::Hook;
use super::action::CommandHook;
use super::files::{self, HookSource};
use crate::agents::{AgentDefinition, read_place};
use crate::scripts::{self, WHOLE_FOLDER};
use crate::settings::{Layer, Places, Settings, SettingsError, file_of, read_plain};
use crate::sources::{Kind, Origin, Place, Problem, Stamp, digest, stamp};

/// What vouches for the hooks of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vouched {
    /// The person does, for what is there now.
    Now,
    /// The person did, for hooks with these digests.
    Then {
        /// Of the hooks of settings; `None` for none at all.
        settings: Option<String>,
        /// Of the hooks that agents bring.
        agents: Vec<String>,
        /// Of the scripts that they run, by their paths in the folder.
        scripts: BTreeMap<String, String>,
    },
}

/// The settings that hooks come from.
#[derive(Debug, Clone)]
pub struct SettingsHooks {
    places: Places,
    vouched: Vouched,
    layers: Vec<Layer>,
    files: Vec<(RuleSource, PathBuf, Option<Stamp>)>,
}

impl SettingsHooks {
    /// The hooks of settings that were read from `places`.
    pub fn new(places: Places, vouched: Vouched, settings: &Settings) -> Self {
        let sources = [RuleSource::UserSettings, RuleSource::ProjectSettings, RuleSource::LocalSettings];
        let read = |source: &RuleSource| {
            let own = *source == RuleSource::UserSettings;
            places.sources.contains(source) && (own || places.trusted)
        };
        let files = sources.into_iter().filter(read).map(|source| {
            let file = file_of(&places, source);
            let now = stamp(&file);
            (source, file, now)
        });
        let files = files.collect();
        Self { places, vouched, layers: settings.layers.clone(), files }
    }

    /// True when the person vouches for the hooks that an agent of the folder brings.
    pub fn vouches_for(&self, hooks: &Value) -> bool {
        match &self.vouched {
            Vouched::Now => true,
            Vouched::Then { agents, .. } => agents.contains(&agent_digest(hooks)),
        }
    }

    /// What is wrong with the scripts that a command of the folder's hooks runs in `directory`: one that is not as it was
    /// when the folder was trusted. Nothing when the person vouches for what is there now.
    pub fn unvouched(&self, command: &CommandHook, directory: &Path) -> Option<String> {
        let Vouched::Then { scripts: vouched, .. } = &self.vouched else { return None };
        let folder = &self.places.project_root;
        let now = scripts::digests([command.texts()], folder, directory);
        let changed = |(script, digest): &(&String, &String)| vouched.get(*script) != Some(*digest);
        // A script by its name says more than that there is one.
        let (script, _) = now.iter().filter(changed).min_by_key(|(script, _)| *script == WHOLE_FOLDER)?;
        let what = if vouched.contains_key(script) { "has changed since" } else { "was not there when" };
        let script = match script == WHOLE_FOLDER {
            true => "what it runs is known only when it runs, and a script in the folder".to_owned(),
            false => format!("its script {script}"),
        };
        Some(format!(
            "{script} {what} the folder was trusted, so it is not run; look at it, and trust the folder as it is now with \
             `qodercli trust`"
        ))
    }

    /// The hooks that run, and what is wrong with the rest.
    #[must_use]
    pub fn list(&self) -> (Vec<Hook>, Vec<Problem>) {
        let (mut hooks, mut problems) = (Vec::new(), Vec::new());
        let refused = self.refusal();
        for layer in self.layers.iter().filter(|layer| layer.value.get("hooks").is_some()) {
            let source = HookSource::of_layer(layer);
            if let Some(text) = refused.as_ref().filter(|_| source.origin == Origin::Project) {
                let line = layer.lines.get("/hooks").map(|line| u64::from(*line));
                let (path, origin) = (source.file, source.origin);
                problems.push(Problem { path, line, text: text.clone(), origin });
                continue;
            }
            let (read, wrong) = files::read(&layer.value["hooks"], &source);
            hooks.extend(read);
            problems.extend(wrong);
        }
        (hooks, problems)
    }

    /// Why the hooks of the folder do not run.
    fn refusal(&self) -> Option<String> {
        let Vouched::Then { settings: approved, .. } = &self.vouched else { return None };
        let value = |source| {
            let layer = self.layers.iter().find(|layer| layer.source == source);
            layer.and_then(|layer| layer.value.get("hooks"))
        };
        let now = digest_of(value(RuleSource::ProjectSettings), value(RuleSource::LocalSettings))?;
        (approved.as_deref() != Some(&now)).then(|| {
            let what = if approved.is_some() { "have changed since" } else { "were not there when" };
            format!(
                "the hooks of this folder {what} it was trusted, so they do not run; look at them with `qodercli trust`, \
                 which trusts them as they are now"
            )
        })
    }

    /// The files that changed since the last look.
    pub fn changed(&self) -> Vec<(RuleSource, PathBuf)> {
        let other = self.files.iter().filter(|(_, file, before)| stamp(file) != *before);
        other.map(|(source, file, _)| (*source, file.clone())).collect()
    }

    /// The same files as they are now.
    pub fn renewed(&self) -> Result<Self, SettingsError> {
        let seen = self.seen();
        let settings = Settings::load(&self.places)?;
        Ok(Self { layers: settings.layers, ..seen })
    }

    /// The same hooks, with the files seen as they are now.
    pub fn seen(&self) -> Self {
        let mut seen = self.clone();
        for (_, file, before) in &mut seen.files {
            *before = stamp(file);
        }
        seen
    }
}

fn digest_of(project: Option<&Value>, local: Option<&Value>) -> Option<String> {
    (project.is_some() || local.is_some()).then(|| digest("hooks", &json!([project, local])))
}

/// The layers of a folder's own settings, as they are written.
fn layers_of(folder: &Path) -> [Result<Option<Layer>, SettingsError>; 2] {
    let folder = folder.join(".qoder");
    ["settings.json", "settings.local.json"].map(|name| read_plain(&folder.join(name)))
}

/// The digest of the hooks of a folder; `None` when it has none that can be read.
#[must_use]
pub fn digest_of_folder(folder: &Path) -> Option<String> {
    let [project, local] = layers_of(folder).map(|layer| layer.ok().flatten());
    let value = |layer: &Option<Layer>| layer.as_ref().and_then(|layer| layer.value.get("hooks").cloned());
    digest_of(value(&project).as_ref(), value(&local).as_ref())
}

fn agent_digest(hooks: &Value) -> String {
    digest("hooks of an agent", hooks)
}

/// The agents of a folder that bring hooks.
fn agents_of(folder: &Path, problems: &mut Vec<Problem>) -> Vec<AgentDefinition> {
    let place = Place { origin: Origin::Project, path: folder.join(".qoder").join(Kind::Agents.folder()) };
    let agents = read_place(&place, Some(folder), problems).into_iter().map(|(_, definition)| definition);
    agents.filter(|definition| definition.hooks.is_some()).collect()
}

/// The digests of the hooks that the agents of a folder bring.
#[must_use]
pub fn agent_digests_of_folder(folder: &Path) -> Vec<String> {
    let agents = agents_of(folder, &mut Vec::new());
    agents.iter().filter_map(|definition| definition.hooks.as_ref()).map(agent_digest).collect()
}

/// The digests of the scripts that the hooks of a folder and of its agents run, by their paths in it.
#[must_use]
pub fn script_digests_of_folder(folder: &Path) -> BTreeMap<String, String> {
    let hooks = values_of_folder(folder);
    scripts::digests(hooks.iter().flat_map(scripts::commands), folder, folder)
}

/// The parts of the commands of a folder's hooks that trust cannot cover beforehand: known only when a hook runs.
#[must_use]
pub fn unbound_parts_of_folder(folder: &Path) -> Vec<String> {
    let hooks = values_of_folder(folder);
    let mut parts: Vec<String> =
        hooks.iter().flat_map(scripts::commands).flat_map(|texts| scripts::unbound(&texts, folder)).collect();
    parts.sort();
    parts.dedup();
    parts
}

/// The hooks that the settings and the agents of a folder define, as they are written.
fn values_of_folder(folder: &Path) -> Vec<Value> {
    let agents = agents_of(folder, &mut Vec::new()).into_iter().filter_map(|definition| definition.hooks);
    let layers = layers_of(folder).into_iter().filter_map(|layer| layer.ok().flatten());
    agents.chain(layers.filter_map(|layer| layer.value.get("hooks").cloned())).collect()
}

/// The hooks of a folder, those of its agents included, trusted or not, and what is wrong with them.
#[must_use]
pub fn hooks_of_folder(folder: &Path) -> (Vec<Hook>, Vec<Problem>) {
    let (mut hooks, mut problems) = (Vec::new(), Vec::new());
    for definition in agents_of(folder, &mut problems) {
        let (read, wrong) = files::of_agent(&definition);
        hooks.extend(read);
        problems.extend(wrong);
    }
    for layer in layers_of(folder) {
        match layer {
            Ok(Some(layer)) => {
                let source = HookSource { origin: Origin::Project, ..HookSource::of_layer(&layer) };
                let (read, wrong) = files::read(layer.value.get("hooks").unwrap_or(&Value::Null), &source);
                hooks.extend(read);
                problems.extend(wrong);
            }
            Ok(None) => {}
            Err(error) => problems.push(Problem {
                path: folder.join(".qoder"),
                line: None,
                text: error.to_string(),
                origin: Origin::Project,
            }),
        }
    }
    (hooks, problems)
}
