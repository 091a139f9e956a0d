//! The rules in force while a session runs: those that it was started with, and what answers, hosts and commands changed.

use qoder_types::{Behavior, PermissionUpdate, RuleOrigin, RuleSource, RuleValue, UpdateDestination};

use crate::rules::rule::{Rule, RuleSet};

impl RuleSet {
    /// These rules with changes of a session on top, and with what is allowed until the turn ends. A rule that cannot be
    /// read is left out; it was refused when it was given.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> RuleValue {
        let rule = Rule::parse(text, origin(RuleSource::Session)).unwrap();
        RuleValue { tool_name: rule.tool, rule_content: rule.content }
    }

    #[test]
    fn rules_are_added_replaced_and_removed_where_they_are_kept() {
        let mut started = RuleSet::default();
        started.add(Behavior::Deny, Rule::parse("Bash(rm:*)", origin(RuleSource::UserSettings)).unwrap());
        let (behavior, destination) = (Behavior::Deny, UpdateDestination::Session);
        let mut updates = vec![
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
        ];
        let texts = |updates: &[PermissionUpdate]| -> Vec<String> {
            started.with_updates(updates, &[]).deny.iter().map(|rule| rule.text.clone()).collect()
        };
        // A rule of the settings is not the session's to remove.
        assert_eq!(texts(&updates), ["Bash(rm:*)", "Read(b)"]);
        updates.push(PermissionUpdate::ReplaceRules { rules: vec![value("Read(c)")], behavior, destination });
        assert_eq!(texts(&updates), ["Bash(rm:*)", "Read(c)"]);
    }

    #[test]
    fn rules_of_a_turn_allow_as_those_of_a_command() {
        let rules = RuleSet::default().with_updates(&[], &[value("Bash(git log:*)")]);
        assert_eq!(rules.allow[0].origin.source, RuleSource::Command);
        assert!(RuleSet::default().with_updates(&[], &[]).allow.is_empty());
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
        let updates = [
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
        ];
        let rules = started.with_updates(&updates, &[]);
        let texts: Vec<(&str, RuleSource)> =
            rules.allow.iter().map(|rule| (rule.text.as_str(), rule.origin.source)).collect();
        assert_eq!(texts, [("Read(f)", RuleSource::CliArg), ("Read(new)", RuleSource::ProjectSettings)]);
        assert!(rules.deny.is_empty() && rules.ask.is_empty());
    }
}
