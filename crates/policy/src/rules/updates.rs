//! The rules in force while a session runs: those that it was started with, and what answers, hosts and commands changed.

use qoder_types::{Behavior, PermissionUpdate, RuleOrigin, RuleSource, RuleValue, UpdateDestination};

use crate::rules::rule::{Rule, RuleSet};

impl RuleSet {
    /// These rules with changes of a session on top, and with what is allowed until the turn ends. A rule that cannot be read is left out; it was refused when it was given.
    #[must_use]
    pub fn with_updates(&self, updates: &[PermissionUpdate], turn_rules: &[RuleValue]) -> Self {
        let mut rules = self.clone();
        for update in updates {
            let source = source(update.destination());
            match update {
                PermissionUpdate::AddRules { rules: added, behavior, .. } => {
                    add(&mut rules, *behavior, added, source);
                }
                PermissionUpdate::ReplaceRules { rules: added, behavior, .. } => {
                    list(&mut rules, *behavior).retain(|rule| rule.origin.source != source);
                    add(&mut rules, *behavior, added, source);
                }
                PermissionUpdate::RemoveRules { rules: removed, behavior, .. } => {
                    let texts: Vec<Rule> = removed
                        .iter()
                        .filter_map(|value| Rule::parse(&value.text(), origin(source)).ok())
                        .collect();
                    list(&mut rules, *behavior).retain(|rule| {
                        rule.origin.source != source
                            || !texts
                                .iter()
                                .any(|gone| gone.tool == rule.tool && gone.content == rule.content)
                    });
                }
                PermissionUpdate::SetMode { .. }
                | PermissionUpdate::AddDirectories { .. }
                | PermissionUpdate::RemoveDirectories { .. } => {}
            }
        }
        add(&mut rules, Behavior::Allow, turn_rules, RuleSource::Command);
        rules
    }
}

fn add(rules: &mut RuleSet, behavior: Behavior, added: &[RuleValue], source: RuleSource) {
    for value in added {
        if let Ok(rule) = Rule::parse(&value.text(), origin(source)) {
            rules.add(behavior, rule);
        }
    }
}

fn list(rules: &mut RuleSet, behavior: Behavior) -> &mut Vec<Rule> {
    match behavior {
        Behavior::Allow => &mut rules.allow,
        Behavior::Ask => &mut rules.ask,
        Behavior::Deny => &mut rules.deny,
    }
}

fn origin(source: RuleSource) -> RuleOrigin {
    RuleOrigin { source, file: None, line: None }
}

fn source(destination: UpdateDestination) -> RuleSource {
    match destination {
        UpdateDestination::UserSettings => RuleSource::UserSettings,
        UpdateDestination::ProjectSettings => RuleSource::ProjectSettings,
        UpdateDestination::LocalSettings => RuleSource::LocalSettings,
        UpdateDestination::Session => RuleSource::Session,
        UpdateDestination::CliArg => RuleSource::CliArg,
    }
}
