//! What a run is configured by before anything else is known of it: its settings, whether its folder is trusted, and the
//! folders in which definitions lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_types::RuleSource;

use crate::plugins::Plugin;
use crate::settings::Settings;
use crate::sources::{Kind, Origin, Place};
use crate::trust::Trust;

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// All settings.
    pub settings: Settings,
    /// Whether the folder is trusted.
    pub trust: Trust,
    /// Root of the project.
    pub project_root: PathBuf,
    /// The configuration root.
    pub config_root: PathBuf,
    /// The variables that descriptions may name.
    pub environment: BTreeMap<String, String>,
    /// Which settings files count, and with them the definitions beside them; `None` is all.
    pub setting_sources: Option<Vec<RuleSource>>,
}

impl Configuration {
    /// Where definitions of a kind lie, lowest first: the person's, the project's when it is trusted, those of plugins.
    /// Setting sources that are left out leave their definitions out too.
    #[must_use]
    pub fn places(&self, kind: Kind, plugins: &[Plugin]) -> Vec<Place> {
        let wanted = |source| self.setting_sources.as_ref().is_none_or(|all| all.contains(&source));
        let place = |origin, root: &Path| Place { origin, path: root.join(kind.folder()) };
        let mut places = Vec::new();
        if wanted(RuleSource::UserSettings) {
            places.push(place(Origin::User, &self.config_root));
        }
        if wanted(RuleSource::ProjectSettings) && self.trust.is_trusted() {
            places.push(place(Origin::Project, &self.project_root.join(".qoder")));
        }
        for plugin in plugins {
            let paths = match kind {
                Kind::Agents => &plugin.parts.agents,
                Kind::Skills => &plugin.parts.skills,
                Kind::Commands => &plugin.parts.commands,
            };
            let origin = Origin::Plugin(plugin.name.clone());
            places.extend(paths.iter().map(|path| Place { origin: origin.clone(), path: path.clone() }));
        }
        places
    }

    /// The folder that links may not lead out of. The person's own files may lie wherever the person puts them.
    #[must_use]
    pub fn boundary<'a>(&'a self, origin: &Origin, plugins: &'a [Plugin]) -> Option<&'a Path> {
        match origin {
            Origin::Project => Some(&self.project_root),
            Origin::Plugin(name) => {
                plugins.iter().find(|plugin| plugin.name == *name).map(|plugin| plugin.root.as_path())
            }
            Origin::BuiltIn | Origin::User | Origin::Flag => None,
        }
    }
}
