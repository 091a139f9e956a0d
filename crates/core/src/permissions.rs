//! What a session's records have changed about its permissions: rules, mode and directories on top of what it was
//! started with. Part of the folded state, so a restart keeps every answer that was given.

use qoder_types::{PermissionMode, PermissionUpdate, RuleValue};

use qoder_policy::RuleSet;
use qoder_types::workspace::Workspace;

/// The changes so far.
#[derive(Debug, Clone, Default)]
pub struct SessionPermissions {
    /// Counts the changes: an equal number means equal permissions.
    pub version: u64,
    /// The mode that was set last.
    pub mode: Option<PermissionMode>,
    /// The mode before planning began.
    pub before_plan: Option<PermissionMode>,
    updates: Vec<PermissionUpdate>,
    /// Calls that commands and skills allow until the turn ends.
    turn_rules: Vec<RuleValue>,
}

impl SessionPermissions {
    /// Takes changes in.
    pub fn apply(&mut self, updates: &[PermissionUpdate]) {
        for update in updates {
            self.version += 1;
            if let PermissionUpdate::SetMode { mode, .. } = update {
                if *mode == PermissionMode::Plan && self.mode != Some(PermissionMode::Plan) {
                    self.before_plan = self.mode;
                }
                self.mode = Some(*mode);
            } else {
                self.updates.push(update.clone());
            }
        }
    }

    /// Allows calls until the turn ends. Rules that deny or ask stay above them, as above all that allow.
    pub fn allow_for_turn(&mut self, rules: &[RuleValue]) {
        if !rules.is_empty() {
            self.version += 1;
            self.turn_rules.extend_from_slice(rules);
        }
    }

    /// What was allowed until the end of a turn is no longer allowed.
    pub fn end_turn(&mut self) {
        if !self.turn_rules.is_empty() {
            self.version += 1;
            self.turn_rules.clear();
        }
    }

    /// The changes that are not about the mode, in order.
    #[must_use]
    pub fn updates(&self) -> &[PermissionUpdate] {
        &self.updates
    }

    /// What calls are allowed until the turn ends.
    #[must_use]
    pub fn turn_rules(&self) -> &[RuleValue] {
        &self.turn_rules
    }

    /// The rules with the changes.
    #[must_use]
    pub fn rules(&self, started: &RuleSet) -> RuleSet {
        started.with_updates(&self.updates, &self.turn_rules)
    }

    /// The places with the changes. Directories that a session was started in stay.
    #[must_use]
    pub fn workspace(&self, started: &Workspace) -> Workspace {
        let mut workspace = started.clone();
        for update in &self.updates {
            match update {
                PermissionUpdate::AddDirectories { directories, .. } => {
                    for directory in directories {
                        let path = workspace.cwd.join(directory);
                        if !workspace.roots.contains(&path) {
                            workspace.roots.push(path);
                        }
                    }
                }
                PermissionUpdate::RemoveDirectories { directories, .. } => {
                    let gone: Vec<_> =
                        directories.iter().map(|directory| workspace.cwd.join(directory)).collect();
                    workspace.roots.retain(|root| started.roots.contains(root) || !gone.contains(root));
                }
                PermissionUpdate::AddRules { .. }
                | PermissionUpdate::ReplaceRules { .. }
                | PermissionUpdate::RemoveRules { .. }
                | PermissionUpdate::SetMode { .. } => {}
            }
        }
        workspace
    }
}

#[cfg(test)]
mod tests {
    use qoder_policy::Rule;
    use qoder_types::{Behavior, RuleOrigin, RuleSource, UpdateDestination};

    use super::*;

    fn origin(source: RuleSource) -> RuleOrigin {
        RuleOrigin { source, file: None, line: None }
    }

    fn value(text: &str) -> RuleValue {
        let rule = Rule::parse(text, origin(RuleSource::Session)).unwrap();
        RuleValue { tool_name: rule.tool, rule_content: rule.content }
    }

