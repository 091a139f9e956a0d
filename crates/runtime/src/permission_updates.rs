//! Changes of permissions on their way into force: whether one may be made at all, and writing those that a settings
//! file keeps.

use std::path::PathBuf;

use qoder_core::policy::Rule;
use qoder_types::{
    Behavior, PermissionMode, PermissionUpdate, RuleOrigin, RuleSource, RuleValue, UpdateDestination,
};
use serde_json::Value;

use crate::settings::{Change, change};

/// Where changes are written and what the settings forbid.
#[derive(Debug, Clone, Default)]
pub struct PermissionUpdates {
    /// The user's settings file.
    pub user: PathBuf,
    /// The project's shared settings file.
    pub project: PathBuf,
    /// The project's private settings file.
    pub local: PathBuf,
    /// False in a folder that nobody vouched for: its files are neither read nor written.
    pub trusted: bool,
    /// True when `security.disableYoloMode` is set.
    pub no_bypass: bool,
}

impl PermissionUpdates {
    /// Why a change cannot be made, if it cannot.
    #[must_use]
    pub fn complaint(&self, update: &PermissionUpdate) -> Option<String> {
        match update {
            PermissionUpdate::SetMode { mode, destination } => {
                if self.forbids(*mode) {
                    return Some(
                        "bypassPermissions is forbidden by the setting security.disableYoloMode".to_owned(),
                    );
                }
                let shared = matches!(
                    destination,
                    UpdateDestination::ProjectSettings | UpdateDestination::LocalSettings
                );
                let loose = matches!(mode, PermissionMode::BypassPermissions | PermissionMode::Auto);
                (shared && loose)
                    .then(|| format!("a project's settings cannot choose the mode {}", mode.as_str()))
            }
            PermissionUpdate::AddRules { rules, .. } | PermissionUpdate::ReplaceRules { rules, .. } => {
                rules.iter().find_map(|value| {
                    let origin = RuleOrigin { source: RuleSource::Session, file: None, line: None };
                    Rule::parse(&value.text(), origin).err().map(|error| error.to_string())
                })
            }
            PermissionUpdate::AddDirectories { directories, .. } => directories
                .iter()
                .find(|directory| directory.contains('\0'))
                .map(|_| "a directory contains a NUL byte".to_owned()),
            PermissionUpdate::RemoveRules { .. } | PermissionUpdate::RemoveDirectories { .. } => None,
        }
    }

    /// True for a mode that the settings forbid.
    #[must_use]
    pub fn forbids(&self, mode: PermissionMode) -> bool {
        self.no_bypass && mode == PermissionMode::BypassPermissions
    }

    /// Writes what settings files keep; answers with what could not be written.
    #[must_use]
    pub fn persist(&self, updates: &[PermissionUpdate]) -> Vec<String> {
        updates.iter().filter_map(|update| self.persist_one(update).err()).collect()
    }

    fn persist_one(&self, update: &PermissionUpdate) -> Result<(), String> {
        let file = match update.destination() {
            UpdateDestination::Session | UpdateDestination::CliArg => return Ok(()),
            UpdateDestination::UserSettings => &self.user,
            UpdateDestination::ProjectSettings | UpdateDestination::LocalSettings if !self.trusted => {
                return Err(
                    "the folder is not trusted, so its settings are not written; the change holds for this \
                            session"
                        .to_owned(),
                );
            }
            UpdateDestination::ProjectSettings => &self.project,
            UpdateDestination::LocalSettings => &self.local,
        };
        let (key, made) = match update {
            PermissionUpdate::AddRules { rules, behavior, .. } => {
                (list(*behavior), Change::AddToList(texts(rules)))
            }
            PermissionUpdate::ReplaceRules { rules, behavior, .. } => {
                (list(*behavior), Change::ReplaceList(texts(rules)))
            }
            PermissionUpdate::RemoveRules { rules, behavior, .. } => {
                (list(*behavior), Change::RemoveFromList(texts(rules)))
            }
            PermissionUpdate::SetMode { mode, .. } => {
                ("general.defaultPermissionMode", Change::Set(Value::from(mode.as_str())))
            }
            PermissionUpdate::AddDirectories { directories, .. } => {
                ("permissions.additionalDirectories", Change::AddToList(directories.clone()))
            }
            PermissionUpdate::RemoveDirectories { directories, .. } => {
                ("permissions.additionalDirectories", Change::RemoveFromList(directories.clone()))
            }
        };
        change(file, key, &made).map_err(|error| error.to_string())
    }
}

fn list(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "permissions.allow",
        Behavior::Ask => "permissions.ask",
        Behavior::Deny => "permissions.deny",
    }
}

fn texts(rules: &[RuleValue]) -> Vec<String> {
    rules.iter().map(RuleValue::text).collect()
}
