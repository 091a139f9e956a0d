//! Changes of permissions on their way into force: whether one may be made at all, and writing those that a settings
//! file keeps.

use std::path::PathBuf;

use qoder_policy::Rule;
use qoder_types::{
    Behavior, PermissionMode, PermissionUpdate, RuleOrigin, RuleSource, RuleValue, UpdateDestination,
};
use serde_json::Value;

use qoder_config::settings::{Change, change};

/// Where changes are written and what the settings forbid.
#[derive(Debug, Clone, Default)]
pub struct PermissionUpdates {
    /// The user's settings file.
    pub user: PathBuf,
    /// The project's shared settings file.
    pub project: PathBuf,
    /// The project's private settings file.
    pub local: PathBuf,
    /// False in a folder that is not trusted: its files are neither read nor written.
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

#[cfg(test)]
mod tests {
    use super::*;
    use UpdateDestination::{LocalSettings, ProjectSettings, Session, UserSettings};

    fn updates(folder: &std::path::Path) -> PermissionUpdates {
        PermissionUpdates {
            user: folder.join("user/settings.json"),
            project: folder.join("project/settings.json"),
            local: folder.join("project/settings.local.json"),
            trusted: true,
            no_bypass: false,
        }
    }

    fn rules(texts: &[&str]) -> Vec<RuleValue> {
        let origin = RuleOrigin { source: RuleSource::Session, file: None, line: None };
        let value = |text: &&str| {
            let rule = Rule::parse(text, origin.clone()).unwrap();
            RuleValue { tool_name: rule.tool, rule_content: rule.content }
        };
        texts.iter().map(value).collect()
    }

    fn kept(file: &std::path::Path) -> Value {
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    #[test]
    fn rules_are_added_replaced_and_removed_in_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let updates = updates(folder.path());
        let behavior = Behavior::Deny;
        let add = |texts: &[&str], destination| PermissionUpdate::AddRules {
            rules: rules(texts),
            behavior,
            destination,
        };
        let problems = updates.persist(&[
            add(&["Read(a)", "Read(b)"], ProjectSettings),
            add(&["Read(b)", "Bash(rm:*)"], ProjectSettings),
            add(&["Read(u)"], UserSettings),
            add(&["Read(s)"], Session),
            PermissionUpdate::RemoveRules {
                rules: rules(&["Read(a)", "Read(u)"]),
                behavior,
                destination: ProjectSettings,
            },
        ]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            kept(&updates.project),
            serde_json::json!({"permissions": {"deny": ["Read(b)", "Bash(rm:*)"]}})
        );
        assert_eq!(kept(&updates.user), serde_json::json!({"permissions": {"deny": ["Read(u)"]}}));
        assert!(!updates.local.exists());
        let replaced = PermissionUpdate::ReplaceRules {
            rules: rules(&["Read(c)"]),
            behavior,
            destination: ProjectSettings,
        };
        assert_eq!(updates.persist(&[replaced]), Vec::<String>::new());
        assert_eq!(kept(&updates.project), serde_json::json!({"permissions": {"deny": ["Read(c)"]}}));
    }

    #[test]
    fn modes_and_directories_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let updates = updates(folder.path());
        let directories = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let problems = updates.persist(&[
            PermissionUpdate::SetMode { mode: PermissionMode::AcceptEdits, destination: LocalSettings },
            PermissionUpdate::AddDirectories {
                directories: directories(&["/a", "/b"]),
                destination: LocalSettings,
            },
            PermissionUpdate::RemoveDirectories {
                directories: directories(&["/a"]),
                destination: LocalSettings,
            },
        ]);
        assert_eq!(problems, Vec::<String>::new());
        let expected = serde_json::json!({"general": {"defaultPermissionMode": "acceptEdits"},
            "permissions": {"additionalDirectories": ["/b"]}});
        assert_eq!(kept(&updates.local), expected);
    }

    #[test]
    fn files_of_an_untrusted_folder_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let updates = PermissionUpdates { trusted: false, ..updates(folder.path()) };
        let add = |destination| PermissionUpdate::AddRules {
            rules: rules(&["Read(a)"]),
            behavior: Behavior::Allow,
            destination,
        };
        let problems = updates.persist(&[add(ProjectSettings), add(LocalSettings), add(UserSettings)]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(!updates.project.exists() && !updates.local.exists() && updates.user.exists());
    }

    #[test]
    fn what_the_settings_forbid_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode, destination| PermissionUpdate::SetMode { mode, destination };
        let free = updates(folder.path());
        for mode in [PermissionMode::BypassPermissions, PermissionMode::Auto] {
            assert!(free.complaint(&set(mode, ProjectSettings)).is_some());
            assert!(free.complaint(&set(mode, LocalSettings)).is_some());
            assert_eq!(free.complaint(&set(mode, Session)), None);
        }
        let bound = PermissionUpdates { no_bypass: true, ..free };
        assert!(bound.complaint(&set(PermissionMode::BypassPermissions, Session)).is_some());
        assert_eq!(bound.complaint(&set(PermissionMode::Auto, Session)), None);
        let bad = RuleValue { tool_name: "Bash".to_owned(), rule_content: Some("a && b".to_owned()) };
        let add = |rules: Vec<RuleValue>| PermissionUpdate::AddRules {
            rules,
            behavior: Behavior::Allow,
            destination: Session,
        };
        assert!(bound.complaint(&add(vec![bad])).is_some());
        assert_eq!(bound.complaint(&add(rules(&["Bash(ls)"]))), None);
        let nul =
            PermissionUpdate::AddDirectories { directories: vec!["/a\0".to_owned()], destination: Session };
        assert!(bound.complaint(&nul).is_some());
    }
}
