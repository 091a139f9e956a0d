//! What a decision tells besides itself: the rules that spoke of the call and were outranked, and how many rules there
//! were at all. For people who ask later why something ran or did not.

use qoder_types::{Behavior, Considered, DecisionLayer};

use super::compiled::Compiled;
use super::decide::Judge;

impl Judge<'_> {
    /// What else was looked at: rules that were outranked, and how many rules had nothing to say.
    pub(super) fn considered(&self, behavior: Behavior, asked: Option<&Compiled>) -> Vec<Considered> {
        let policy = self.policy();
        let mut considered = Vec::new();
        let outranked = |rule: &Compiled, behavior: Behavior| Considered {
            layer: DecisionLayer::Rule,
            behavior: Some(behavior),
            rule: Some(rule.rule.text.clone()),
            origin: Some(rule.rule.origin.clone()),
            note: "matched, and was outranked".to_owned(),
        };
        considered.extend(asked.map(|rule| outranked(rule, Behavior::Ask)));
        if behavior != Behavior::Allow {
            let allow = policy.allow.iter().find(|rule| self.would_allow(rule));
            considered.extend(allow.map(|rule| outranked(rule, Behavior::Allow)));
        }
        let counts = [policy.deny.len(), policy.ask.len(), policy.allow.len()];
        considered.push(Considered {
            layer: DecisionLayer::Rule,
            behavior: None,
            rule: None,
            origin: None,
            note: format!(
                "{} deny, {} ask and {} allow rules were in force",
                counts[0], counts[1], counts[2]
            ),
        });
        considered
    }
}