    #[test]
    fn rules_are_added_replaced_and_removed_where_they_are_kept() {
        let mut started = RuleSet::default();
        started.add(Behavior::Deny, Rule::parse("Bash(rm:*)", origin(RuleSource::UserSettings)).unwrap());
        let mut permissions = SessionPermissions::default();
        let (behavior, destination) = (Behavior::Deny, UpdateDestination::Session);
        permissions.apply(&[
            PermissionUpdate::AddRules {
                rules: vec![value("Read(a)"), value("Read(b)")],
                behavior,
                destination,
            },
            PermissionUpdate::RemoveRules {
                rules: vec![value("Read(a)"), value("Bash(rm:*)")],
                behavior,
                destination,
            },
        ]);
        let texts = |permissions: &SessionPermissions| -> Vec<String> {
            permissions.rules(&started).deny.iter().map(|rule| rule.text.clone()).collect()
        };
        // A rule of the settings is not the session's to remove.
        assert_eq!(texts(&permissions), ["Bash(rm:*)", "Read(b)"]);
        permissions.apply(&[PermissionUpdate::ReplaceRules {
            rules: vec![value("Read(c)")],
            behavior,
            destination,
        }]);
        assert_eq!(texts(&permissions), ["Bash(rm:*)", "Read(c)"]);
        assert_eq!(permissions.version, 3);
    }

    #[test]
    fn what_a_turn_is_allowed_ends_with_it() {
        let mut permissions = SessionPermissions::default();
        permissions.allow_for_turn(&[value("Bash(git log:*)")]);
        let rules = permissions.rules(&RuleSet::default());
        assert_eq!(rules.allow[0].origin.source, RuleSource::Command);
        assert!(permissions.updates().is_empty(), "an agent starts without it");
        let version = permissions.version;
        permissions.end_turn();
        assert!(permissions.rules(&RuleSet::default()).allow.is_empty() && permissions.version > version);
    }

    #[test]
    fn the_mode_before_planning_is_remembered() {
        let mut permissions = SessionPermissions::default();
        let set = |mode| PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
        permissions.apply(&[
            set(PermissionMode::AcceptEdits),
            set(PermissionMode::Plan),
            set(PermissionMode::Plan),
        ]);
        assert_eq!(
            (permissions.mode, permissions.before_plan),
            (Some(PermissionMode::Plan), Some(PermissionMode::AcceptEdits))
        );
    }

    #[test]
    fn a_list_is_replaced_only_where_it_is_kept() {
        let mut started = RuleSet::default();
        for (text, source) in [
            ("Read(u)", RuleSource::UserSettings),
            ("Read(p)", RuleSource::ProjectSettings),
            ("Read(f)", RuleSource::CliArg),
        ] {
            started.add(Behavior::Allow, Rule::parse(text, origin(source)).unwrap());
        }
        let mut permissions = SessionPermissions::default();
        permissions.apply(&[
            PermissionUpdate::ReplaceRules {
                rules: vec![value("Read(new)")],
                behavior: Behavior::Allow,
                destination: UpdateDestination::ProjectSettings,
            },
            PermissionUpdate::RemoveRules {
                rules: vec![value("Read(u)"), value("Read(f)")],
                behavior: Behavior::Allow,
                destination: UpdateDestination::UserSettings,
            },
        ]);
        let rules = permissions.rules(&started);
        let texts: Vec<(&str, RuleSource)> =
            rules.allow.iter().map(|rule| (rule.text.as_str(), rule.origin.source)).collect();
        assert_eq!(texts, [("Read(f)", RuleSource::CliArg), ("Read(new)", RuleSource::ProjectSettings)]);
        assert!(rules.deny.is_empty() && rules.ask.is_empty());
    }

    #[test]
    fn directories_come_and_go_but_not_those_of_the_start() {
        let started =
            Workspace { cwd: "/w".into(), roots: vec!["/w".into(), "/more".into()], ..Workspace::default() };
        let mut permissions = SessionPermissions::default();
        let destination = UpdateDestination::Session;
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        permissions.apply(&[
            PermissionUpdate::AddDirectories { directories: names(&["/a", "b", "/a"]), destination },
            PermissionUpdate::RemoveDirectories { directories: names(&["/a", "/more", "/w"]), destination },
        ]);
        let roots: Vec<std::path::PathBuf> = permissions.workspace(&started).roots;
        assert_eq!(roots, ["/w", "/more", "/w/b"].map(std::path::PathBuf::from));
        assert_eq!(permissions.version, 2);
    }
}
