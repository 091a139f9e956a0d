//! What a session's records have changed about its permissions: rules, mode and directories on top of what it was
//! started with. Part of the folded state, so a restart keeps every answer that was given.

use qoder_types::workspace::Workspace;
use qoder_types::{PermissionMode, PermissionUpdate, RuleValue};

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
    use qoder_types::UpdateDestination;

    use super::*;

    #[test]
    fn what_a_turn_is_allowed_ends_with_it() {
        let rule = RuleValue { tool_name: "Bash".to_owned(), rule_content: Some("git log:*".to_owned()) };
        let mut permissions = SessionPermissions::default();
        permissions.allow_for_turn(std::slice::from_ref(&rule));
        assert_eq!(permissions.turn_rules(), [rule]);
        assert!(permissions.updates().is_empty(), "an agent starts without it");
        let version = permissions.version;
        permissions.end_turn();
        assert!(permissions.turn_rules().is_empty() && permissions.version > version);
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
